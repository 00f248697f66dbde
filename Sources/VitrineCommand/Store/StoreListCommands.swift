import ArgumentParser
import VitrineCore
import VitrineStores

/// `vitrine store list`: what there is.
struct StoreListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Lists the files.")

    enum Order: String, ExpressibleByArgument, CaseIterable { case name, size, date }

    @OptionGroup var selection: StoreSelection

    @Option(help: "What to sort by.")
    var by = Order.name

    @Flag(help: "Largest, latest, last first.")
    var reverse = false

    func run() async throws {
        try await selection.reportingFailures {
            let order: DirectoryListing.Order = switch by {
            case .name: .name
            case .size: .size
            case .date: .modified
            }
            for item in try await selection.ownFiles.list(by: order, ascending: !reverse) {
                guard selection.json else {
                    Output.name(item.name)
                    continue
                }
                selection.report(
                    StoreLine(
                        name: item.name, path: try selection.fileStore.path(of: item.name), bytes: item.size.bytes,
                        modified: item.modified / .seconds(1)))
            }
        }
    }
}

/// `vitrine store exists`: whether there is a file; also the exit status says so.
struct StoreExistsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exists", abstract: "Says whether there is a file, also by the exit status: 0 or 1.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Its name.")
    var name: String

    func run() async throws {
        let exists = await selection.ownFiles.exists(name)
        if selection.json {
            selection.report(StoreLine(name: name, exists: exists))
        } else {
            Output.row(exists ? "yes" : "no")
        }
        if !exists { throw ExitCode(1) }
    }
}

/// `vitrine store path`: where a file is or would be.
struct StorePathCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path", abstract: "Prints where a file is or would be.")

    @OptionGroup var selection: StoreSelection

    @Argument(help: "Its name.")
    var name: String

    @Flag(help: "The thumbnail instead of the picture.")
    var thumbnail = false

    func run() async throws {
        try await selection.reportingFailures {
            let path =
                selection.files
                ? try selection.fileStore.path(of: name)
                : try selection.imageStore().path(of: name, as: thumbnail ? .thumbnail : .original)
            selection.report(StoreLine(name: name, path: path))
        }
    }
}

extension StoreSelection {
    /// The files that are the store's own, whichever kind it is.
    var ownFiles: FileStore { files ? fileStore : imageStore().files }
}
