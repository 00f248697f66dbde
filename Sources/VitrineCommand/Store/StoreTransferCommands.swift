import ArgumentParser
import VitrineStores

/// `vitrine store import`: all files of a directory.
struct StoreImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Saves all files directly in a directory, under their names.")

    @OptionGroup var selection: StoreSelection
    @OptionGroup var picture: StorePictureOptions

    @Argument(help: "The directory.")
    var directory: String

    @Flag(help: "Replace what is there by the same names.")
    var replace = false

    func run() async throws {
        let steps =
            selection.files
            ? selection.fileStore.importFiles(from: directory, replacing: replace)
            : selection.imageStore(picture.configuration).importPictures(from: directory, replacing: replace)
        try await selection.follow(steps)
    }
}

/// `vitrine store export`: all files into a directory.
struct StoreExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Copies all files into a directory, under their names.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "The directory; made if it is missing.")
    var directory: String

    @Flag(help: "The thumbnails instead of the pictures.")
    var thumbnail = false

    @Flag(help: "Replace what is there by the same names.")
    var replace = false

    func run() async throws {
        let steps =
            selection.files
            ? selection.fileStore.exportFiles(to: directory, replacing: replace)
            : selection.imageStore().exportPictures(
                to: directory, as: thumbnail ? .thumbnail : .original, replacing: replace)
        try await selection.follow(steps)
    }
}

extension StoreSelection {
    /// Shows how far a transfer is, and what of it failed.
    func follow(_ steps: AsyncThrowingStream<ExportProgress, any Error>) async throws {
        var failures = 0
        var bar: ProgressBar?
        try await reportingFailures {
            for try await step in steps {
                let shown = bar ?? ProgressBar(total: step.total)
                bar = shown
                shown.clear()
                if step.failure != nil { failures += 1 }
                report(
                    StoreLine(
                        name: step.name, done: step.done, total: step.total, error: step.failure.map { "\($0)" }))
                shown.advance()
            }
        }
        bar?.clear()
        if failures > 0 { throw ExitCode(1) }
    }
}
