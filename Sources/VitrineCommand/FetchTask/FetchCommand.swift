import ArgumentParser
import Foundation
import VitrineCore
import VitrineNetwork

/// `vitrine fetch`: brings what addresses stand for.
struct FetchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "Brings what web addresses stand for into the cache, and to files.",
        discussion: """
            Several addresses are loaded at once; one that fails does not stop the others. What is fresh in the cache \
            is not loaded; of what has expired the server is asked whether it has changed. Bodies of more than 32 MiB \
            go to their files only. A file that is there is replaced only by a whole one, and a fetch that broke off \
            goes on where it was when it is called again, if the server can tell that it has not changed meanwhile: \
            what is there of it is in NAME.vitrine-part.
            """)

    @Argument(help: ArgumentHelp("Addresses: http, https, file, data.", valueName: "url"))
    var urls: [String]

    @OptionGroup var request: RequestOptions
    @OptionGroup var isolation: IsolationOption

    @Option(help: "What the thing fetched is known by, where its address changes, as signed ones do.")
    var id: String?

    @Option(help: "How far to go: memory, disk, network. Up to disk, what has expired counts as well.")
    var depth = DepthArgument.network

    @Option(help: "Write pictures no larger than this instead of what was sent: WxH, Wx, xH, or one number.")
    var size: SizeArgument?

    @Flag(help: "Ask servers however fresh what is in the cache.")
    var refresh = false

    @Flag(help: "Neither use nor fill the cache.")
    var noCache = false

    @Option(name: [.customShort("o"), .long], help: "File for one address, - for standard output, directory for several.")
    var output: String?

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    /// How many are loaded at once.
    private static let width = 4

    func validate() throws {
        guard id == nil || urls.count == 1 else { throw ValidationError("--id is for a single address") }
        guard depth == .network || !refresh else { throw ValidationError("--refresh needs --depth network") }
        guard size == nil || output != nil && !noCache else {
            throw ValidationError("--size needs -o, and does not go with --no-cache")
        }
        guard noCache else { return }
        guard output != nil else { throw ValidationError("--no-cache needs -o: there is nowhere else to go") }
        guard depth == .network, !refresh else {
            throw ValidationError("--no-cache leaves nothing for --depth and --refresh")
        }
    }

    func run() async throws {
        let items = try FetchPlan.items(urls, output: output)
        let board = ProgressDisplay()
        let loader = request.loader()
        let cache = noCache ? nil : FetchCache(loader: loader, depth: depth.depth, refreshes: refresh)
        let job = FetchJob(
            loader: loader, cache: cache, options: request, identity: id, size: size?.box, board: board)
        let drawing = Task { await board.run() }
        var failures = 0
        await Batch.run(items, width: Self.width, showsProgress: false) { number, item in
            switch item {
            case .success(let item): await job.run(number, item)
            case .failure(let failure): FetchReport(failure)
            }
        } report: { report in
            board.clear()
            if report.error != nil { failures += 1 }
            report.print(asJSON: json, toStandardError: output == "-")
        }
        drawing.cancel()
        await drawing.value
        board.clear()
        await cache?.flush()
        if failures > 0 { throw ExitCode(1) }
    }
}
