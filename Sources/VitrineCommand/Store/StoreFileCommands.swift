import ArgumentParser
import VitrineCore
import VitrineStores

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine store save`: saves files.
struct StoreSaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save", abstract: "Saves files under their names.",
        discussion: "An existing name is an error without --replace.")

    @OptionGroup var selection: StoreSelection
    @OptionGroup var lines: JSONOption
    @OptionGroup var image: StoreImageOptions

    @Argument(help: "Files to save.", completion: .file())
    var inputs: [String]

    @Option(help: "Name of a single file; an empty name generates one that sorts by time. (default: the file's name)")
    var name: String?

    @Flag(help: "Replace existing files of the same names.")
    var replace = false

    func validate() throws {
        guard name == nil || inputs.count == 1 else { throw ValidationError("--name takes a single file") }
    }

    func run() async throws {
        var failures = 0
        for input in inputs {
            do throws(StoreError) {
                let saved = try await save(input)
                lines.report(StoreLine(name: saved, path: try selection.fileStore.path(of: saved)))
            } catch {
                failures += 1
                lines.report(StoreLine(name: input, error: error.reason))
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
        return try await selection.imageStore(image.configuration).save(
            fileAt: input, as: given.isEmpty ? nil : given, replacing: replace)
    }
}

/// `vitrine store load`: writes a file of the store.
struct StoreLoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load", abstract: "Writes a file of the store to a file or standard output.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Name of the file.")
    var name: String

    @Flag(help: "Load the thumbnail instead of the image.")
    var thumbnail = false

    @Option(
        name: [.customShort("o"), .long], help: "File to write. (default: standard output)", completion: .file(),
        transform: OutputArgument.normalized)
    var output: String?

    func run() async throws {
        try await selection.reportingFailures {
            let bytes =
                thumbnail && !selection.files
                ? try await selection.imageStore().load(name, as: .thumbnail)
                : try await selection.ownFiles.load(name)
            guard let output, output != "-" else { return Output.contents(bytes) }
            do throws(FileError) {
                try AtomicFile.write(bytes, to: output)
            } catch {
                throw InputFailure(name: output, reason: "cannot write it: \(error.writeCause)")
            }
        }
    }
}

/// `vitrine store rename`: renames a file.
struct StoreRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Renames a file and its thumbnail.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Name of the file.")
    var name: String

    @Argument(help: "New name of the file.")
    var newName: String

    @Flag(help: "Replace an existing file of the new name.")
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

/// `vitrine store delete`: deletes files.
struct StoreDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Deletes files and their thumbnails.",
        discussion: "A name that does not exist is not an error.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Names of the files.")
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
