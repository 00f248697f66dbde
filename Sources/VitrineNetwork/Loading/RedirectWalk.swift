#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// The redirects of one request, one hop at a time.
struct RedirectWalk {
    /// The current URL.
    private(set) var url: SourceURL
    /// The request to send to it.
    private(set) var request: HTTPRequest
    /// Whether the current origin has received an authenticated request.
    private(set) var hasAnswered = false

    /// The redirects that were followed, in order.
    private(set) var redirects: [HTTPResponseHead] = []

    private let configuration: NetworkLoader.Configuration
    /// The conditions of the request, which belong to one URL.
    private let conditions: [HTTPHeaders.Field]
    private var hops = 0
    private var visited: Set<String>
    /// Whether an earlier hop was at a public address.
    private var comesFromPublic = false

    init(from url: SourceURL, _ request: HTTPRequest, _ configuration: NetworkLoader.Configuration) {
        self.url = url
        self.request = request
        self.configuration = configuration
        conditions = request.headers.fields.filter { Self.isCondition($0) }
        visited = [request.method + " " + url.text]
        placeConditions()
    }

    /// Sends the conditions if they belong to the current URL.
    private mutating func placeConditions() {
        guard let target = request.conditionalTarget else { return }
        request.headers.removeAll { Self.isCondition($0) }
        guard url.digest == target else { return }
        for field in conditions { request.headers.append(field.name, field.value) }
    }

    private static func isCondition(_ field: HTTPHeaders.Field) -> Bool {
        field.isNamed("If-None-Match") || field.isNamed("If-Modified-Since")
    }

    /// Whether conditions are sent to the current URL.
    var sendsConditions: Bool { request.headers.fields.contains { Self.isCondition($0) } }

    /// Decides about addresses before the transport connects; nil if all are permitted.
    var filter: ConnectFilter? {
        let policy = configuration.policy
        let isFenced = comesFromPublic && !policy.allowsRedirectsToPrivate
        guard isFenced || !policy.allowsPrivateAddresses else { return nil }
        return { address in
            if let violation = policy.check(address) { return violation }
            return isFenced && address.class != .public ? .redirectToPrivate(address.description) : nil
        }
    }

    /// Replaces the request to the current URL.
    mutating func answer(with request: HTTPRequest) {
        var request = request
        request.url = self.request.url
        self.request = request
        hasAnswered = true
    }

    /// Follows the redirect of a response.
    ///
    /// - Returns: false if the response is not a redirect.
    /// - Throws: ``NetworkError/refused(url:reason:)``, ``NetworkError/tooManyRedirects(url:reason:)`` and others.
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
        // A literal address is known without a connection; through a proxy there is none.
        if let address = target.host.literal, let violation = filter?(address) {
            throw .refused(url: target.text, violation)
        }
        rewriteMethod(head.status)
        hops += 1
        guard hops <= policy.maximumRedirects else {
            throw .tooManyRedirects(url: url.text, reason: "there are more than \(policy.maximumRedirects) redirects")
        }
        guard visited.insert(request.method + " " + target.text).inserted else {
            throw .tooManyRedirects(url: target.text, reason: "the redirects form a loop")
        }
        guard let next = URL(string: target.text) else {
            throw .invalidURL(url: target.text, reason: "the redirect is not a valid URL")
        }
        if target.origin != url.origin { leaveSite() }
        request.url = next
        url = target
        redirects.append(head)
        placeConditions()
        return true
    }

    /// Returns whether a response came from a public address.
    ///
    /// Through a proxy, only a literal address in the URL is known. A host name then counts as public, which is the
    /// stricter case for the redirect.
    private func isPublic(_ head: HTTPResponseHead) -> Bool {
        if head.isProxied { return url.host.literal.map { $0.class == .public } ?? true }
        return head.remoteAddress.flatMap { IPAddress($0) }?.class == .public
    }

    private func resolve(_ location: String) throws(NetworkError) -> SourceURL {
        do throws(NetworkError) {
            return try url.resolve(location)
        } catch .unsupportedScheme(let url, let scheme) {
            // Registered schemes are for the user's own requests, not for servers.
            throw .refused(url: url, .scheme(scheme))
        }
    }

    /// Changes the method to GET after 303, and after 301 and 302 to a POST (RFC 9110, sections 15.4.2 to 15.4.4).
    private mutating func rewriteMethod(_ status: Int) {
        let isFetched = status == 303 && request.method != "HEAD" || status <= 302 && request.method == "POST"
        guard isFetched, request.method != "GET" else { return }
        request.method = "GET"
        request.body = nil
        request.headers.removeAll { $0.name.lowercased().hasPrefix("content-") }
    }

    /// Removes header fields that other origins must not receive.
    private mutating func leaveSite() {
        let kept = configuration.crossOriginHeaders
        request.headers.removeAll { !kept.contains($0.name.lowercased()) }
        hasAnswered = false
    }
}

/// Checks by its head whether a response is the requested one.
enum ResponseCheck {
    /// Returns the error of a response, or nil if it is the requested one.
    static func failure(_ head: HTTPResponseHead, to request: HTTPRequest, policy: URLAccessPolicy) -> NetworkError? {
        var url: String { SourceURL.withoutCredentials(head.url.absoluteString) }
        if head.status == 304, isConditional(request) { return nil }
        guard (200..<300).contains(head.status) else { return .status(url: url, head) }
        if head.status == 206, let failure = wrongRange(head, to: request, url: url) { return failure }
        // Files have no media type.
        if head.version == .none, head.contentType == nil { return nil }
        guard policy.accepts(contentType: head.contentType) else {
            return .contentType(url: url, type: head.contentType)
        }
        return nil
    }

    private static func isConditional(_ request: HTTPRequest) -> Bool {
        request.headers.contains("If-None-Match") || request.headers.contains("If-Modified-Since")
    }

    /// Returns the error of a partial response with another range than requested. Appending it would corrupt the file.
    private static func wrongRange(_ head: HTTPResponseHead, to request: HTTPRequest, url: String) -> NetworkError? {
        guard let range = request.range else {
            guard !request.headers.contains("Range") else { return nil }
            return .invalidResponse(url: url, reason: "the response is partial, but the whole was requested")
        }
        guard head.decodedFrom == nil, !head.headers.contains("Content-Encoding") else {
            return .invalidResponse(url: url, reason: "the partial response is compressed")
        }
        guard let sent = head.headers["Content-Range"].flatMap(ContentRange.init) else {
            return .invalidResponse(url: url, reason: "the partial response has no valid range")
        }
        guard sent.range.lowerBound == range.lowerBound, sent.range.upperBound <= range.upperBound,
            head.contentLength.map({ $0 == sent.range.count }) ?? true
        else { return .invalidResponse(url: url, reason: "the partial response has another range than requested") }
        return nil
    }
}
