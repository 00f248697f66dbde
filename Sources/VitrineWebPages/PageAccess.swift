#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineNetwork

/// The access policy of a page: the proxy checks each address before it connects, and the session each document.
final class PageAccess: Sendable {
    /// A site that was not connected to.
    private struct Failure: Sendable {
        let site: SourceURL
        let reason: String
        /// Whether the policy prevented it.
        let isRefusal: Bool
    }

    private struct State {
        /// The host of the address that the user gave.
        var host: SourceURL.Host?
        /// Whether only public addresses are connected to; nil before the page's own host has been resolved.
        var isFenced: Bool?
        var failures: [Failure] = []
    }

    private static let maximumFailures = 32

    let policy: URLAccessPolicy
    private let schemes: Set<String>
    private let state: Locked<State>

    /// - Parameters:
    ///   - url: The page's address as the user gave it.
    ///   - schemes: The schemes of the page and of all that it loads.
    init(url: String, schemes: Set<String>, policy: URLAccessPolicy) {
        self.policy = policy
        self.schemes = schemes
        state = Locked(State(host: WebAddress.site(of: url)?.host))
    }

    /// Whether anything at all is loaded from other hosts.
    var reachesNetwork: Bool { !schemes.isDisjoint(with: ["http", "https"]) }

    /// Notes the host of the page's address as the browser reads it, which knows more notations.
    func begin(at site: SourceURL) {
        state.withLock { if $0.host == nil { $0.host = site.host } }
    }

    /// Why nothing is loaded from a site, as far as its name tells; nil if it may be.
    func check(_ site: SourceURL) -> PolicyViolation? {
        guard schemes.contains(site.scheme) else { return .scheme(site.scheme) }
        return policy.check(site)
    }

    /// The addresses of a host that may be connected to, or why there is none.
    ///
    /// A page at a private address may load from private addresses. All others may not, unless the policy allows
    /// redirects to private addresses: that is how a page leads a browser into its user's network.
    func permitted(_ addresses: [IPAddress], of host: SourceURL.Host) -> Result<[IPAddress], PolicyViolation> {
        let isFenced = state.withLock { state in
            if policy.allowsRedirectsToPrivate { return false }
            if state.isFenced == nil, host == state.host, !addresses.isEmpty {
                state.isFenced = addresses.contains { $0.class == .public }
            }
            return state.isFenced ?? true
        }
        var violation: PolicyViolation?
        let permitted = addresses.filter { address in
            let reason = policy.check(address)
                ?? (isFenced && address.class != .public ? .redirectToPrivate(address.description) : nil)
            if violation == nil { violation = reason }
            return reason == nil
        }
        if permitted.isEmpty, let violation { return .failure(violation) }
        return .success(permitted)
    }

    /// Notes that a site was not connected to, as the policy prevents it.
    func refuse(_ site: SourceURL, _ violation: PolicyViolation) {
        note(Failure(site: site, reason: "\(site.origin) is not loaded: \(violation)", isRefusal: true))
    }

    /// Notes that there is no connection to a site.
    func fail(_ site: SourceURL, _ reason: String) {
        note(Failure(site: site, reason: reason, isRefusal: false))
    }

    private func note(_ failure: Failure) {
        state.withLock { state in
            if state.failures.count == Self.maximumFailures { state.failures.removeFirst() }
            state.failures.append(failure)
        }
    }

    /// Why the site of an address was not connected to last; nil if it was.
    func failure(of url: String) -> (reason: String, isRefusal: Bool)? {
        guard let site = WebAddress.site(of: url) else { return nil }
        return state.withLock { state in
            state.failures.last { $0.site.host == site.host && $0.site.port == site.port }
        }.map { ($0.reason, $0.isRefusal) }
    }
}

/// Takes addresses of pages apart, as far as it is decided here whether they are drawn.
package enum WebAddress {
    /// The text before the first colon, in lower case (RFC 3986 §3.1); nil for none.
    package static func scheme(of url: String) -> String? {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = url.utf8[..<colon]
        let isScheme = scheme.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        return isScheme && !scheme.isEmpty ? String(Substring(scheme)).lowercased() : nil
    }

    /// Scheme, host and port of an HTTP address with any path; nil for other addresses, and for hosts in
    /// notations that ``SourceURL`` does not read.
    package static func site(of url: String) -> SourceURL? {
        guard let scheme = scheme(of: url), scheme == "http" || scheme == "https" else { return nil }
        let rest = url.utf8.dropFirst(scheme.utf8.count + 1)
        guard rest.starts(with: "//".utf8) else { return nil }
        let authority = rest.dropFirst(2).prefix { !"/?#\\".utf8.contains($0) }
        return try? SourceURL(scheme + "://" + String(decoding: Array(authority), as: UTF8.self) + "/")
    }

    /// The path of a `file:` address on this machine, without query and fragment; nil for other addresses.
    package static func path(ofFile url: String) -> String? {
        guard scheme(of: url) == "file" else { return nil }
        var rest = url.utf8.dropFirst(5).prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        if rest.starts(with: "//localhost/".utf8) {
            rest = rest.dropFirst(11)
        } else if rest.starts(with: "///".utf8) {
            rest = rest.dropFirst(2)
        }
        guard rest.first == UInt8(ascii: "/"), rest.dropFirst().first != UInt8(ascii: "/") else { return nil }
        return PathText.text(of: PercentEncoding.decoded(rest))
    }

    /// An address for messages: without a name and password, and shortened.
    package static func short(_ url: String) -> String {
        let url = SourceURL.withoutCredentials(url)
        return url.utf8.count <= 200 ? url : String(url.prefix(200)) + "…"
    }
}

/// Files that a local page may read.
enum LocalFile {
    /// The path without links, as the file is found; nil when there is no such file.
    static func resolved(_ path: String) -> String? {
        guard !path.utf8.contains(0), let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// The directory of a file, with `/` at its end; a directory's own path when that is given.
    static func directory(of path: String) -> String {
        var status = stat()
        let isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        let base = isDirectory ? path : String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        return base.hasSuffix("/") ? base : base + "/"
    }
}
