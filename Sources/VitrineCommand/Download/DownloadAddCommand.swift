import ArgumentParser
import VitrineCore
import VitrineDownloads
import VitrineNetwork

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Checksum: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}

/// `vitrine download add`.
struct DownloadAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Adds addresses to the list of downloads.",
        discussion: """
            A download that is on the list already is not added again, so that repeating the command resumes it. An \
            address with another checksum, file or other options is a second download. With --wait, finished downloads \
            are removed from the list.
            """)

    @Argument(help: ArgumentHelp("Addresses: http or https.", valueName: "url"))
    var urls: [String]

    @Option(
        name: [.customShort("o"), .long], help: "File for one address, or directory. (default: the current directory)",
        completion: .file())
    var output: String?

    @Flag(help: "Show the progress and wait. The exit status is 1 if a download fails.")
    var wait = false

    @Flag(help: "Download in this process, with its own list, for which commands wait in turn. Implies --wait.")
    var noAgent = false

    @Option(help: "Checksum of a single file: sha256:, sha1: or md5: with hexadecimal digits. (default: none)")
    var checksum: Checksum?

    @Option(
        name: .customLong("mirror"),
        help: ArgumentHelp("Another address of a single file. Can be repeated. (default: none)", valueName: "url"))
    var mirrors: [String] = []

    @Option(
        help: """
            Action for an existing file: replace, number (add a number) or keep. (default: replace the file of \
            --output, number others)
            """)
    var existing: DownloadRequest.ExistingFile?

    @Option(
        name: .customLong("header"), help: "Header field to send, as 'Name: value'. Can be repeated. (default: none)")
    var headers: [HeaderArgument] = []

    @Option(
        help: ArgumentHelp(
            "Largest number of bytes per second, such as 500kB. (default: no limit)", valueName: "bytes"))
    var limitRate: ByteCountArgument?

    @Option(help: "Connections per file, from 1 to 64, if the server supports ranges.")
    var connections = 1

    @Option(
        name: [.customShort("j"), .long],
        help: "Downloads of the list that run at a time, from now on. (default: the last setting)")
    var parallel: Int?

    @Flag(help: "Print one JSON object per line; with --wait one for every change.")
    var json = false

    func validate() throws {
        try headers.validateNames()
        guard parallel ?? 1 > 0 else { throw ValidationError("--parallel is a number from 1") }
        guard (1...64).contains(connections) else { throw ValidationError("--connections is a number from 1 to 64") }
        guard urls.count == 1 || checksum == nil && mirrors.isEmpty else {
            throw ValidationError("--checksum and --mirror take a single address")
        }
    }

    func run() async throws {
        let requests = try urls.map(request)
        let manager = noAgent ? DownloadManager() : DownloadCommand.manager()
        let listed = noAgent ? try await DownloadCommand.list(of: manager) : try await manager.restore()
        if let parallel { try await manager.setLimit(parallel, perHost: parallel) }
        var downloads: [Download] = [], failures = 0
        for (url, request) in zip(urls, requests) {
            do throws(DownloadError) {
                // A listed download can have completed by now. A second start would download it again.
                if request.checksum == nil, let known = listed.last(where: { Self.isComplete($0, request) }) {
                    downloads.append(known)
                } else {
                    downloads.append(try await manager.start(request))
                }
            } catch {
                Diagnostics.write("\(url): \(ErrorText.nested(error, about: url))")
                failures += 1
            }
        }
        if wait || noAgent {
            failures += await DownloadFollower(downloads, asJSON: json).follow()
            // The results are printed, so that the list no longer needs them.
            for download in downloads where download.status?.state == .completed { try? await download.remove() }
        } else {
            for download in downloads {
                if let status = download.status { DownloadReport(status).print(asJSON: json) }
            }
        }
        await manager.close()
        if failures > 0 { throw ExitCode(1) }
    }

    private func request(_ text: String) throws -> DownloadRequest {
        var request = DownloadRequest(try address(text))
        request.mirrors = try mirrors.map(address)
        let here = FilePath.current
        let target = output.map { FilePath.isAbsolute($0) ? $0 : FilePath.join(here, $0) } ?? here
        if output == nil || target.hasSuffix("/") || urls.count > 1 || Directory.isDirectory(target) {
            request.directory = target
        } else {
            request.directory = FilePath.parent(of: target)
            request.name = FilePath.name(of: target)
        }
        request.checksum = checksum
        request.connections = connections
        request.existing = existing ?? (request.name == nil ? .number : .replace)
        for header in headers { request.headers.append(header.name, header.value) }
        request.maximumRate = limitRate?.size
        return request
    }

    /// Whether a listed download has completed at the path of a request.
    private static func isComplete(_ download: Download, _ request: DownloadRequest) -> Bool {
        guard download.url == request.url, let status = download.status, status.state == .completed else { return false }
        let name = request.name ?? FilePath.name(of: status.path)
        return FilePath.join(request.directory ?? "", name) == status.path && FilePath.exists(status.path)
    }

    private func address(_ text: String) throws -> URL {
        guard let url = URL(string: text), url.scheme != nil else {
            throw ValidationError("\(text) is not an address; addresses begin with https:// or http://")
        }
        return url
    }
}

extension DownloadRequest.ExistingFile: ExpressibleByArgument {
    public init?(argument: String) { self.init(name: argument) }
}
