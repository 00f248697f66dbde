#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// The way of one request through redirects, one hop at a time.
struct RedirectWalk {
    /// Where it is.
    private(set) var url: SourceURL
    /// What to send there.
    private(set) var request: HTTPRequest
    /// Whether the site it is at has been answered who asks.
    private(set) var hasAnswered = false

    private let configuration: NetworkLoader.Configuration
    private var hops = 0
    private var visited: Set<String>
    /// Whether one of the hops before was public.
    private var comesFromPublic = false

    init(from url: SourceURL, _ request: HTTPRequest, _ configuration: NetworkLoader.Configuration) {
        self.url = url
        self.request = request
        self.configuration = configuration
        visited = [request.method + " " + url.text]
    }

    /// Asked by the loader before it connects.
    var guardian: ConnectFilter? {
        let policy = configuration.policy
        let isFenced = comesFromPublic && !policy.allowsRedirectsToPrivate
        guard isFenced || !policy.allowsPrivateAddresses else { return nil }
        return { address in
            if let violation = policy.check(address) { return violation }
            return isFenced && address.class != .public ? .redirectToPrivate(address) : nil
        }
    }

    /// Sends this to the same place instead.
    mutating func answer(with request: HTTPRequest) {
        var request = request
        request.url = self.request.url
        self.request = request
        hasAnswered = true
    }

    /// Goes where a response says.
    ///
    /// - Returns: false if it says nothing: the response is the last one.
    /// - Throws: ``NetworkError/refused(url:_:)``, ``NetworkError/redirectLoop(url:)`` and others.
    mutating func follow(_ head: HTTPResponseHead) throws(NetworkError) -> Bool {
        guard [301, 302, 303, 307, 308].contains(head.status), let location = head.headers["Location"] else {
            return false
        }
        let policy = configuration.policy
        guard policy.maximumRedirects > 0 else { return false }
        let target = try resolve(location)
        if let violation = policy.check(redirectFrom: url, to: target) {
            throw .refused(url: target.text, violation)
        }
        if isPublic(head) { comesFromPublic = true }
        // An address written as such needs no connection to be known; with a proxy there will be none.
        if let address = target.host.literal, let violation = guardian?(address) {
            throw .refused(url: target.text, violation)
        }
        rewriteMethod(head.status)
        hops += 1
        guard hops <= policy.maximumRedirects else {
            throw .tooManyRedirects(url: url.text, limit: policy.maximumRedirects)
        }
        guard visited.insert(request.method + " " + target.text).inserted else { throw .redirectLoop(url: target.text) }
        guard let next = URL(string: target.text) else {
            throw .invalidURL(url: target.text, reason: "it cannot be written as an address")
        }
        if target.origin != url.origin { leaveSite() }
        request.url = next
        url = target
        return true
    }

    /// Whether a response came from a public address.
    ///
    /// Behind a proxy only an address written as such tells: the response's own is the proxy's. A name counts as public,
    /// so that what it redirects to is held to more, not to less.
    private func isPublic(_ head: HTTPResponseHead) -> Bool {
        if head.isProxied { return url.host.literal.map { $0.class == .public } ?? true }
        return head.remoteAddress.flatMap { IPAddress($0) }?.class == .public
    }

    private func resolve(_ location: String) throws(NetworkError) -> SourceURL {
        do throws(NetworkError) {
            return try url.resolve(location)
        } catch .unsupportedScheme(let url, let scheme) {
            // Whoever is registered for a scheme is for the user's own requests.
            throw .refused(url: url, .scheme(scheme))
        }
    }

    /// RFC 9110, sections 15.4.2 to 15.4.4: 303 is fetched; 301 and 302 are, by custom, after POST.
    private mutating func rewriteMethod(_ status: Int) {
        let isFetched = status == 303 && request.method != "HEAD" || status <= 302 && request.method == "POST"
        guard isFetched, request.method != "GET" else { return }
        request.method = "GET"
        request.body = nil
        request.headers.removeAll { $0.name.lowercased().hasPrefix("content-") }
    }

    private mutating func leaveSite() {
        let kept = configuration.crossOriginHeaders
        request.headers.removeAll { !kept.contains($0.name.lowercased()) }
        hasAnswered = false
    }
}
