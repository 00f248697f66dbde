import ArgumentParser
import VitrineModels

/// `vitrine objects`: what programs keep in stores of objects, read by the schemas in them.
struct ObjectsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "objects",
        abstract: "Looks into stores of objects, without the programs that made them.",
        discussion: "Nothing is changed. Encrypted stores can be read by their programs only.",
        subcommands: [
            ObjectsListCommand.self, ObjectsShowCommand.self, ObjectsGroupsCommand.self, ObjectsExportCommand.self,
            ObjectsVerifyCommand.self, ObjectsMigrateCommand.self,
        ])
}

/// Which store a subcommand is about.
struct ObjectsSelection: ParsableArguments {
    @Argument(help: "File of the store.")
    var store: String

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    /// Opens the store and runs a body; says on standard error why something failed, for exit status 1.
    func run(_ body: (ObjectStore) async throws(PersistenceError) -> Void) async throws {
        do throws(PersistenceError) {
            // A registry of its own: all that is known is what the store has.
            let coder = PersistentCoder(registry: TypeRegistry())
            try await body(ObjectStore(at: store, configuration: .init(coder: coder, isReadOnly: true)))
        } catch {
            Diagnostics.write("vitrine objects: \(error)")
            throw ExitCode(1)
        }
    }

    func report(_ line: ObjectLine, text: @autoclosure () -> String) {
        if json { Output.json(line) } else { Output.row(text()) }
    }
}

/// Which objects of the store.
struct ObjectsScope: ParsableArguments {
    @Option(help: "Only this group and those below it.")
    var group: String?

    /// The groups that are looked at: all of them, or one and those below it.
    func groups(of store: ObjectStore) throws(PersistenceError) -> [ObjectGroup] {
        let group = ObjectGroup(group ?? "")
        return [group] + (try store.groups(below: group))
    }

    /// Calls a body for every object, by groups and keys.
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

/// What is printed about one thing; keys that do not apply are left out.
struct ObjectLine: Encodable {
    var group: String?
    var key: String?
    var type: String?
    var version: String?
    var bytes: Int?
    /// When it was put, as ISO 8601.
    var modified: String?
    var objects: Int?
    /// Whether all is well: with a store that was verified, or with objects that need no migration step.
    var intact: Bool?
    /// The newest version of a type that the store knows.
    var newest: String?
    var differences: [String]?
    var error: String?
}
