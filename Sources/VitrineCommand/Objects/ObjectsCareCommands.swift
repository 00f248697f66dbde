import ArgumentParser
import VitrineModels

/// `vitrine objects verify`: whether everything can be read.
struct ObjectsVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Reads the file and every object; exit status 1 if anything is damaged.")

    @OptionGroup var selection: ObjectsSelection

    func run() async throws {
        var isIntact = false
        try await selection.run { store throws(PersistenceError) in
            let found = try await store.verify()
            isIntact = found.isIntact
            for text in found.file { selection.report(ObjectLine(error: text), text: "file: \(text)") }
            for damage in found.damaged {
                selection.report(
                    ObjectLine(group: damage.group.path, key: damage.key, error: "\(damage.reason)"),
                    text: "\(damage.group.path.debugDescription) \(damage.key.debugDescription): \(damage.reason)")
            }
            selection.report(
                ObjectLine(objects: found.objects, intact: isIntact),
                text: "\(found.objects) objects, \(isIntact ? "all intact" : "\(found.damaged.count) damaged")")
        }
        if !isIntact { throw ExitCode(1) }
    }
}

/// `vitrine objects migrate --dry-run`: what bringing everything up to date would take.
struct ObjectsMigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Tells which objects are of older versions, and what their migration has to do.",
        discussion: """
            The newest version of each type that the store knows counts as the present one. Added properties may have \
            default values, which only the program knows.
            """)

    @OptionGroup var selection: ObjectsSelection

    @Flag(help: "Needed: the steps of a migration are in the program, which alone can run them.")
    var dryRun = false

    func validate() throws {
        if !dryRun { throw ValidationError("migrate needs --dry-run: only the program has the steps") }
    }

    func run() async throws {
        try await selection.run { store throws(PersistenceError) in
            let versions = try store.storedVersions()
            for version in versions where version.count > 0 {
                guard let newest = versions.last(where: { $0.type == version.type }) else { continue }
                report(version, newest, store.registry)
            }
        }
    }

    private func report(
        _ stored: ObjectStore.StoredVersion, _ newest: ObjectStore.StoredVersion, _ registry: TypeRegistry
    ) {
        let differences = Self.differences(stored, newest, registry)
        let line = ObjectLine(
            type: stored.type, version: stored.version.description, objects: stored.count,
            intact: differences.isEmpty, newest: newest.version.description, differences: differences)
        let what =
            if stored.fingerprint == newest.fingerprint {
                "up to date"
            } else if differences.isEmpty {
                "becomes \(newest.version) by itself"
            } else {
                "needs steps to \(newest.version): \(differences.joined(separator: ", "))"
            }
        selection.report(line, text: "\(stored.count)  \(stored.type) \(stored.version)  \(what)")
    }

    /// What changed in a type and in all that is inside it.
    private static func differences(
        _ old: ObjectStore.StoredVersion, _ new: ObjectStore.StoredVersion, _ registry: TypeRegistry
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
