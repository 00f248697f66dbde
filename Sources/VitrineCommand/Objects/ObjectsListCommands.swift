import ArgumentParser
import VitrineCore
import VitrineModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine objects list`: one line per object.
struct ObjectsListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists objects with size, time, type, group and key.")

    @OptionGroup var selection: ObjectsSelection
    @OptionGroup var scope: ObjectsScope

    @Option(help: "List only objects of this type. (default: all types)")
    var type: String?

    func run() async throws {
        try await selection.run { store throws(PersistenceError) in
            try scope.forEach(of: store) { entry throws(PersistenceError) in
                guard type == nil || type == entry.type else { return }
                let modified = CacheMoment.text(entry.modified)
                let line = ObjectLine(
                    group: entry.group.path, key: entry.key, type: entry.type, version: entry.version.description,
                    bytes: entry.size.bytes, modified: modified)
                // Keys can contain control characters.
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
        commandName: "groups", abstract: "Lists groups with the number and size of their own objects.")

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

/// `vitrine objects show`: one object as text, or as JSON that programs can decode.
struct ObjectsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Prints an object. With --json, programs can decode the output.")

    @OptionGroup var selection: ObjectsSelection

    @Argument(help: "Key of the object.")
    var key: String

    @Option(help: "Group of the object. (default: none)")
    var group: String?

    func run() async throws {
        try await selection.run { store throws(PersistenceError) in
            let text =
                selection.json
                ? try store.json(for: key, in: GroupPath(group ?? ""))
                : try store.tree(for: key, in: GroupPath(group ?? ""))?.persistentDescription
            guard let text else {
                throw .unreadable(key: key, group: group ?? "", .missingValue(path: "The object"))
            }
            Output.text(Printable.json(text))
        }
    }
}

/// `vitrine objects export`: everything as JSON.
struct ObjectsExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes objects as JSON lines with group, key and schemas.",
        discussion: "PersistentCoder.decode(_:fromJSON:) decodes the member \"object\" of a line.")

    @OptionGroup var selection: ObjectsSelection
    @OptionGroup var scope: ObjectsScope

    @Option(
        name: [.customShort("o"), .long], help: "File to write. (default: standard output)", completion: .file(),
        transform: OutputArgument.normalized)
    var output: String?

    func run() async throws {
        var failed = 0
        try await selection.run { store throws(PersistenceError) in
            let file = try writer()
            try scope.forEach(of: store) { entry throws(PersistenceError) in
                do throws(PersistenceError) {
                    guard let json = try store.json(for: entry.key, in: entry.group) else { return }
                    try write(line(entry, json), to: file)
                } catch .unreadable(let key, let group, let reason) {
                    // The export continues with the other objects.
                    failed += 1
                    Diagnostics.write("vitrine objects: \(PersistenceError.unreadable(key: key, group: group, reason))")
                }
            }
            do throws(FileError) {
                try file?.commit()
            } catch {
                throw .file(error)
            }
        }
        if failed > 0 { throw ExitCode(1) }
    }

    private func writer() throws(PersistenceError) -> AtomicFileWriter? {
        guard let output, output != "-" else { return nil }
        if InputFiles([(selection.store, selection.store)]).refusal(of: output) != nil {
            throw .file(.untrusted(path: output, reason: "it is the object store; name another file with -o"))
        }
        do throws(FileError) {
            return try AtomicFileWriter(path: output)
        } catch {
            throw .file(error)
        }
    }

    private func line(_ entry: ObjectEntry, _ json: String) -> [UInt8] {
        let head = JSONLine.text(
            ObjectLine(
                group: entry.group.path, key: entry.key, type: entry.type, version: entry.version.description))
        return Array((head.dropLast() + ",\"object\":" + Printable.json(json) + "}\n").utf8)
    }

    private func write(_ line: [UInt8], to file: AtomicFileWriter?) throws(PersistenceError) {
        guard let file else { return Output.contents(line) }
        do throws(FileError) {
            try file.write(line)
        } catch {
            throw .file(error)
        }
    }
}
