#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCache
public import VitrineCore

/// The options of a ``NetworkFetcher``.
///
/// ```swift
/// FetchOptions.default.contentTypes = ["image/*"]
/// FetchOptions.default.identity = { url in url.path() }      // without signatures in the query, for each host
/// ```
public struct FetchOptions: Sendable {
    /// The loader. The default is ``NetworkLoader/shared``.
    public var loader: NetworkLoader
    /// The rules for storing and reusing HTTP responses. The default is ``HTTPCachePolicy/images``.
    public var caching = HTTPCachePolicy.images
    /// The accepted media types, such as `image/jpeg` or `image/*`, of which the first 16 are also sent as `Accept`. The
    /// default is empty, which accepts all types that the loader's policy accepts.
    public var contentTypes: [String] = []
    /// Whether responses without a media type, or with one that says nothing, are accepted beside ``contentTypes``,
    /// because the reader of the bytes recognizes them by their content.
    package var sniffsContent = false
    /// Returns the identity of a URL's resource, which replaces the URL in cache keys.
    ///
    /// Use it for signed URLs and mirrors. A result that begins with `/` belongs to the URL's scheme, host and port.
    /// nil means the URL itself. Different resources must have different identities.
    public var identity: (@Sendable (URL) -> String?)?
    /// The largest accepted body, after decoding. A request may set a lower limit. The default is 256 MB.
    public var maximumBodySize = usualBodySize
    static let usualBodySize = ByteCount.megabytes(256)
    /// The limit for one transfer without the wait for a connection, or nil for none. The default is 10 minutes.
    ///
    /// A request's own ``HTTPRequest/totalTimeout`` takes precedence. The received part of a large body is kept, see
    /// ``resumesLargeBodies``.
    public var totalTimeout: Duration? = .seconds(600)
    /// Whether bodies of 1 MB and more are received into a file, so that an interrupted transfer can be resumed, also
    /// after the process was killed. The default is true.
    public var resumesLargeBodies = true
    /// The directory of the files of interrupted transfers, which are kept for a week. The default is nil, for a
    /// directory below `CacheConfiguration.defaultRoot`.
    package var partialDirectory: String?
    /// The time of day.
    package var clock = WallClock.system

    /// The directory of interrupted transfers; nil if they are not kept.
    var partials: PartialDirectory? {
        guard resumesLargeBodies else { return nil }
        return partialDirectory.map { .at($0) } ?? Self.usualPartials
    }

    /// A name that no cache can have, because caches escape percent signs.
    private static let usualPartials = PartialDirectory.at(FilePath.join(CacheConfiguration.defaultRoot, "%partial"))

    private static let chosen = Locked<FetchOptions?>(nil)

    /// The default for new fetchers. Set it once at launch; running requests keep their options.
    public static var `default`: FetchOptions {
        get { chosen.withLock { $0 } ?? builtIn }
        set { chosen.withLock { $0 = newValue } }
    }

    #if os(Linux) || canImport(Darwin)
    private static let builtIn = FetchOptions(loader: .shared)

    /// Creates the default options.
    ///
    /// - Parameter loader: The loader.
    public init(loader: NetworkLoader = .shared) { self.loader = loader }
    #else
    private static var builtIn: FetchOptions {
        preconditionFailure("Set FetchOptions.default first: this platform has no default loader.")
    }

    /// Creates the default options.
    ///
    /// - Parameter loader: The loader.
    public init(loader: NetworkLoader) { self.loader = loader }
    #endif
}

#if os(Linux) || canImport(Darwin)
extension NetworkLoader {
    /// The loader of the process with the default configuration. It reuses connections.
    public static let shared = NetworkLoader()
}
#endif
