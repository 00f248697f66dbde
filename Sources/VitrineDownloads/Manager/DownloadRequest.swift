#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore
public import VitrineNetwork

/// What to download, and where to.
///
/// ```swift
/// var request = DownloadRequest(url)
/// request.checksum = Checksum("sha256:…")
/// request.existing = .number
/// let download = try await DownloadManager.shared.start(request)
/// ```
public struct DownloadRequest: Sendable, Hashable {
    /// What to do with a file that is there already, under the name the download gets.
    public enum ExistingFile: String, Sendable, Hashable, Codable {
        /// It is replaced when the new one is whole. Only under a name that the request or its address gives: a name
        /// that the server chooses never replaces a file, and gets a number as with ``number``.
        case replace
        /// It stays, and the new one gets a number: `name (2).txt`.
        case number
        /// It stays, and the download fails: before it begins where the name is known by then.
        case keep
    }

    /// `http` or `https`.
    public var url: URL
    /// Where the same file can be had if ``url`` fails, in the order of trying.
    public var mirrors: [URL] = []
    /// The directory it goes to, made if it is missing; nil for the manager's.
    public var directory: String?
    /// What it is called; nil for what the server says or the address ends with (R121).
    public var name: String?
    /// What to do with a file of that name. Default ``ExistingFile/replace``.
    public var existing = ExistingFile.replace
    /// Fields to send. They are kept in the journal, which only this user can read.
    public var headers = HTTPHeaders()
    /// Which of those that wait goes first.
    public var priority = Priority.normal
    /// The digest the file must have.
    public var checksum: Checksum?
    /// The length the file must have, in bytes.
    public var expectedSize: Int?
    /// The most bytes a second; nil for as many as come.
    public var maximumRate: ByteCount?
    /// How many connections bring it at once, each pieces of its own. More than one is of use where each is slow; it is
    /// only done where the server gives parts under a strong validator, for files of two megabytes and more. Default 1.
    public var connections = 1
    /// How often it is tried without any progress before it fails. A connection that is refused and a host without an
    /// address count; being without a network does not. The delays between tries grow from about 2 to 60 seconds.
    /// Default 5.
    public var attempts = 5
    /// How long one transfer of it may take in all; nil for as long as bytes come. Default: nil. What is there when
    /// it ends stays, and the next try resumes it.
    public var maximumTime: Duration?

    public init(_ url: URL) { self.url = url }

    /// More would be no download but an attack.
    static let highestConnections = 64

    /// What is wrong with it that can be told without asking anybody.
    func check() throws(DownloadError) {
        for url in [url] + mirrors {
            let text = SourceURL.withoutCredentials(url.absoluteString)
            guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
                throw .invalidURL(text, reason: "it is neither http nor https")
            }
            guard let host = url.host(), !host.isEmpty else { throw .invalidURL(text, reason: "it names no host") }
        }
        if let name, DownloadName.plain(name) != name {
            throw .invalidDestination(name, reason: "it is no name of a file that shows what it is")
        }
        if let directory, !FilePath.isAbsolute(directory) || directory.utf8.contains(0) {
            throw .invalidDestination(directory, reason: "the directory is not named from the root")
        }
        if let expectedSize, expectedSize < 0 {
            throw .invalidDestination(name ?? url.lastPathComponent, reason: "its expected size is negative")
        }
    }
}

extension DownloadRequest: Codable {
    private enum Keys: String, CodingKey {
        case url, mirrors, directory, name, existing, headers, priority, checksum, expectedSize, maximumRate, attempts
        case connections, maximumSeconds
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Keys.self)
        url = try values.decode(URL.self, forKey: .url)
        mirrors = try values.decodeIfPresent([URL].self, forKey: .mirrors) ?? []
        directory = try values.decodeIfPresent(String.self, forKey: .directory)
        name = try values.decodeIfPresent(String.self, forKey: .name)
        existing = try values.decodeIfPresent(ExistingFile.self, forKey: .existing) ?? .replace
        let fields = try values.decodeIfPresent([[String]].self, forKey: .headers) ?? []
        headers = HTTPHeaders(fields.filter { $0.count == 2 }.map { HTTPHeaders.Field(name: $0[0], value: $0[1]) })
        priority = try values.decodeIfPresent(Priority.self, forKey: .priority) ?? .normal
        checksum = try values.decodeIfPresent(Checksum.self, forKey: .checksum)
        expectedSize = try values.decodeIfPresent(Int.self, forKey: .expectedSize)
        maximumRate = try values.decodeIfPresent(Int.self, forKey: .maximumRate).map { ByteCount($0) }
        attempts = try values.decodeIfPresent(Int.self, forKey: .attempts) ?? 5
        connections = try values.decodeIfPresent(Int.self, forKey: .connections) ?? 1
        maximumTime = try values.decodeIfPresent(Double.self, forKey: .maximumSeconds).flatMap(Self.duration)
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Keys.self)
        try values.encode(url, forKey: .url)
        if !mirrors.isEmpty { try values.encode(mirrors, forKey: .mirrors) }
        try values.encodeIfPresent(directory, forKey: .directory)
        try values.encodeIfPresent(name, forKey: .name)
        try values.encode(existing, forKey: .existing)
        if !headers.isEmpty { try values.encode(headers.map { [$0.name, $0.value] }, forKey: .headers) }
        try values.encode(priority, forKey: .priority)
        try values.encodeIfPresent(checksum, forKey: .checksum)
        try values.encodeIfPresent(expectedSize, forKey: .expectedSize)
        try values.encodeIfPresent(maximumRate?.bytes, forKey: .maximumRate)
        try values.encode(attempts, forKey: .attempts)
        try values.encode(connections, forKey: .connections)
        try values.encodeIfPresent(maximumTime.map { $0 / .seconds(1) }, forKey: .maximumSeconds)
    }

    /// - Returns: nil for what is no length of time, or one beyond all use.
    private static func duration(_ seconds: Double) -> Duration? {
        seconds > 0 && seconds < 1e12 ? .seconds(seconds) : nil
    }
}
