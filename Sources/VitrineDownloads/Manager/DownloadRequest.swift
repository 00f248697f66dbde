#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore
public import VitrineNetwork

/// The address of a download, its destination and its conditions.
///
/// ```swift
/// var request = DownloadRequest(url)
/// request.checksum = Checksum("sha256:…")
/// request.existing = .number
/// let download = try await DownloadManager.shared.start(request)
/// ```
public struct DownloadRequest: Sendable, Hashable {
    /// The treatment of an existing file with the name of the download.
    public enum ExistingFile: Sendable, Hashable {
        /// The new file replaces it once it is complete, if the request or its address gives the name.
        ///
        /// A name that the server chooses never replaces a file; the new file gets a number as with ``number``.
        case replace
        /// The existing file stays, and the new file gets a number: `name (2).txt`.
        case number
        /// The existing file stays and the download fails, before it starts if the name is known by then.
        case keep

        /// The name in journals, messages of the agent and command lines.
        package var name: String {
            switch self {
            case .replace: "replace"
            case .number: "number"
            case .keep: "keep"
            }
        }

        /// - Returns: nil for any other name.
        package init?(name: String) {
            guard let found = [Self.replace, .number, .keep].first(where: { $0.name == name }) else { return nil }
            self = found
        }
    }

    /// The address, `http` or `https`.
    public var url: URL
    /// Other addresses of the same file, which are tried in order if ``url`` fails.
    public var mirrors: [URL] = []
    /// The directory of the file, which is created if it is missing. Default: the directory of the manager.
    public var directory: String?
    /// The name of the file. Default: the name that the server proposes, or the last component of the address.
    public var name: String?
    /// The treatment of an existing file with that name. Default: ``ExistingFile/replace``.
    public var existing = ExistingFile.replace
    /// Header fields to send. They are stored in the journal, which only this user can read.
    public var headers = HTTPHeaders()
    /// The priority among waiting downloads.
    public var priority = RequestPriority.normal
    /// The expected digest of the file.
    public var checksum: Checksum?
    /// The expected length of the file, in bytes.
    public var expectedSize: Int?
    /// The maximum number of bytes per second. Default: no limit.
    public var maximumRate: ByteCount?
    /// The number of connections, each of which loads pieces of the file. Default: 1.
    ///
    /// Several connections are faster where each of them is slow. They are used if the server supports ranges with a
    /// strong validator and the file has at least two megabytes.
    public var connections = 1
    /// The number of attempts without progress after which the download fails. Default: 5.
    ///
    /// An attempt asks each address once. It continues as long as it makes progress that can be resumed, which a
    /// compressed body cannot. Refused connections and unknown hosts count; a missing network does not. The delays
    /// between attempts grow from about 2 to 60 seconds.
    public var attempts = 5
    /// The maximum duration of one transfer. Default: no limit.
    ///
    /// A transfer that ends by it keeps its partial file, and the next attempt resumes it.
    public var maximumTime: Duration?

    /// Creates a request with the default options.
    ///
    /// - Parameter url: The address, `http` or `https`.
    public init(_ url: URL) { self.url = url }

    /// The maximum number of connections: more would be an attack on the server.
    static let highestConnections = 64

    /// Throws for a request that cannot succeed.
    func check() throws(DownloadError) {
        for url in [url] + mirrors {
            let text = SourceURL.withoutCredentials(url.absoluteString)
            guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
                throw .invalidURL(text, reason: "it is neither http nor https")
            }
            guard let host = url.host(), !host.isEmpty else { throw .invalidURL(text, reason: "it names no host") }
        }
        if let name, DownloadName.plain(name) != name {
            throw .invalidDestination(name, reason: "it is not the plain name of a file")
        }
        if let directory, !FilePath.isAbsolute(directory) || directory.utf8.contains(0) {
            throw .invalidDestination(directory, reason: "the path of the directory is not absolute")
        }
        if let expectedSize, expectedSize < 0 {
            throw .invalidDestination(name ?? url.lastPathComponent, reason: "its expected size is negative")
        }
    }
}

extension DownloadRequest: StoredForm {
    private enum Keys: String, CodingKey {
        case url, mirrors, directory, name, existing, headers, priority, checksum, expectedSize, maximumRate, attempts
        case connections, maximumSeconds
    }

    package init(stored decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        url = try values.decode(URL.self, forKey: .url)
        mirrors = try values.decodeIfPresent([URL].self, forKey: .mirrors) ?? []
        directory = try values.decodeIfPresent(String.self, forKey: .directory)
        name = try values.decodeIfPresent(String.self, forKey: .name)
        existing = try values.decodeNamedIfPresent(forKey: .existing, ExistingFile.init(name:)) ?? .replace
        let fields = try values.decodeIfPresent([[String]].self, forKey: .headers) ?? []
        headers = HTTPHeaders(fields.filter { $0.count == 2 }.map { HTTPHeaders.Field(name: $0[0], value: $0[1]) })
        priority = try values.decodeIfPresent(RequestPriority.self, forKey: .priority) ?? .normal
        checksum = try values.decodeNamedIfPresent(forKey: .checksum, Checksum.init(_:))
        expectedSize = try values.decodeIfPresent(Int.self, forKey: .expectedSize)
        maximumRate = try values.decodeIfPresent(Int.self, forKey: .maximumRate).map { ByteCount($0) }
        attempts = try values.decodeIfPresent(Int.self, forKey: .attempts) ?? 5
        connections = try values.decodeIfPresent(Int.self, forKey: .connections) ?? 1
        maximumTime = try values.decodeIfPresent(Double.self, forKey: .maximumSeconds).flatMap(Self.duration)
    }

    package func store(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Keys.self)
        try values.encode(url, forKey: .url)
        if !mirrors.isEmpty { try values.encode(mirrors, forKey: .mirrors) }
        try values.encodeIfPresent(directory, forKey: .directory)
        try values.encodeIfPresent(name, forKey: .name)
        try values.encode(existing.name, forKey: .existing)
        if !headers.fields.isEmpty { try values.encode(headers.fields.map { [$0.name, $0.value] }, forKey: .headers) }
        try values.encode(priority, forKey: .priority)
        try values.encodeIfPresent(checksum?.description, forKey: .checksum)
        try values.encodeIfPresent(expectedSize, forKey: .expectedSize)
        try values.encodeIfPresent(maximumRate?.bytes, forKey: .maximumRate)
        try values.encode(attempts, forKey: .attempts)
        try values.encode(connections, forKey: .connections)
        try values.encodeIfPresent(maximumTime.map { $0 / .seconds(1) }, forKey: .maximumSeconds)
    }

    /// - Returns: nil for a value that is not a duration, or one beyond all use.
    private static func duration(_ seconds: Double) -> Duration? {
        seconds > 0 && seconds < 1e12 ? .seconds(seconds) : nil
    }
}
