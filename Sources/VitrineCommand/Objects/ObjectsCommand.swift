import ArgumentParser
import VitrineCore
import VitrineModels

/// `vitrine objects`: reads object stores by the schemas that are in them.
struct ObjectsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "objects",
        abstract: "Reads object stores without the programs that wrote them.",
        discussion: """
            The subcommands change nothing. Only the program itself can read an encrypted store.

              vitrine objects list notes.objects
              vitrine objects show notes.objects first-note --json
            """,
        subcommands: [
            ObjectsListCommand.self, ObjectsShowCommand.self, ObjectsGroupsCommand.self, ObjectsExportCommand.self,
            ObjectsVerifyCommand.self, ObjectsMigrateCommand.self,
        ])
}

/// The store of a subcommand.
struct ObjectsSelection: ParsableArguments {
    @Argument(help: "File of the store.", completion: .file())
    var store: String

    @Flag(help: "Print one JSON object per line instead of text.")
    var json = false

    /// Opens the store and runs a body. A failure is printed to standard error and gives exit status 1.
    func run(_ body: (ObjectStore) async throws(PersistenceError) -> Void) async throws {
        do throws(PersistenceError) {
            // A registry of its own, so that only the schemas of the store count.
            var configuration = ObjectStore.Configuration(coder: PersistentCoder(registry: TypeRegistry()))
            configuration.isReadOnly = true
            try await body(ObjectStore(at: store, configuration: configuration))
        } catch {
            Diagnostics.write("vitrine objects: \(reason(error))")
            throw ExitCode(1)
        }
    }

    /// Returns the description of an error. Errors of opening name the likely cause instead of the statement of SQLite.
    private func reason(_ error: PersistenceError) -> String {
        guard case .database(let failure) = error else { return "\(error)" }
        return switch failure.reason {
        case .cannotOpen: "\(store): cannot open it; it does not exist, is a directory, or is not readable"
        case .corrupt: "\(store): it is not an object store, or it is damaged"
        default: "\(error)"
        }
    }

    func report(_ line: ObjectLine, text: @autoclosure () -> String) {
        if json { Output.json(line) } else { Output.row(text()) }
    }
}

/// The option that selects objects of the store.
struct ObjectsScope: ParsableArguments {
    @Option(help: "Read only this group and the groups below it. (default: all groups)")
    var group: String?

    /// Returns all groups, or `--group` with the groups below it.
    func groups(of store: ObjectStore) throws(PersistenceError) -> [GroupPath] {
        let group = group.map { GroupPath($0) }
        return [group ?? .standard] + (try store.groups(below: group))
    }

    /// Calls a body for every object, in the order of groups and keys.
    func forEach(
        of store: ObjectStore, _ body: (ObjectEntry) throws(PersistenceError) -> Void
    ) throws(PersistenceError) {
        for group in try groups(of: store) {
            var last: String?
            while true {
                let page = try store.entries(in: group, after: last, limit: 1000)
                guard let end = page.last else { break }
                for entry in page { try body(entry) }
                last = end.key
            }
        }
    }
}

/// The line of one object, group or type. Keys that do not apply are absent.
struct ObjectLine: Encodable {
    var group: String?
    var key: String?
    var type: String?
    var version: String?
    var bytes: Int?
    /// The time of the last change, as ISO 8601.
    var modified: String?
    var objects: Int?
    /// Whether a verified store has no damage, or whether objects need no migration step.
    var intact: Bool?
    /// The newest version of a type that the store knows.
    var newest: String?
    var differences: [String]?
    var error: String?
}

/// `vitrine objects verify`: checks a store for damage.
struct ObjectsVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Reads the file and every object. The exit status is 1 if it finds damage.")

    @OptionGroup var selection: ObjectsSelection

    func run() async throws {
        var isIntact = false
        try await selection.run { store throws(PersistenceError) in
            let found = try await store.verify()
            isIntact = found.isIntact
            for text in found.file { selection.report(ObjectLine(error: text), text: "file: \(text)") }
            for case .unreadable(let key, let group, let reason) in found.damaged {
                selection.report(
                    ObjectLine(group: group, key: key, error: "\(reason)"),
                    text: "\(group.debugDescription) \(key.debugDescription): \(reason)")
            }
            selection.report(
                ObjectLine(objects: found.objects, intact: isIntact),
                text: "\(found.objects) objects, \(isIntact ? "all intact" : "\(found.damaged.count) damaged")")
        }
        if !isIntact { throw ExitCode(1) }
    }
}

/// `vitrine objects migrate --dry-run`: lists the migrations that a store needs.
struct ObjectsMigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Lists objects of older versions, and the changes that their migration has to make.",
        discussion: """
            The newest version of each type in the store counts as the current one. Only the program knows default \
            values of added properties.
            """)

    @OptionGroup var selection: ObjectsSelection

    @Flag(help: "Required, because only the program itself can run the steps of a migration.")
    var dryRun = false

    func validate() throws {
        guard dryRun else {
            throw ValidationError("migrate needs --dry-run, because only the program itself can run the steps")
        }
    }

    func run() async throws {
        try await selection.run { store throws(PersistenceError) in
            let versions = try store.storedVersions()
            for version in versions where version.count > 0 {
                guard let newest = versions.last(where: { $0.type == version.type }) else { continue }
                report(version, newest: newest, registry: store.registry)
            }
        }
    }

    private func report(
        _ stored: ObjectStore.StoredVersion, newest: ObjectStore.StoredVersion, registry: TypeRegistry
    ) {
        let differences = Self.differences(stored, new: newest, registry: registry)
        let line = ObjectLine(
            type: stored.type, version: stored.version.description, objects: stored.count,
            intact: differences.isEmpty, newest: newest.version.description, differences: differences)
        let state =
            if stored.fingerprint == newest.fingerprint {
                "up to date"
            } else if differences.isEmpty {
                "becomes \(newest.version) automatically"
            } else {
                "needs steps to \(newest.version): \(differences.joined(separator: ", "))"
            }
        selection.report(line, text: "\(stored.count)  \(stored.type) \(stored.version)  \(state)")
    }

    /// Returns the differences between two versions of a type and of the types inside it.
    private static func differences(
        _ old: ObjectStore.StoredVersion, new: ObjectStore.StoredVersion, registry: TypeRegistry
    ) -> [String] {
        guard let before = registry.schema(fingerprint: old.fingerprint),
            let after = registry.schema(fingerprint: new.fingerprint)
        else { return ["its schema cannot be read"] }
        var differences: [String] = []
        for (name, record) in before.records.sorted(by: { $0.key < $1.key }) {
            guard let other = after.records[name] else { continue }
            let prefix = name == old.type ? "" : "\(name): "
            differences += record.differences(from: other).map { prefix + $0 }
        }
        return differences
    }
}
