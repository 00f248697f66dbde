/// Limits which URLs may be loaded: schemes, hosts, ports, IP addresses, redirects and media types.
///
/// A ``NetworkLoader`` checks the URL, each redirect, each IP address before it connects, and the head of the response
/// before it reads the body.
///
/// - ``userInitiated`` is for programs whose user chooses the URLs. It permits every URL that the user could open in a
///   browser, but no public server may redirect the program into a private network.
/// - ``publicOnly`` is for servers that load URLs of strangers.
///
/// ```swift
/// var configuration = NetworkLoader.Configuration()
/// configuration.policy = .publicOnly
/// configuration.policy.contentTypes = ["image/*"]
/// let loader = NetworkLoader(configuration)
/// ```
public struct URLAccessPolicy: Sendable {
    /// The permitted schemes in lowercase, or nil for every registered scheme.
    public var schemes: Set<String>?
    /// The permitted hosts, or nil for all. `example.org` matches that host, `*.example.org` all hosts below it.
    public var hosts: [String]?
    /// Hosts that are refused, in the same form as ``hosts``.
    public var blockedHosts: [String] = []
    /// The permitted ports, or nil for all.
    public var ports: Set<Int>?
    /// The accepted media types, such as `image/jpeg` or `image/*`, or nil for all. If set, a response without a media
    /// type is refused, unless `*/*` is among them.
    public var contentTypes: [String]?
    /// Whether this computer and private networks may be connected to.
    ///
    /// If false, a ``NetworkFetcher`` stores values under separate cache keys. It never returns a value that a loader
    /// with access to private addresses stored.
    public var allowsPrivateAddresses: Bool
    /// The private addresses that may be connected to although ``allowsPrivateAddresses`` is false.
    @_spi(HTTPCacheEngine) public var privateExceptions: PrivateAddresses = []
    /// Decides about each URL in its normalized form, those of redirects included; nil to permit all.
    @_spi(HTTPCacheEngine) public var permitsURL: (@Sendable (_ url: String) -> Bool)?
    /// Whether a public address may redirect to a private one.
    package var allowsRedirectsToPrivate = false
    /// Whether an `https` URL may redirect to an `http` URL.
    public var allowsRedirectsToInsecure = false
    /// Whether a URL may contain a user name and password. They are sent to the URL's own host only.
    public var allowsCredentials: Bool
    /// Whether a loader without ``allowsPrivateAddresses`` may connect through a proxy.
    ///
    /// The proxy then decides which addresses it connects to. Addresses in URLs and redirects, and connections that
    /// bypass the proxy, are still checked. The default is false, which refuses requests that would use a proxy.
    public var trustsProxy = false
    /// The most redirects to follow. The default is 10.
    public var maximumRedirects = 10

    /// Permits all addresses, for URLs that the user chooses. A public address may not redirect to a private one.
    public static let userInitiated = URLAccessPolicy(
        schemes: nil, ports: nil, allowsPrivateAddresses: true, allowsCredentials: true)

    /// Permits `http` and `https` on ports 80 and 443 at public addresses, for URLs of strangers.
    ///
    /// Every redirect is checked, and every address that a host name resolves to when the connection is made.
    public static let publicOnly = URLAccessPolicy(
        schemes: ["http", "https"], ports: [80, 443], allowsPrivateAddresses: false, allowsCredentials: false)

    private init(schemes: Set<String>?, ports: Set<Int>?, allowsPrivateAddresses: Bool, allowsCredentials: Bool) {
        self.schemes = schemes
        self.ports = ports
        self.allowsPrivateAddresses = allowsPrivateAddresses
        self.allowsCredentials = allowsCredentials
    }

    /// A part of cache keys that separates values stored under this policy; nil if private addresses are allowed.
    /// A trusted proxy may return content from any address, so it has a value of its own.
    var fence: String? {
        guard !allowsPrivateAddresses else { return nil }
        guard privateExceptions.isEmpty else {
            return "public and private \(privateExceptions.rawValue) only" + (trustsProxy ? ", proxied" : "")
        }
        return trustsProxy ? "public or proxied only" : "public only"
    }

    /// Kinds of private addresses.
    @_spi(HTTPCacheEngine) public struct PrivateAddresses: OptionSet, Sendable, Hashable {
        public let rawValue: Int
        /// This computer.
        public static let loopback = PrivateAddresses(rawValue: 1)
        /// The same link, which includes the metadata services of clouds.
        public static let linkLocal = PrivateAddresses(rawValue: 2)
        /// Private networks, and those between a provider and its customers.
        public static let networks = PrivateAddresses(rawValue: 4)

        public init(rawValue: Int) { self.rawValue = rawValue }

        func permit(_ kind: IPAddress.Class) -> Bool {
            switch kind {
            case .loopback: contains(PrivateAddresses.loopback)
            case .linkLocal: contains(PrivateAddresses.linkLocal)
            case .private, .carrierGrade: contains(PrivateAddresses.networks)
            default: false
            }
        }
    }

    /// Returns the form of an HTTP URL that is checked and requested; nil for a URL that is never loaded.
    ///
    /// It has no credentials and no fragment, its scheme and host are in lowercase, and the scheme's own port is left
    /// out.
    @_spi(HTTPCacheEngine) public static func normalized(_ url: String) -> String? { try? SourceURL(url).text }

    // MARK: Checks

    /// Returns why an IP address may not be connected to; nil if it may.
    package func check(_ address: IPAddress) -> PolicyViolation? {
        allowsPrivateAddresses || address.classes.allSatisfy { $0 == .public || privateExceptions.permit($0) }
            ? nil : .address(address.description)
    }

    /// Returns why a scheme may not be loaded; nil if it may.
    func check(scheme: String) -> PolicyViolation? {
        schemes?.contains(scheme) ?? true ? nil : .scheme(scheme)
    }

    /// Returns why a URL may not be loaded, as far as its text tells; nil if it may.
    package func check(_ url: SourceURL) -> PolicyViolation? {
        if let violation = check(scheme: url.scheme) { return violation }
        if url.credentials != nil, !allowsCredentials { return .userInformation }
        if let ports, !ports.contains(url.port) { return .port(url.port) }
        let name = url.host.text
        if let hosts, !hosts.contains(where: { Self.matches($0, name) }) { return .host(name) }
        if blockedHosts.contains(where: { Self.matches($0, name) }) { return .host(name) }
        if let permitsURL, !permitsURL(url.text) { return .url }
        switch url.host {
        case .address(let address): return check(address)
        case .name(let name): return url.host.literal.flatMap { check($0) } == nil ? nil : .host(name)
        }
    }

    /// Returns why one URL may not redirect to another, as far as the schemes tell; nil if it may.
    ///
    /// The target is checked separately, as any other URL. Redirects from public to private addresses are found when
    /// the connection is made.
    package func check(redirectFrom one: SourceURL, to other: SourceURL) -> PolicyViolation? {
        if one.isSecure, !other.isSecure, !allowsRedirectsToInsecure { return .redirectToInsecure }
        // No user asks a server to choose the password.
        if other.credentials != nil { return .userInformation }
        return nil
    }

    /// Returns whether a media type is accepted.
    func accepts(contentType: String?) -> Bool {
        contentTypes.map { Self.accepts(contentType: contentType, among: $0) } ?? true
    }

    /// Returns whether a media type matches one of several patterns such as `image/jpeg` or `image/*`. A missing type
    /// matches `*/*`.
    static func accepts(contentType: String?, among patterns: [String]) -> Bool {
        guard let contentType = contentType?.lowercased() else { return patterns.contains("*/*") }
        return patterns.contains { pattern in
            let pattern = pattern.lowercased()
            if pattern == "*/*" || pattern == contentType { return true }
            return pattern.hasSuffix("/*") && contentType.hasPrefix(pattern.dropLast())
        }
    }

    /// Returns whether a media type says nothing about the content.
    ///
    /// Missing, malformed and private types say nothing. The same applies to the unknown types of the WHATWG standard for
    /// MIME sniffing, and to the types that servers send for unknown files.
    static func saysNothing(contentType: String?) -> Bool {
        guard let type = contentType?.lowercased() else { return true }
        let parts = type.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPSyntax.isToken(String($0)) }) else { return true }
        switch (parts[0], parts[1]) {
        case ("text", "plain"), ("application", "octet-stream"), ("application", "unknown"): return true
        case ("application", let name): return name.hasPrefix("x-") && !name.contains("script")
        default: return !topLevelTypes.contains(parts[0])
        }
    }

    /// The top-level media types that IANA registers.
    private static let topLevelTypes: Set<Substring> = [
        "application", "audio", "example", "font", "haptics", "image", "message", "model", "multipart", "text", "video",
    ]

    private static func matches(_ pattern: String, _ host: String) -> Bool {
        let pattern = pattern.lowercased()
        guard pattern.hasPrefix("*.") else { return pattern == host }
        return host.hasSuffix(pattern.dropFirst())
    }
}

/// The rule of a ``URLAccessPolicy`` that refuses a URL, a redirect or a connection.
package enum PolicyViolation: Error, Sendable, Hashable {
    /// The scheme is not permitted.
    case scheme(String)
    /// The host is not permitted, or is blocked.
    case host(String)
    /// The port is not permitted.
    case port(Int)
    /// The URL is not permitted.
    case url
    /// The URL contains a user name or password.
    case userInformation
    /// The IP address is not public.
    case address(String)
    /// A public address redirects to this private IP address.
    case redirectToPrivate(String)
    /// An `https` URL redirects to an `http` URL.
    case redirectToInsecure
    /// The transport cannot report the IP address before it connects, or a proxy connects in its place.
    case addressesUnknown
}

extension PolicyViolation: CustomStringConvertible {
    /// The reason as a part of a sentence.
    package var description: String {
        switch self {
        case .scheme(let scheme): "the scheme \(scheme) is not permitted"
        case .host(let host): "the host \(host) is not permitted"
        case .port(let port): "the port \(port) is not permitted"
        case .url: "its address is not permitted"
        case .userInformation: "the URL contains a user name or password"
        case .address(let address): "the address \(address) is not public"
        case .redirectToPrivate(let address): "a public address redirects to the private address \(address)"
        case .redirectToInsecure: "an https URL redirects to an http URL"
        case .addressesUnknown: "the IP address is not known before the connection is made"
        }
    }
}
