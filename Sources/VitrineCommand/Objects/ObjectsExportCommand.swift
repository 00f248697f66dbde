import ArgumentParser
import Foundation
import VitrineCore
import VitrineModels

/// `vitrine objects export`: everything as JSON.
struct ObjectsExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes the objects as JSON, one a line with its group, key and schemas.",
        discussion: "PersistentCoder.decode(_:fromJSON:) reads the member \"object\" of a line back.")

    @OptionGroup var selection: ObjectsSelection
    @OptionGroup var scope: ObjectsScope

    @Option(name: [.customShort("o"), .long], help: "File to write; standard output without it.")
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
                    // The others are exported all the same.
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
