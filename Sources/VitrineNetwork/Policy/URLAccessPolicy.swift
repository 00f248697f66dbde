/// What may be loaded from where.
///
/// Asked for the address, for every redirect, for every IP address before it is connected to, and for the header of
/// the response before anything of the body is kept.
///
/// - ``userInitiated`` is for programs whose user names the addresses: everything is allowed that the user could open
///   in a browser, but nobody else may lead the program into the user's own network.
/// - ``publicOnly`` is for servers that load what strangers name.
public struct URLAccessPolicy: Sendable {
    /// The only schemes allowed, in small letters; nil for all that somebody is registered for.
    public var schemes: Set<String>?
    /// The only hosts allowed; nil for all. `example.org` is that host, `*.example.org` all within it.
    public var hosts: [String]?
    /// Hosts not allowed, in the same form.
    public var blockedHosts: [String] = []
    /// The only ports allowed; nil for all.
    public var ports: Set<Int>?
    /// The only media types accepted, such as `image/jpeg` or `image/*`; nil for all. A response without a type is
    /// refused unless all are accepted (R75).
    public var contentTypes: [String]?
    /// Whether addresses may lie on this machine and in networks that are not public.
    ///
    /// What a ``NetworkFetcher`` loads without this is stored under keys of its own, so that it never gives what was
    /// stored with it.
    public var allowsPrivateAddresses: Bool
    /// Whether a public address may redirect to one that is not.
    public var allowsRedirectsToPrivate = false
    /// Whether an encrypted address may redirect to one that is not.
    public var allowsRedirectsToInsecure = false
    /// Whether an address may hold a name and password, which are sent to its own host only.
    public var allowsCredentials: Bool
    /// With ``allowsPrivateAddresses`` off: whether a loader may connect through a proxy, which then sees to it which
    /// addresses are connected to. Addresses written in URLs and redirects are checked nevertheless, and so is what goes
    /// past the proxy. Default: false, which refuses what a proxy would connect to.
    public var trustsProxy = false
    /// How many redirects are followed. Default: 10.
    public var maximumRedirects = 10

    /// For addresses the user names: allowed wherever they are; a public one may not redirect to a private one.
    public static let userInitiated = URLAccessPolicy(
        schemes: nil, ports: nil, allowsPrivateAddresses: true, allowsCredentials: true)

    /// For addresses strangers name: HTTP at its own two ports, at public addresses only, on every hop and whatever a
    /// name is translated to at the moment of connecting.
    public static let publicOnly = URLAccessPolicy(
        schemes: ["http", "https"], ports: [80, 443], allowsPrivateAddresses: false, allowsCredentials: false)

    private init(schemes: Set<String>?, ports: Set<Int>?, allowsPrivateAddresses: Bool, allowsCredentials: Bool) {
        self.schemes = schemes
        self.ports = ports
        self.allowsPrivateAddresses = allowsPrivateAddresses
        self.allowsCredentials = allowsCredentials
    }

    /// What keeps apart what is stored under this policy from what one without it stored: nil if private addresses are
    /// allowed. What a trusted proxy brought may come from anywhere.
    var fence: String? {
        guard !allowsPrivateAddresses else { return nil }
        return trustsProxy ? "public or proxied only" : "public only"
    }

    // MARK: Asking

    /// Whether an address may be connected to.
    ///
    /// - Returns: nil if so, or why not.
    public func check(_ address: IPAddress) -> PolicyViolation? {
        allowsPrivateAddresses || address.class == .public ? nil : .address(address)
    }

    /// Whether a scheme may be loaded.
    public func check(scheme: String) -> PolicyViolation? {
        schemes?.contains(scheme) ?? true ? nil : .scheme(scheme)
    }

    /// Whether something may be loaded from an address, as far as the address itself tells.
    package func check(_ url: SourceURL) -> PolicyViolation? {
        if let violation = check(scheme: url.scheme) { return violation }
        if url.credentials != nil, !allowsCredentials { return .userInformation }
        if let ports, !ports.contains(url.port) { return .port(url.port) }
        let name = url.host.text
        if let hosts, !hosts.contains(where: { Self.matches($0, name) }) { return .host(name) }
        if blockedHosts.contains(where: { Self.matches($0, name) }) { return .host(name) }
        switch url.host {
        case .address(let address): return check(address)
        case .name(let name): return !allowsPrivateAddresses && url.host.literal != nil ? .host(name) : nil
        }
    }

    /// Whether one address may redirect to another, as far as the schemes tell. Where a redirect leads to is checked
    /// like any other address; whether it leads from a public to a private one shows when it is connected to.
    package func check(redirectFrom one: SourceURL, to other: SourceURL) -> PolicyViolation? {
        if one.isSecure, !other.isSecure, !allowsRedirectsToInsecure { return .redirectToInsecure }
        // A redirect that brings a password along is nobody's wish.
        if other.credentials != nil { return .userInformation }
        return nil
    }

    /// Whether a media type is accepted.
    public func accepts(contentType: String?) -> Bool {
        contentTypes.map { Self.accepts(contentType: contentType, among: $0) } ?? true
    }

    /// Whether a media type is one of several such as `image/jpeg` or `image/*`.
    static func accepts(contentType: String?, among patterns: [String]) -> Bool {
        guard let contentType = contentType?.lowercased() else { return false }
        return patterns.contains { pattern in
            let pattern = pattern.lowercased()
            if pattern == "*/*" || pattern == contentType { return true }
            return pattern.hasSuffix("/*") && contentType.hasPrefix(pattern.dropLast())
        }
    }

    private static func matches(_ pattern: String, _ host: String) -> Bool {
        let pattern = pattern.lowercased()
        guard pattern.hasPrefix("*.") else { return pattern == host }
        return host.hasSuffix(pattern.dropFirst())
    }
}
