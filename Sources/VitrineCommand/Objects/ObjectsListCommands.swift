import ArgumentParser
import VitrineCore
import VitrineModels

/// `vitrine objects list`: one line per object.
struct ObjectsListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the objects: size, time, type, group and key.")

    @OptionGroup var selection: ObjectsSelection
    @OptionGroup var scope: ObjectsScope

    @Option(help: "Only objects of the type with this name.")
    var type: String?

    func run() async throws {
        try await selection.run { store throws(PersistenceError) in
            try scope.forEach(of: store) { entry throws(PersistenceError) in
                guard type == nil || type == entry.type else { return }
                let modified = CacheMoment.text(entry.modified)
                let line = ObjectLine(
                    group: entry.group.path, key: entry.key, type: entry.type, version: entry.version.description,
                    bytes: entry.size.bytes, modified: modified)
                // Keys may hold anything, also what would move the cursor.
                selection.report(
                    line,
                    text: "\(entry.size)  \(modified)  \(entry.type) \(entry.version)  "
                        + "\(entry.group.path.debugDescription) \(entry.key.debugDescription)")
            }
        }
    }
}

/// `vitrine objects groups`: one line per group.
struct ObjectsGroupsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "groups", abstract: "Lists the groups with the number and size of the objects in each itself.")

    @OptionGroup var selection: ObjectsSelection
    @OptionGroup var scope: ObjectsScope

    func run() async throws {
        try await selection.run { store throws(PersistenceError) in
            for group in try scope.groups(of: store) {
                let count = try store.count(in: group)
                guard count > 0 else { continue }
                let size = try store.size(in: group)
                selection.report(
                    ObjectLine(group: group.path, bytes: size.bytes, objects: count),
                    text: "\(count)  \(size)  \(group.path.debugDescription)")
            }
        }
    }
}

/// `vitrine objects show`: one object for people, or as JSON that can be read back.
struct ObjectsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Prints an object; with --json as JSON that the program can read back, with its schemas.")

    @OptionGroup var selection: ObjectsSelection

    @Argument(help: "Key of the object.")
    var key: String

    @Option(help: "Group of the object; the root group without it.")
    var group = ""

    func run() async throws {
        try await selection.run { store throws(PersistenceError) in
            let text =
                selection.json
                ? try store.json(for: key, in: ObjectGroup(group))
                : try store.tree(for: key, in: ObjectGroup(group))?.persistentDescription
            guard let text else {
                throw .unreadable(key: key, group: group, .missingValue(path: "The object"))
            }
            Output.text(Printable.json(text))
        }
    }
}
