/// Where what was fetched came from.
enum FetchOrigin: String, Sendable, Encodable {
    /// From the cache, without asking.
    case cache
    /// From the cache, after the server had confirmed it.
    case revalidated
    /// From the cache, although its time has passed: the server was not to be asked, or could not be.
    case stale
    /// Loaded.
    case network

    /// In words for people.
    var text: String {
        switch self {
        case .cache: "from the cache"
        case .revalidated: "from the cache, unchanged"
        case .stale: "from the cache, expired"
        case .network: "from the network"
        }
    }
}
