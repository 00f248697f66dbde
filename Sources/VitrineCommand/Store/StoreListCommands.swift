import ArgumentParser
import VitrineCore
import VitrineStores

/// `vitrine store list`: lists the files.
struct StoreListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Lists the files of the store.")

    enum Order: String, ExpressibleByArgument, CaseIterable { case name, size, date }

    @OptionGroup var selection: StoreSelection
    @OptionGroup var lines: JSONOption

    @Option(help: "Order of the list.")
    var by = Order.name

    @Flag(help: "Reverse the order: largest, newest or last name first.")
    var reverse = false

    func run() async throws {
        try selection.requireDirectory()
        try await selection.reportingFailures {
            let order: DirectoryListing.Order = switch by {
            case .name: .name
            case .size: .size
            case .date: .modified
            }
            for item in try await selection.ownFiles.list(by: order, ascending: !reverse) {
                guard lines.json else {
                    Output.name(item.name)
                    continue
                }
                lines.report(
                    StoreLine(
                        name: item.name, path: try selection.fileStore.path(of: item.name), bytes: item.size.bytes,
                        modified: item.modified / .seconds(1)))
            }
        }
    }
}

/// `vitrine store exists`: whether a file exists, also as exit status.
struct StoreExistsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exists", abstract: "Prints yes or no. The exit status is 0 if the file exists, else 1.")

    @OptionGroup var selection: StoreSelection
    @OptionGroup var lines: JSONOption

    @Argument(help: "Name of the file.")
    var name: String

    func run() async throws {
        let exists = await selection.ownFiles.exists(name)
        if lines.json {
            lines.report(StoreLine(name: name, exists: exists))
        } else {
            Output.row(exists ? "yes" : "no")
        }
        if !exists { throw ExitCode(1) }
    }
}

/// `vitrine store path`: the path of a file.
struct StorePathCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path", abstract: "Prints the path of a file, also of one that does not exist.")

    @OptionGroup var selection: StoreSelection
    @OptionGroup var lines: JSONOption

    @Argument(help: "Name of the file.")
    var name: String

    @Flag(help: "Print the path of the thumbnail.")
    var thumbnail = false

    func run() async throws {
        try await selection.reportingFailures {
            let path =
                selection.files
                ? try selection.fileStore.path(of: name)
                : try selection.imageStore().path(of: name, as: thumbnail ? .thumbnail : .original)
            lines.report(StoreLine(name: name, path: path))
        }
    }
}

extension StoreSelection {
    /// The files themselves, in both kinds of stores.
    var ownFiles: FileStore { files ? fileStore : imageStore().files }
}

/// `vitrine store import`: saves the files of a directory.
struct StoreImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Saves all files of a directory, without its subdirectories.")

    @OptionGroup var selection: StoreSelection
    @OptionGroup var lines: JSONOption
    @OptionGroup var image: StoreImageOptions

    @OptionGroup var progress: ProgressOption

    @Argument(help: "Directory to read.", completion: .directory)
    var directory: String

    @Flag(help: "Replace existing files of the same names.")
    var replace = false

    func run() async throws {
        let steps =
            selection.files
            ? selection.fileStore.importFiles(from: directory, replacing: replace)
            : selection.imageStore(image.configuration).importImages(from: directory, replacing: replace)
        try await selection.follow(steps, lines, isQuiet: progress.quiet)
    }
}

/// `vitrine store export`: copies all files into a directory.
struct StoreExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Copies all files of the store into a directory.")

    @OptionGroup var selection: StoreSelection
    @OptionGroup var lines: JSONOption

    @OptionGroup var progress: ProgressOption

    @Argument(help: "Directory to write; it is made if needed.", completion: .directory)
    var directory: String

    @Flag(help: "Copy the thumbnails instead of the images.")
    var thumbnail = false

    @Flag(help: "Replace existing files of the same names.")
    var replace = false

    func run() async throws {
        try selection.requireDirectory()
        let steps =
            selection.files
            ? selection.fileStore.exportFiles(to: directory, replacing: replace)
            : selection.imageStore().exportImages(
                to: directory, as: thumbnail ? .thumbnail : .original, replacing: replace)
        try await selection.follow(steps, lines, isQuiet: progress.quiet)
    }
}

extension StoreSelection {
    /// Shows the progress of a transfer, and prints its files and failures.
    func follow(
        _ steps: AsyncThrowingStream<ExportProgress, any Error>, _ lines: JSONOption, isQuiet: Bool
    ) async throws {
        var failures = 0
        var bar: ProgressBar?
        try await reportingFailures {
            for try await step in steps {
                let shown = bar ?? ProgressBar(total: step.total, isQuiet: isQuiet)
                bar = shown
                shown.begin(step.done, step.name)
                shown.clear()
                if step.failure != nil { failures += 1 }
                if !isQuiet || lines.json || step.failure != nil {
                    lines.report(
                        StoreLine(
                            name: step.name, done: step.done, total: step.total, error: step.failure.map(\.reason)))
                }
                shown.finish(step.done)
            }
        }
        bar?.clear()
        if failures > 0 { throw ExitCode(1) }
    }
}
