import Crypto
import Foundation
import VitrineCache
package import VitrineCore
package import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The sources that a server loads: `http` and `https` under an access policy, `local` below a directory, `s3` buckets
/// of a list, and `data`.
///
/// URLs of other schemes are refused, `file` among them.
package struct SourceTable: Sendable {
    /// Header fields for a host.
    package struct HostRule: Sendable {
        /// `example.org` for that host, `*.example.org` for all hosts below it.
        package var host: String
        /// Fields that are added to requests, for example `Authorization`. A redirect to another origin drops them.
        package var headers: [(name: String, value: String)]

        /// Creates a rule.
        package init(host: String, headers: [(name: String, value: String)]) {
            (self.host, self.headers) = (host, headers)
        }

        func matches(_ name: String) -> Bool {
            let pattern = host.lowercased()
            return pattern.hasPrefix("*.") ? name.hasSuffix(pattern.dropFirst()) : pattern == name
        }
    }

    /// The configuration.
    package struct Configuration: Sendable {
        /// The hosts, ports, redirects and addresses that may be loaded. It is checked for each URL, each redirect and
        /// each address that a connection is made to. The schemes are always `http` and `https`. Default:
        /// `URLAccessPolicy.publicOnly`.
        package var policy = URLAccessPolicy.publicOnly
        /// The beginnings of allowed addresses, such as `https://example.org/pictures/` or `local:///`; nil for all.
        /// Scheme, host and port have to be equal; the path begins with the given one, in a spelling that leads nowhere
        /// else. Redirects are judged as well.
        package var allowedPrefixes: [String]?
        /// The beginning of sources without a scheme, for example `https://example.org/pictures/`.
        package var baseURL: String?
        /// The directory of `local:///` sources; nil for none. Links below it are not followed.
        package var localRoot: String?
        /// Whether all nodes of a fleet see the same files there.
        package var isLocalShared = false
        /// The buckets of `s3` sources; nil for none.
        package var buckets: BucketSources?
        /// Whether `data:` URLs are accepted. Default: true.
        package var allowsData = true
        /// Header fields by host. All rules that match are used.
        package var hostRules: [HostRule] = []
        /// The `User-Agent` field of requests.
        package var userAgent = "vitrine-server"
        /// Called with the bytes of each transfer.
        package var didReceive: (@Sendable (_ bytes: Int) -> Void)?
        /// Header fields of all requests.
        package var headers: [(name: String, value: String)] = []
        /// The most bytes of a source, after decoding its content coding. The transfer ends where they are exceeded.
        /// Default: 100 MB.
        package var maximumBytes: ByteCount = .megabytes(100)
        /// The limit for a connection. Default: 5 seconds.
        package var connectTimeout: Duration = .seconds(5)
        /// The longest silence of a source. Default: 10 seconds.
        package var idleTimeout: Duration = .seconds(10)
        /// The limit for one transfer. Default: 10 seconds.
        package var totalTimeout: Duration = .seconds(10)
        /// How often a request that failed for a reason that may pass is repeated. Default: 0.
        package var retries = 0
        /// How long a file counts as unchanged without a look at it. Default: 1 second.
        package var localFreshness: Duration = .seconds(1)
        /// Which responses are stored, and how long they are fresh. Default: the rules of a shared cache; a stale
        /// response is used if its server fails.
        package var caching: HTTPCachePolicy = {
            var policy = HTTPCachePolicy.reverseProxy
            policy.servesStaleOnServerError = true
            return policy
        }()
        /// The connections to one host at once. Default: 16.
        package var connectionsPerHost = 16

        /// Creates the defaults.
        package init() {}
    }

    /// A source that may be loaded.
    struct Source: Sendable, Hashable {
        enum Place: Sendable, Hashable {
            case web(URL)
            /// A bucket and a key, which is percent-encoded.
            case bucket(String, key: String)
            /// The names of directories and of the file.
            case local([String])
            /// The address itself.
            case inline(String)
        }

        let place: Place
        /// Identifies the source.
        let key: CacheKey
        /// The host to limit; nil for sources without a network.
        let host: String?
        /// The tags of all that is made from it, without those that its server names.
        let tags: [String]

        init(place: Place, key: CacheKey, host: String?) {
            (self.place, self.key, self.host) = (place, key, host)
            tags = Self.tags(place, key)
        }

        static func == (one: Source, other: Source) -> Bool { one.key == other.key && one.place == other.place }

        func hash(into hasher: inout Hasher) { hasher.combine(key) }

        var isLocal: Bool { if case .local = place { true } else { false } }

        /// Identifies its content, which may be damaged although it can be loaded.
        var contentKey: CacheKey { key.appending("content") }
    }

    /// The bytes of a source.
    struct Original: Sendable {
        let bytes: [UInt8]
        /// Differs if the bytes do.
        let version: String
        /// When it is to be looked at again, since 1970; nil for never.
        let expires: Duration?
        /// Whether results made from it may be stored.
        let isStorable: Bool
        /// Whether the server could not be asked, so that older bytes are used.
        let isStale: Bool
        /// As the server sent it.
        let lastModified: String?
        /// The tags that its server named.
        var tags: [String] = []
        /// Whether it costs no request to look at it again.
        var isLocal = false
        var caching = SourceCaching()
        /// The canonical path of the result that is made of it, in the grammar of IIIF.
        var canonicalPath: String?
    }

    let configuration: Configuration
    private let options: FetchOptions
    private let bucketOptions: FetchOptions?
    private let originals: ValueCache<[UInt8]>
    private let fence: PurgeFence
    let clock: WallClock
    let executor: BlockingExecutor
    let root: LocalRoot?
    private let prefixes: [AllowedPrefix]?
    private let versions = LocalVersions()

    /// Creates a table.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - originals: Keeps the bytes of `http` sources under the rules of HTTP.
    ///   - fence: Orders loads and purges.
    ///   - clock: The time of day.
    ///   - executor: Runs the work that may block.
    init(
        _ configuration: Configuration, originals: ValueCache<[UInt8]>, fence: PurgeFence, clock: WallClock,
        executor: BlockingExecutor
    ) {
        self.configuration = configuration
        self.originals = originals
        self.fence = fence
        self.clock = clock
        self.executor = executor
        root = configuration.localRoot.map { LocalRoot(path: $0, isShared: configuration.isLocalShared) }
        prefixes = configuration.allowedPrefixes?.compactMap(AllowedPrefix.init)
        var loading = NetworkLoader.Configuration()
        loading.policy = configuration.policy
        loading.policy.schemes = ["http", "https"]
        // Also where a redirect leads.
        if let prefixes { loading.policy.permit { url in prefixes.contains { $0.contains(web: url) } } }
        loading.retries.limit = max(0, configuration.retries)
        for field in configuration.headers { loading.headers.append(field.name, field.value) }
        loading.modifiers.append(SourceFetcher.traced)
        // The modifier adds a trace only, so that values may outlive the process.
        loading.identity = "sources"
        #if os(Linux)
        var transport = CurlLoader.Configuration()
        transport.connectionsPerHost = max(1, configuration.connectionsPerHost)
        transport.userAgent = configuration.userAgent
        var options = FetchOptions(loader: NetworkLoader(CurlLoader(transport), loading))
        #else
        var options = FetchOptions(loader: NetworkLoader(loading))
        #endif
        options.caching = configuration.caching
        options.maximumBodySize = configuration.maximumBytes
        options.totalTimeout = configuration.totalTimeout
        options.resumesLargeBodies = false
        self.options = options
        bucketOptions = configuration.buckets.map { buckets in
            var own = options
            // The operator has chosen the server of the buckets, and requests lead nowhere else.
            loading.policy = .userInitiated
            loading.policy.maximumRedirects = 0
            own.loader = NetworkLoader(buckets, loading)
            own.identity = { BucketSources.identity($0) }
            return own
        }
    }

    // MARK: Addresses

    /// The longest address of a source that is accepted.
    private static let longestAddress = 64 << 10

    /// Returns the source of an address, or of a path that the base URL completes.
    ///
    /// - Throws: ``RequestError`` 400 for an address that is not valid, 403 for one that is not allowed.
    func source(_ text: String) throws(RequestError) -> Source {
        let source = try parsed(text)
        if let prefixes, !prefixes.contains(where: { $0.contains(source) }) {
            throw .forbiddenSource("the address of the source is not allowed")
        }
        // Hidden files are no sources, in no grammar.
        if case .local(let names) = source.place, names.contains(where: { $0.hasPrefix(".") }) {
            throw .sourceNotFound
        }
        return source
    }

    /// ``source(_:)``, whether the address is allowed or not.
    func parsed(_ text: String) throws(RequestError) -> Source {
        let address = try completed(text)
        guard let colon = address.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw .badSource("the source has no scheme, and the server no base address")
        }
        let scheme = address[..<colon].lowercased()
        switch scheme {
        case "http", "https": return try webSource(address)
        case "s3": return try bucketSource(address[colon...].dropFirst())
        case "local": return try localSource(address[colon...].dropFirst())
        case "data": return try inlineSource(address)
        default: throw RequestError.badSource("sources of this scheme are not loaded")
        }
    }

    private func completed(_ text: String) throws(RequestError) -> String {
        guard !text.isEmpty else { throw .badSource("the source is empty") }
        guard text.utf8.count <= Self.longestAddress || Self.hasScheme(text, "data") else {
            throw .badSource("the address of the source is too long")
        }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .badSource("the address of the source contains control characters")
        }
        guard let base = configuration.baseURL, !Self.hasScheme(text) else { return text }
        return base + text
    }

    /// Whether a text begins with a scheme (RFC 3986, section 3.1) and a colon.
    private static func hasScheme(_ text: String, _ wanted: String? = nil) -> Bool {
        let scheme = text.utf8.prefix { $0 != UInt8(ascii: ":") }
        guard scheme.count < text.utf8.count, let first = scheme.first, isLetter(first),
            scheme.allSatisfy({ isLetter($0) || (48...57).contains($0) || [43, 45, 46].contains($0) })
        else { return false }
        return wanted.map { String(Substring(scheme)).lowercased() == $0 } ?? true
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (97...122).contains(byte | 0x20) }

    private func webSource(_ address: String) throws(RequestError) -> Source {
        guard let url = URL(string: address), let host = url.host(percentEncoded: false)?.lowercased(), !host.isEmpty
        else { throw .badSource("the address of the source is not valid") }
        // Results of private addresses stay where these are allowed.
        let kind = configuration.policy.kindOfSources
        return Source(place: .web(url), key: Self.key(kind, url.absoluteString), host: host)
    }

    private func localSource(_ rest: Substring) throws(RequestError) -> Source {
        guard root != nil else { throw .forbiddenSource("this server has no local sources") }
        guard rest.hasPrefix("///") else { throw .badSource("local sources have no host: local:///name") }
        let path = rest.dropFirst(3).prefix { $0 != "?" && $0 != "#" }
        // A name with a percent sign that is no escape was decoded by the client already.
        let decoded = String(path).removingPercentEncoding ?? String(path)
        let names = decoded.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        guard !names.isEmpty, !decoded.hasSuffix("/") else { throw .sourceNotFound }
        for name in names {
            guard name != "..", name != ".", !name.utf8.contains(0) else {
                throw .badSource("the path of the source contains “.”, “..” or a zero byte")
            }
            guard FileName.bytes(of: name).count <= 255 else { throw .sourceNotFound }
        }
        return Source(place: .local(names), key: Self.key("local", names.joined(separator: "/")), host: nil)
    }

    private func bucketSource(_ rest: Substring) throws(RequestError) -> Source {
        guard let buckets = configuration.buckets else { throw .badSource("sources of this scheme are not loaded") }
        guard rest.hasPrefix("//"), let slash = rest.dropFirst(2).firstIndex(of: "/") else {
            throw .badSource("sources in buckets have the form s3://bucket/key")
        }
        let bucket = String(rest[..<slash].dropFirst(2)), key = String(rest[slash...].dropFirst())
        guard buckets.names.contains(bucket) else { throw .forbiddenSource("the bucket is not allowed") }
        guard !key.isEmpty, !key.hasSuffix("/") else { throw .sourceNotFound }
        guard key.removingPercentEncoding != nil, !key.contains("?"), !key.contains("#"),
            BucketSources.url(bucket: bucket, key: key)?.absoluteString.hasSuffix("/" + key) == true
        else { throw .badSource("the key of the source is not percent-encoded correctly") }
        let names = key.split(separator: "/", omittingEmptySubsequences: false)
        guard !names.contains(where: { ["", ".", ".."].contains($0.removingPercentEncoding ?? "") }) else {
            throw .badSource("the key of the source contains an empty part, “.” or “..”")
        }
        return Source(place: .bucket(bucket, key: key), key: Self.key("s3", bucket + "/" + key), host: "s3 " + bucket)
    }

    private func inlineSource(_ address: String) throws(RequestError) -> Source {
        guard configuration.allowsData else { throw .forbiddenSource("this server accepts no data URLs") }
        // Four characters of base64 hold three bytes.
        guard address.utf8.count / 4 <= configuration.maximumBytes.bytes / 3 + 1_024 else {
            throw .sourceTooLarge(configuration.maximumBytes)
        }
        return Source(place: .inline(address), key: Self.key("data", address), host: nil)
    }

    /// Long addresses are digested, because the length of keys is limited.
    private static func key(_ kind: String, _ name: String) -> CacheKey {
        guard name.utf8.count > 1_024 else { return CacheKey(kind, name) }
        let digest = SHA256.hash(data: Array(name.utf8)).map { String($0, radix: 16) }.joined(separator: ".")
        return CacheKey(kind, "sha256:" + digest)
    }

    // MARK: Loading

    /// Returns the bytes of a source.
    ///
    /// - Parameter held: Reserves the bytes before they are read.
    /// - Throws: ``RequestError`` as ``RequestError/init(loading:)`` has them, 503 if the bytes are not available.
    func load(
        _ source: Source, priority: RequestPriority, holding held: SourceReservation
    ) async throws(RequestError) -> Original {
        switch source.place {
        case .web(let url):
            return try await load(
                fetcher(url, source: source, held: held), source: source, priority: priority, held: held)
        case .bucket(let bucket, let key):
            guard let bucketOptions, let url = BucketSources.url(bucket: bucket, key: key) else {
                throw .forbiddenSource("this server has no buckets")
            }
            let fetcher = SourceFetcher(
                request(url), options: bucketOptions, tags: source.tags, held: held,
                didReceive: configuration.didReceive)
            return try await load(fetcher, source: source, priority: priority, held: held)
        case .local(let names):
            guard let root else { throw .forbiddenSource("this server has no local sources") }
            let looked = clock.now
            let file = try await read(names, root: root, held: held)
            versions.add(file.version, of: source.key, at: looked, until: looked + configuration.localFreshness)
            return Original(
                bytes: file.bytes, version: file.version, expires: clock.now + configuration.localFreshness,
                isStorable: true, isStale: false, lastModified: file.lastModified, isLocal: true)
        case .inline(let address):
            try await held.reserve(address.utf8.count / 4 * 3)
            let bytes = try InlineData.bytes(of: address)
            guard bytes.count <= configuration.maximumBytes.bytes else {
                throw .sourceTooLarge(configuration.maximumBytes)
            }
            return Original(
                bytes: bytes, version: ContentVersion.text(of: bytes), expires: nil, isStorable: true, isStale: false,
                lastModified: nil)
        }
    }

    /// Returns the version of a local source without reading it; nil for other sources.
    func localVersion(of source: Source) async throws(RequestError) -> String? {
        guard case .local(let names) = source.place, let root else { return nil }
        let looked = clock.now
        let version = try await executor.run { () throws(RequestError) in try root.version(of: names) }
        versions.add(version, of: source.key, at: looked, until: looked + configuration.localFreshness)
        return version
    }

    /// Until when a local source counts as unchanged, if it had a version when it was looked at lately.
    func end(ofVersion version: String, of key: CacheKey) -> Duration? {
        versions.end(of: version, of: key, now: clock.now)
    }

    private func read(
        _ names: [String], root: LocalRoot, held: SourceReservation
    ) async throws(RequestError) -> LocalRoot.File {
        let limit = configuration.maximumBytes
        while true {
            let read = try await executor.run { () throws(RequestError) in
                try root.read(names, upTo: limit) { held.reserveNow($0) }
            }
            switch read {
            case .file(let file): return file
            case .refused(let size): try await held.reserve(size)
            }
        }
    }

    private func load(
        _ fetcher: SourceFetcher, source: Source, priority: RequestPriority, held: SourceReservation
    ) async throws(RequestError) -> Original {
        let epoch = fence.epoch(of: source.tags)
        await fence.beginLoad(source.key, epoch: epoch)
        defer { fence.endLoad(source.key, epoch: epoch) }
        // Bytes on disk are read before their server is asked.
        if let stored = await originals.storedSize(forKey: fetcher.key) { try await held.reserve(stored.bytes) }
        let original = try await original(from: fetcher, priority, held)
        let head = SourceHead(validator: original.validator)
        let bytes = original.bytes
        let version = await executor.run { ContentVersion.text(of: bytes) }
        return Original(
            bytes: bytes, version: version, expires: original.expires,
            isStorable: original.levels.contains(.writeDisk), isStale: original.isStale,
            lastModified: head?.lastModified, tags: head.map { PurgeTag.named(in: $0.headers) } ?? [],
            caching: Self.caching(head?.headers))
    }

    private static func caching(_ headers: HTTPHeaders?) -> SourceCaching {
        // A response without a stored head is one that may not be stored.
        guard let headers else { return SourceCaching(control: "no-store") }
        let control = headers.all("Cache-Control").joined(separator: ", ")
        return SourceCaching(
            control: control.isEmpty ? nil : control,
            hasLifetime: control.lowercased().contains("max-age") || headers["Expires"] != nil)
    }

    private func request(_ url: URL) -> HTTPRequest {
        var request = HTTPRequest(url: url)
        request.connectTimeout = configuration.connectTimeout
        request.idleTimeout = configuration.idleTimeout
        request.totalTimeout = configuration.totalTimeout
        request.maximumBodySize = configuration.maximumBytes
        return request
    }

    private func fetcher(_ url: URL, source: Source, held: SourceReservation) -> SourceFetcher {
        var request = request(url)
        var options = options
        if let host = source.host {
            for rule in configuration.hostRules where rule.matches(host) {
                for field in rule.headers { request.headers.append(field.name, field.value) }
                // The responses belong to this server, whose operator has chosen to show them.
                if !rule.headers.isEmpty { options.caching = .images }
            }
        }
        return SourceFetcher(
            request, options: options, tags: source.tags, held: held, didReceive: configuration.didReceive)
    }

    private func original(
        from fetcher: SourceFetcher, _ priority: RequestPriority, _ held: SourceReservation
    ) async throws(RequestError) -> OriginalBytes {
        let (began, waited) = (ContinuousClock.now, held.waited)
        do {
            return try await originals.originalBytes(from: fetcher, priority: priority)
        } catch {
            if let refusal = held.error { throw refusal }
            let error = RequestError(loading: error)
            // A transfer that waited for its bytes is not late by the fault of its source.
            guard error.code == "source-timeout", (held.waited - waited) * 2 >= ContinuousClock.now - began
            else { throw error }
            throw .overloaded(retryAfter: 2)
        }
    }
}
