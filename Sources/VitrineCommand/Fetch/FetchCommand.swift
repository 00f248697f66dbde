import ArgumentParser
import VitrineCache
import VitrineCore
import VitrineNetwork

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine fetch`: loads addresses into the cache, and into files.
struct FetchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch",
        abstract: "Loads web addresses into the cache, and writes them to files.",
        discussion: """
            Four addresses load at a time. One failed address does not stop the others. Fresh entries of the cache \
            are not loaded again; expired entries are revalidated with the server. Bodies above 32 MiB go to files only.

              vitrine fetch https://example.org/lake.jpg -o lake.jpg
              vitrine fetch https://example.org/lake.jpg --size 320 -o small.jpg

            An interrupted fetch into a file resumes when the same command runs again, if the server confirms that \
            the file has not changed. NAME.vitrine-part holds the received bytes until then. In a directory, a number \
            is added to the names of files that exist already.
            """)

    @Argument(help: ArgumentHelp("Addresses: http, https, file or data.", valueName: "url"))
    var urls: [String]

    @Option(
        name: [.customShort("o"), .long],
        help: "File for one address, directory for several, - for standard output. (default: the cache only)",
        completion: .file(), transform: OutputArgument.normalized)
    var output: String?

    @Option(help: "Write images scaled down to this size: WxH, Wx, xH, or one number. (default: the bytes as received)")
    var size: SizeArgument?

    @OptionGroup(title: "Request") var request: RequestOptions

    @Option(help: "Last level to search: memory, disk or network. Memory and disk also return expired entries.")
    var depth = DepthArgument.network

    @Option(help: "Key in the cache, for addresses that change, such as signed ones. (default: the address)")
    var id: String?

    @Flag(help: "Revalidate fresh entries of the cache too.")
    var refresh = false

    @Flag(help: "Neither read nor fill the cache.")
    var noCache = false

    @OptionGroup var decoder: DecoderOptions
    @OptionGroup var progress: ProgressOption

    @Flag(help: "Print one JSON object per address instead of text.")
    var json = false

    /// How many addresses load at a time.
    private static let width = 4

    func validate() throws {
        guard id == nil || urls.count == 1 else { throw ValidationError("--id takes a single address") }
        guard depth == .network || !refresh else { throw ValidationError("--refresh needs --depth network") }
        guard size == nil || output != nil && !noCache else {
            throw ValidationError("--size needs --output, and cannot be used with --no-cache")
        }
        if size != nil, let output { try OutputArgument.checkFormat(of: output) }
        guard noCache else { return }
        guard output != nil else {
            throw ValidationError("--no-cache needs --output, as the result would be lost otherwise")
        }
        guard depth == .network, !refresh else {
            throw ValidationError("--depth and --refresh cannot be used with --no-cache")
        }
    }

    func run() async throws {
        let items = try FetchPlan.items(urls, output: output)
        let display = TransferDisplay(total: items.count, isQuiet: progress.quiet)
        let loader = request.loader()
        let cache = noCache ? nil : FetchCache(loader: loader, depth: depth.depth, refreshes: refresh)
        let job = FetchJob(
            loader: loader, cache: cache, options: request, identity: id, size: size?.box, display: display)
        let drawing = Task { await display.run() }
        var failures = 0
        // The display shows names and counts: transfers need a line each.
        await Batch.run(items, width: Self.width, progress: nil, name: { _ in "" }) { number, item in
            defer { display.finish() }
            return switch item {
            case .success(let item): await job.run(number, item)
            case .failure(let failure): FetchReport(failure)
            }
        } report: { report in
            display.clear()
            if report.error != nil { failures += 1 }
            if progress.quiet, !json, report.error == nil { return }
            report.print(asJSON: json, toStandardError: output == "-")
        }
        drawing.cancel()
        await drawing.value
        display.clear()
        await cache?.flush()
        if failures > 0 { throw ExitCode(1) }
    }
}

/// The command's names for the levels of the cache.
enum DepthArgument: String, ExpressibleByArgument, CaseIterable {
    case memory, disk, network

    var depth: CacheLevel {
        switch self {
        case .memory: .memory
        case .disk: .disk
        case .network: .source
        }
    }
}

/// The options for the requests of `vitrine fetch`.
struct RequestOptions: ParsableArguments {
    @Option(
        name: .customLong("header"), help: "Header field to send, as 'Name: value'. Can be repeated. (default: none)")
    var headers: [HeaderArgument] = []

    @Flag(help: "Load from public addresses only, also after redirects. Private networks are refused.")
    var publicOnly = false

    @Option(
        help: ArgumentHelp("PEM file of trusted certificates. (default: those of the system)", valueName: "file"),
        completion: .file())
    var cacert: String?

    @Option(help: ArgumentHelp("Largest accepted body, such as 500MB. (default: no limit)", valueName: "bytes"))
    var maxSize: ByteCountArgument?

    @Option(
        help: ArgumentHelp(
            "Longest time of a request. (default: 3600, or no limit with --no-cache)", valueName: "seconds"))
    var maxTime: Int?

    func validate() throws {
        try headers.validateNames()
        guard maxTime ?? 1 > 0 else { throw ValidationError("--max-time is a number of seconds from 1") }
    }

    /// Returns a loader with these options.
    func loader() -> NetworkLoader {
        var configuration = NetworkLoader.Configuration()
        if publicOnly { configuration.policy = .publicOnly }
        #if os(Linux)
        var connections = CurlLoader.Configuration()
        connections.certificateAuthorities = cacert
        return NetworkLoader(CurlLoader(connections), configuration)
        #else
        return NetworkLoader(configuration)
        #endif
    }

    /// Returns the request for an address.
    func request(for url: URL) -> HTTPRequest {
        var request = HTTPRequest(url: url)
        for header in headers { request.headers.append(header.name, header.value) }
        request.maximumBodySize = maxSize?.size ?? .unlimited
        request.totalTimeout = maxTime.map { .seconds($0) }
        return request
    }
}
