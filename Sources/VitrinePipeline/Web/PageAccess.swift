import VitrineCore
import VitrineNetwork

/// Decides what a page may load: the proxy asks for each address before it connects, the session for each document.
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
    ///   - schemes: What the page and all that it loads may begin with.
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
