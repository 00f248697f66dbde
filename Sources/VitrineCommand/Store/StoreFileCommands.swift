import ArgumentParser
import Foundation
import VitrineCore
import VitrineStores

/// `vitrine store save`: a file under a name.
struct StoreSaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save", abstract: "Saves files, each under its own name or a given one.",
        discussion: "A picture gets a thumbnail. A name that is taken is refused unless --replace is given.")

    @OptionGroup var selection: StoreSelection
    @OptionGroup var picture: StorePictureOptions

    @Argument(help: "Files to save.")
    var inputs: [String]

    @Option(help: "The name, for one file. \"\" makes a new one that sorts by time.")
    var name: String?

    @Flag(help: "Replace what is there by this name.")
    var replace = false

    func validate() throws {
        guard name == nil || inputs.count == 1 else { throw ValidationError("--name takes one file") }
    }

    func run() async throws {
        var failures = 0
        for input in inputs {
            do throws(StoreError) {
                let saved = try await save(input)
                selection.report(StoreLine(name: saved, path: try selection.fileStore.path(of: saved)))
            } catch {
                failures += 1
                selection.report(StoreLine(name: input, error: "\(error)"))
            }
        }
        if failures > 0 { throw ExitCode(1) }
    }

    private func save(_ input: String) async throws(StoreError) -> String {
        let own = FilePath.name(of: input)
        let given = name ?? own
        if selection.files {
            guard given.isEmpty else {
                try await selection.fileStore.save(fileAt: input, as: given, replacing: replace)
                return given
            }
            let bytes: [UInt8]
            do throws(FileError) { bytes = try FileContents.read(input) } catch { throw .file(error) }
            let kind = FileName.pathExtension(of: own)
            return try await selection.fileStore.save(bytes, fileExtension: kind.isEmpty ? nil : kind)
        }
        return try await selection.imageStore(picture.configuration).save(
            fileAt: input, as: given.isEmpty ? nil : given, replacing: replace)
    }
}

/// `vitrine store load`: a file out of the store.
struct StoreLoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "load", abstract: "Writes a file of the store.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Its name.")
    var name: String

    @Flag(help: "The thumbnail instead of the picture.")
    var thumbnail = false

    @Option(name: [.customShort("o"), .long], help: "File to write; standard output without it.")
    var output: String?

    func run() async throws {
        try await selection.reportingFailures {
            let bytes =
                thumbnail && !selection.files
                ? try await selection.imageStore().load(name, as: .thumbnail)
                : try await selection.ownFiles.load(name)
            guard let output, output != "-" else { return Output.contents(bytes) }
            do throws(FileError) { try AtomicFile.write(bytes, to: output) } catch { throw StoreError.file(error) }
        }
    }
}

/// `vitrine store rename`: another name for a file.
struct StoreRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Renames a file, and its thumbnail with it.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Its name.")
    var name: String

    @Argument(help: "Its new name.")
    var newName: String

    @Flag(help: "Replace what is there by the new name.")
    var replace = false

    func run() async throws {
        try await selection.reportingFailures {
            if selection.files {
                try await selection.fileStore.rename(name, to: newName, replacing: replace)
            } else {
                try await selection.imageStore().rename(name, to: newName, replacing: replace)
            }
        }
    }
}

/// `vitrine store delete`: files less.
struct StoreDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Deletes files, and their thumbnails with them.",
        discussion: "A name that is not there is no failure.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Their names.")
    var names: [String]

    func run() async throws {
        try await selection.reportingFailures {
            for name in names {
                if selection.files {
                    try await selection.fileStore.delete(name)
                } else {
                    try await selection.imageStore().delete(name)
                }
            }
        }
    }
}
