import ArgumentParser
import Foundation
import VitrineCore
import VitrineDownloads
import VitrineNetwork

extension Checksum: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}

/// `vitrine download add`.
struct DownloadAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Puts files on the list of downloads.",
        discussion: """
            An address that is on the list is not added again: the download that is there goes on, or has ended well \
            already. So the same command, run again after it was killed, continues where it was. One that was waited \
            for is taken off the list at its end.
            """)

    @Argument(help: ArgumentHelp("Addresses: http, https.", valueName: "url"))
    var urls: [String]

    @Option(name: [.customShort("o"), .long], help: "File for one address, or a directory. Default: this directory.")
    var output: String?

    @Flag(help: "Show how they come on, and return when they have ended: status 1 if one has no file.")
    var wait = false

    @Flag(help: "Load in this process, with a list of its own, as where nothing outlives it. Implies --wait.")
    var noAgent = false

    @Option(help: "What the file must be, such as sha256:9f86d0…; also sha1, md5. For one address.")
    var checksum: Checksum?

    @Option(name: .customLong("mirror"), help: "Where the file is too; several times for several places.")
    var mirrors: [String] = []

    @Option(
        help: """
            What to do with a file that is there: replace, number, keep. Default: replace a file that --output names, \
            number others. A name that the server chooses never replaces a file.
            """)
    var existing: DownloadRequest.ExistingFile?

    @Option(name: .customLong("header"), help: "A field to send, as 'Name: value'; several times for several fields.")
    var headers: [HeaderArgument] = []

    @Option(help: "The most bytes a second, such as 500kB.")
    var limitRate: ByteCountArgument?

    @Option(help: "How many connections bring each file at once, where its server allows that.")
    var connections = 1

    @Option(name: [.customShort("j"), .long], help: "How many run at once from now on, of all on the list.")
    var parallel: Int?

    @Flag(help: "JSON objects, one a line; with --wait one whenever something changes.")
    var json = false

    func validate() throws {
        try headers.validateNames()
        guard parallel ?? 1 > 0 else { throw ValidationError("--parallel is at least 1") }
        guard (1...64).contains(connections) else { throw ValidationError("--connections is from 1 to 64") }
        guard urls.count == 1 || checksum == nil && mirrors.isEmpty else {
            throw ValidationError("--checksum and --mirror are for a single address")
        }
    }

    func run() async throws {
        let requests = try urls.map(request)
        let manager = noAgent ? DownloadManager() : DownloadCommand.manager()
        if let parallel { try await manager.setLimit(parallel, perHost: parallel) }
        let listed = try await manager.downloads
        var downloads: [Download] = [], failures = 0
        for (url, request) in zip(urls, requests) {
            do throws(DownloadError) {
                // One that is under way may have come to its end by now: started again it would begin anew.
                if let known = listed.last(where: { Self.isSeenTo($0, request) }) {
                    downloads.append(known)
                } else {
                    downloads.append(try await manager.start(request))
                }
            } catch {
                Diagnostics.write("\(url): \(error)")
                failures += 1
            }
        }
        if wait || noAgent {
            failures += await DownloadFollower(asJSON: json).follow(downloads)
            // What was told is no longer of interest.
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

    /// Whether a download of the same goes on without being told to, or has ended well at the same place without
    /// anybody having waited for it.
    private static func isSeenTo(_ download: Download, _ request: DownloadRequest) -> Bool {
        guard download.url == request.url, let status = download.status else { return false }
        switch status.state {
        case .waiting, .running: return true
        case .completed:
            let name = request.name ?? FilePath.name(of: status.path)
            return FilePath.join(request.directory ?? "", name) == status.path && FilePath.exists(status.path)
        default: return false
        }
    }

    private func address(_ text: String) throws -> URL {
        guard let url = URL(string: text), url.scheme != nil else {
            throw ValidationError("\(text) is no address: http:// is missing")
        }
        return url
    }
}

extension DownloadRequest.ExistingFile: ExpressibleByArgument {}
