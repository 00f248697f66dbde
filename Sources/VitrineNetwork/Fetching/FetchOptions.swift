#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCache
public import VitrineCore

/// How a ``NetworkFetcher`` loads, and how long what it loads is fresh.
///
/// ```swift
/// FetchOptions.default.contentTypes = ["image/*"]
/// FetchOptions.default.identity = { url in url.path() }      // signatures in the query change nothing
/// ```
public struct FetchOptions: Sendable {
    /// Loads: redirects, policy, repetitions, authentication, schemes. Default: ``NetworkLoader/shared``.
    public var loader: NetworkLoader
    /// What of HTTP's responses is stored and how long it is fresh: by what they say, for a fixed time, or for ever
    /// (``HTTPCachePolicy/lifetime``). Default: ``HTTPCachePolicy/images``.
    public var caching = HTTPCachePolicy.images
    /// The only media types accepted, such as `image/jpeg` or `image/*`, which is also what servers are told; empty for
    /// whatever the loader's policy accepts (R75). Default: empty.
    public var contentTypes: [String] = []
    /// What a URL's resource is known by at every level, for URLs that change while what they stand for stays the same:
    /// signed ones, those of mirrors. nil, also as the result, for the URL itself. Two resources must not have the
    /// same identity.
    public var identity: (@Sendable (URL) -> String?)?
    /// The most bytes of body to accept, decoded; a request may allow less. Default: 256 MB.
    public var maximumBodySize: ByteCount = .megabytes(256)
    /// How long one request may take in all, counted from when it has a connection or begins to make one, so not while
    /// it waits for others to the same host. A request's own ``HTTPRequest/Timeouts/total`` counts before it. It ends
    /// servers that are never silent and never done. What had come of a large body by then is kept, see
    /// ``resumesLargeBodies``. nil for no limit. Default: 10 minutes.
    public var totalTimeout: Duration? = .seconds(600)
    /// Whether bodies of a megabyte and more are brought to a file first, so that the rest of one that broke off is asked
    /// for the next time, also after the process was killed. Default: true.
    public var resumesLargeBodies = true
    /// Where such files are, until they are whole or a week old; nil for a directory of their own below
    /// `CacheConfiguration.defaultRoot`. Default: nil.
    public var partialDirectory: String?
    /// The time of day. Default: the system's; the same as the cache's, if that has another.
    public var clock = WallClock.system

    /// Where large bodies wait; nil for nowhere.
    var partials: PartialDirectory? {
        guard resumesLargeBodies else { return nil }
        return partialDirectory.map { .at($0) } ?? Self.usualPartials
    }

    /// No cache has such a name: in theirs each percent sign is an escape.
    private static let usualPartials = PartialDirectory.at(FilePath.join(CacheConfiguration.defaultRoot, "%partial"))

    /// The defaults, with a loader.
    public init(loader: NetworkLoader) { self.loader = loader }

    private static let chosen = Locked<FetchOptions?>(nil)

    /// What fetchers use that are not told otherwise. To be set before the first of them, if at all: what is loading
    /// keeps the options it began with.
    public static var `default`: FetchOptions {
        get { chosen.withLock { $0 } ?? builtIn }
        set { chosen.withLock { $0 = newValue } }
    }

    #if os(Linux) || canImport(Darwin)
    private static let builtIn = FetchOptions(loader: .shared)

    /// The defaults, with the shared loader.
    public init() { self.init(loader: .shared) }
    #else
    private static var builtIn: FetchOptions {
        preconditionFailure("Set FetchOptions.default: on this platform a loader has to be given.")
    }
    #endif
}

#if os(Linux) || canImport(Darwin)
extension NetworkLoader {
    /// One for everyone in the program, with the defaults: connections are kept and used again.
    public static let shared = NetworkLoader()
}
#endif
