import Crypto
import Foundation
import VitrineCache
package import VitrineCore
@_spi(HTTPCacheEngine) package import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The sources that a server loads: `http` and `https` under an access policy, `local` below a directory, `s3` buckets of
/// a list, and `data`.
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
        /// Scheme, host and port have to be equal; the path begins with the given one.
        package var allowedPrefixes: [String]?
        /// The beginning of sources without a scheme, for example `https://example.org/pictures/`.
        package var baseURL: String?
        /// The directory of `local:///` sources; nil for none. Links below it are not followed.
        package var localRoot: String?
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

        var isLocal: Bool { if case .local = place { true } else { false } }
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
    }

    let configuration: Configuration
    private let options: FetchOptions
    private let bucketOptions: FetchOptions?
    private let originals: Cache<[UInt8]>
    private let fence: PurgeFence
    private let clock: WallClock
    private let executor: BlockingExecutor
    private let root: LocalRoot?
    private let prefixes: [AllowedPrefix]?

    /// Creates a table.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - originals: Keeps the bytes of `http` sources under the rules of HTTP.
    ///   - fence: Orders loads and purges.
    ///   - clock: The time of day.
    ///   - executor: Runs the work that may block.
    init(
        _ configuration: Configuration, originals: Cache<[UInt8]>, fence: PurgeFence, clock: WallClock,
        executor: BlockingExecutor
    ) {
        self.configuration = configuration
        self.originals = originals
        self.fence = fence
        self.clock = clock
        self.executor = executor
        root = configuration.localRoot.map(LocalRoot.init)
        prefixes = configuration.allowedPrefixes?.compactMap(AllowedPrefix.init)
        var loading = NetworkLoader.Configuration()
        loading.policy = configuration.policy
        loading.policy.schemes = ["http", "https"]
        loading.retries.limit = max(0, configuration.retries)
        for field in configuration.headers { loading.headers.append(field.name, field.value) }
        loading.modifiers.append(SourceFetcher.traced)
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
        let policy = configuration.policy
        let kind = policy.allowsPrivateAddresses
            ? "web or private" : policy.privateExceptions.isEmpty ? "web" : "web \(policy.privateExceptions.rawValue)"
        return Source(place: .web(url), key: Self.key(kind, url.absoluteString), host: host)
    }

    private func localSource(_ rest: Substring) throws(RequestError) -> Source {
        guard root != nil else { throw .forbiddenSource("this server has no local sources") }
        guard rest.hasPrefix("///") else { throw .badSource("local sources have no host: local:///name") }
        let path = rest.dropFirst(3).prefix { $0 != "?" && $0 != "#" }
        guard let decoded = String(path).removingPercentEncoding else {
            throw .badSource("the path of the source is not percent-encoded correctly")
        }
        let names = decoded.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        guard !names.isEmpty, !decoded.hasSuffix("/") else { throw .sourceNotFound }
        for name in names {
            guard name != "..", name != ".", !name.utf8.contains(0) else {
                throw .badSource("the path of the source contains “.”, “..” or a zero byte")
            }
            guard name.utf8.count <= 255 else { throw .sourceNotFound }
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
    /// - Throws: ``RequestError`` as ``RequestError/init(loading:)`` has them.
    func load(_ source: Source, priority: Priority) async throws(RequestError) -> Original {
        switch source.place {
        case .web(let url): return try await load(fetcher(url, source), source, priority)
        case .bucket(let bucket, let key):
            guard let bucketOptions, let url = BucketSources.url(bucket: bucket, key: key) else {
                throw .forbiddenSource("this server has no buckets")
            }
            let fetcher = SourceFetcher(
                request(url), bucketOptions, tags: source.tags, didReceive: configuration.didReceive)
            return try await load(fetcher, source, priority)
        case .local(let names):
            guard let root else { throw .forbiddenSource("this server has no local sources") }
            let limit = configuration.maximumBytes
            let file = try await executor.run { () throws(RequestError) in try root.read(names, upTo: limit) }
            return Original(
                bytes: file.bytes, version: file.version, expires: clock.now + configuration.localFreshness,
                isStorable: true, isStale: false, lastModified: file.lastModified, isLocal: true)
        case .inline(let address):
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
        return try await executor.run { () throws(RequestError) in try root.version(of: names) }
    }

    private func load(
        _ fetcher: SourceFetcher, _ source: Source, _ priority: Priority
    ) async throws(RequestError) -> Original {
        let epoch = fence.epoch(of: source.tags)
        await fence.beginLoad(source.key, epoch: epoch)
        defer { fence.endLoad(source.key, epoch: epoch) }
        let original = try await original(from: fetcher, priority)
        let head = try? StoredResponse(bytes: original.validator)
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

    private func fetcher(_ url: URL, _ source: Source) -> SourceFetcher {
        var request = request(url)
        var options = options
        if let host = source.host {
            for rule in configuration.hostRules where rule.matches(host) {
                for field in rule.headers { request.headers.append(field.name, field.value) }
                // The responses belong to this server, whose operator has chosen to show them.
                if !rule.headers.isEmpty { options.caching = .images }
            }
        }
        return SourceFetcher(request, options, tags: source.tags, didReceive: configuration.didReceive)
    }

    private func original(
        from fetcher: SourceFetcher, _ priority: Priority
    ) async throws(RequestError) -> Cache<[UInt8]>.OriginalBytes {
        do {
            return try await originals.originalBytes(from: fetcher, priority: priority)
        } catch {
            throw RequestError(loading: error)
        }
    }
}

/// A directory whose files are sources. Its own path may contain links, paths below it may not.
private struct LocalRoot: Sendable {
    struct File: Sendable {
        let bytes: [UInt8]
        let version: String
        let lastModified: String
    }

    let path: String

    init(path: String) { self.path = path }

    func version(of names: [String]) throws(RequestError) -> String {
        let descriptor = try open(names)
        defer { close(descriptor) }
        return Self.version(of: try Self.status(descriptor))
    }

    /// Returns a regular file.
    ///
    /// - Throws: ``RequestError`` 404 if there is none, 413 above the limit.
    func read(_ names: [String], upTo limit: ByteCount) throws(RequestError) -> File {
        let descriptor = try open(names)
        defer { close(descriptor) }
        let status = try Self.status(descriptor)
        guard Int(status.st_size) <= limit.bytes else { throw .sourceTooLarge(limit) }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let read = bytes.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress! + count, buffer.count - count, off_t(count))
            }
            if read > 0 {
                count += read
            } else if read == 0 || errno != EINTR {
                throw RequestError(502, "source-failed", "the source could not be read")
            }
        }
        return File(
            bytes: bytes, version: Self.version(of: status), lastModified: HTTPTime.text(Int64(status.modificationTime.tv_sec)))
    }

    /// Opens a file name by name, without following a link, so that no name leads out of the root.
    private func open(_ names: [String]) throws(RequestError) -> Int32 {
        var directory = openDirectory(path)
        guard directory >= 0 else { throw .sourceNotFound }
        for (index, name) in names.enumerated() {
            let isLast = index == names.count - 1
            // O_NONBLOCK: opening a FIFO without a writer must not wait for ever.
            let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (isLast ? O_NONBLOCK : O_DIRECTORY)
            var next: Int32
            repeat { next = openat(directory, name, flags) } while next < 0 && errno == EINTR
            close(directory)
            guard next >= 0 else { throw .sourceNotFound }
            directory = next
        }
        return directory
    }

    private func openDirectory(_ path: String) -> Int32 {
        var descriptor: Int32
        let flags = O_RDONLY | O_CLOEXEC | O_DIRECTORY
        repeat { descriptor = openFile(path, flags) } while descriptor < 0 && errno == EINTR
        return descriptor
    }

    private static func status(_ descriptor: Int32) throws(RequestError) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { throw .sourceNotFound }
        return status
    }

    private static func version(of status: stat) -> String {
        let time = status.modificationTime
        return "file:\(status.st_dev).\(status.st_ino).\(status.st_size).\(time.tv_sec).\(time.tv_nsec)"
    }
}

/// `open(2)`, whose name the methods above hide.
private func openFile(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }

extension stat {
    fileprivate var modificationTime: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}

/// The bytes of `data:` URLs (RFC 2397).
private enum InlineData {
    static func bytes(of address: String) throws(RequestError) -> [UInt8] {
        let rest = address.dropFirst(5)
        guard let comma = rest.utf8.firstIndex(of: UInt8(ascii: ",")) else {
            throw .badSource("a data URL has a comma before its data")
        }
        let text = String(rest[comma...].dropFirst())
        guard rest[..<comma].lowercased().hasSuffix(";base64") else {
            guard let bytes = percentDecoded(text) else {
                throw .badSource("the data is not percent-encoded correctly")
            }
            return bytes
        }
        var characters = (text.contains("%") ? text.removingPercentEncoding ?? "" : text).filter { $0 != "=" }
        characters = characters.replacing("-", with: "+").replacing("_", with: "/")
        characters += String(repeating: "=", count: (4 - characters.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: characters), !data.isEmpty else {
            throw .badSource("the data is not base64")
        }
        return [UInt8](data)
    }

    private static func percentDecoded(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }
}

/// A version of bytes: their number and 128 bits of a digest that is fast. It does not resist bytes that were chosen to
/// collide with others of the same source.
package enum ContentVersion {
    package static func text(of bytes: [UInt8]) -> String {
        // Two sums of 64-bit words, multiplied and folded as in wyhash (Wang Yi, public domain).
        var a: UInt64 = 0xa076_1d64_78bd_642f, b: UInt64 = 0xe703_7ed1_a0b4_28db
        func folded(_ x: UInt64, _ y: UInt64) -> UInt64 {
            let product = x.multipliedFullWidth(by: y)
            return product.high ^ product.low
        }
        bytes.withUnsafeBytes { bytes in
            var at = 0
            while at &+ 16 <= bytes.count {
                let one = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                let other = bytes.loadUnaligned(fromByteOffset: at &+ 8, as: UInt64.self)
                a = folded(a ^ one, 0x8ebc_6af0_9c88_c6e3 ^ other)
                b = folded(b ^ other, 0x5899_65cc_7537_4cc3 &+ one)
                at &+= 16
            }
            while at < bytes.count {
                a = folded(a ^ UInt64(bytes[at]), 0x9e37_79b9_7f4a_7c15)
                b = folded(b &+ UInt64(bytes[at]), 0xd6e8_feb8_6659_fd93)
                at &+= 1
            }
        }
        let mixed = folded(a, b ^ UInt64(bytes.count))
        return "\(bytes.count).\(String(a ^ mixed, radix: 16)).\(String(b, radix: 16))"
    }
}
