#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

@_spi(HTTPCacheEngine) extension HTTPCache {
    /// Returns the response to store; nil if it must not be stored or could never be used (RFC 9111, section 3).
    private func storable(_ exchange: CacheExchange) -> StoredResponse? {
        // 206 and 416 are incomplete, and a 304 has no content.
        guard (200...599).contains(exchange.status), ![206, 304, 416].contains(exchange.status),
            !exchange.request.directives.noStore
        else { return nil }
        let (directives, _) = policy.directives(of: exchange.headers)
        guard !forbidsStoring(exchange.status, directives), !redirectsForbidStoring(exchange),
            allowsCredentials(exchange.request, directives),
            let selecting = SelectingField.all(of: exchange.headers, in: exchange.request.headers)
        else { return nil }
        var response = StoredResponse(
            status: exchange.status, headers: storableFields(exchange.headers), requestTime: exchange.requestTime,
            responseTime: exchange.responseTime, selecting: selecting)
        response.redirection = redirection(of: exchange)
        return isUseful(response, directives) ? response : nil
    }

    /// Returns whether directives forbid storing a response with a status.
    private func forbidsStoring(_ status: Int, _ directives: CacheDirectives) -> Bool {
        if directives.mustUnderstand {
            guard HTTPCachePolicy.understands(status) else { return true }
        } else if directives.noStore {
            return true
        }
        return policy.isShared && directives.isPrivate.isEverything
    }

    /// Returns whether one of the redirects may not be stored, so that the response must not stand for it.
    private func redirectsForbidStoring(_ exchange: CacheExchange) -> Bool {
        exchange.redirects.contains { forbidsStoring($0.status, policy.directives(of: $0.headers).directives) }
    }

    /// Returns the limits that the redirects of a response set to its use under the requested URL.
    private func redirection(of exchange: CacheExchange) -> StoredResponse.Redirection? {
        guard let target = exchange.target, !exchange.redirects.isEmpty else { return nil }
        var result = StoredResponse.Redirection(target: target)
        for redirect in exchange.redirects {
            let hop = StoredResponse(
                status: redirect.status, headers: storableFields(redirect.headers), requestTime: exchange.requestTime,
                responseTime: exchange.responseTime, selecting: [])
            let (directives, _) = policy.directives(of: hop.headers)
            if policy.forbidsStale(hop, directives) { result.forbidsStale = true }
            let isPermanent = redirect.status == 301 || redirect.status == 308
            let needsValidation = policy.requiresValidation(hop, directives)
            if isPermanent, !needsValidation, !policy.hasExplicitLifetime(hop.headers) { continue }
            let rest = needsValidation ? .zero : policy.freshness(of: hop, now: exchange.responseTime).remaining
            let end = exchange.responseTime + rest
            result.freshUntil = min(result.freshUntil ?? end, end)
        }
        return result
    }

    /// Returns whether a response to a request with credentials may be stored (RFC 9111, section 3.5).
    private func allowsCredentials(_ request: CacheRequest, _ directives: CacheDirectives) -> Bool {
        guard policy.isShared, request.headers.contains("Authorization") else { return true }
        return directives.isPublic || directives.mustRevalidate || directives.sharedMaxAge != nil
    }

    /// Returns whether a stored response could be used: it has a lifetime, or its status permits a heuristic one.
    /// Failures without a lifetime are not stored.
    private func isUseful(_ response: StoredResponse, _ directives: CacheDirectives) -> Bool {
        let isHeuristic = HTTPCachePolicy.heuristicStatuses.contains(response.status)
        guard
            isHeuristic || directives.isPublic || directives.isPrivate != .nothing
                || policy.hasExplicitLifetime(response.headers)
        else { return false }
        guard response.status >= 300 else { return true }
        let hasValidator = response.entityTag != nil || response.lastModified != nil
        return policy.freshness(of: response, now: response.responseTime).lifetime > .zero
            || (hasValidator && response.status < 400)
    }

    /// Returns the fields to store (RFC 9111, section 3.1), without connection fields, fields that the directives
    /// exclude, and validators that cannot be sent.
    func storableFields(_ headers: HTTPHeaders) -> HTTPHeaders {
        let (directives, _) = policy.directives(of: headers)
        var left = HTTPCache.connectionFields
        left.formUnion(HTTPList.names(headers.all("Connection")).filter { !HTTPCache.kept.contains($0) })
        left.formUnion(directives.noCache.fieldNames)
        if policy.isShared { left.formUnion(directives.isPrivate.fieldNames) }
        return HTTPHeaders(
            headers.fields.filter { field in
                let name = field.name.lowercased()
                return !left.contains(name) && (name != "etag" || EntityTag.isSendable(field.value))
            })
    }

    /// The fields that concern a single connection, in lowercase (RFC 9110, sections 7.6.1 and 11.7).
    public static let connectionFields: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authentication-info",
        "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// Fields that are stored even if `Connection` lists them. Without them, a response would be stored without limits.
    private static let kept: Set<String> = [
        "age", "cache-control", "cdn-cache-control", "content-encoding", "content-length", "content-range",
        "content-type", "date", "etag", "expires", "last-modified", "vary",
    ]
}

extension HTTPCachePolicy {
    /// Returns whether a response declares its lifetime.
    fileprivate func hasExplicitLifetime(_ headers: HTTPHeaders) -> Bool {
        let (directives, isTargeted) = directives(of: headers)
        return directives.maxAge != nil || (isShared && directives.sharedMaxAge != nil)
            || (!isTargeted && headers.contains("Expires"))
    }
}

/// A request to the server and the head of its response.
@_spi(HTTPCacheEngine) public struct CacheExchange: Sendable {
    /// The request of the client, without the cache's conditions.
    public var request: CacheRequest
    /// The final status code of the response.
    public var status: Int
    /// The header fields of the response.
    public var headers: HTTPHeaders
    /// The time of the request, since 1970.
    public var requestTime: Duration
    /// The time of the response's head, since 1970.
    public var responseTime: Duration
    /// All stored responses, as they were passed to ``HTTPCache/decide(_:stored:now:)``.
    public var stored: [StoredResponse]
    /// The index of the response that was revalidated. nil also if ``stored`` has no such response.
    public var revalidated: Int? {
        get { revalidatedIndex.flatMap { stored.indices.contains($0) ? $0 : nil } }
        set { revalidatedIndex = newValue }
    }
    private var revalidatedIndex: Int?
    /// The heads of the redirects that led to the response, in order.
    package var redirects: [HTTPResponseHead] = []
    /// The digest of the URL of the response, if redirects led to it.
    package var target: String?

    /// Creates an exchange.
    ///
    /// - Parameters:
    ///   - request: The request of the client, without the cache's conditions.
    ///   - status: The final status code of the response.
    ///   - headers: The header fields of the response.
    ///   - requestTime: The time of the request, since 1970.
    ///   - responseTime: The time of the response's head, since 1970.
    ///   - stored: All stored responses, as they were passed to ``HTTPCache/decide(_:stored:now:)``.
    public init(
        request: CacheRequest, status: Int, headers: HTTPHeaders, requestTime: Duration, responseTime: Duration,
        stored: [StoredResponse] = []
    ) {
        self.request = request
        self.status = status
        self.headers = headers
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.stored = stored
    }
}

/// The consequences of a response.
@_spi(HTTPCacheEngine) public struct CacheUpdate: Sendable {
    /// The answer to the request.
    public enum Answer: Sendable, Hashable {
        /// The received response, which is not stored.
        case response
        /// The received response, which is stored with this head once its body is complete. A truncated body must not
        /// be stored.
        case storing(StoredResponse)
        /// The stored response at this index in its refreshed form, because the server has confirmed it.
        case confirmed(Int)
        /// The stale response at this index, because the server failed.
        case stale(Int)
        /// None yet: the confirmed response is not stored. Send the unchanged request of the client again.
        case repetition
    }

    /// The answer to the request.
    public var answer: Answer
    /// New heads of stored responses by index. Their bodies stay.
    public var refreshed: [Int: StoredResponse] = [:]
    /// The indices of stored responses to remove: after the new body is complete with ``Answer/storing(_:)``, otherwise
    /// at once. A response that is also the answer is removed after use.
    public var removed: Set<Int> = []
    /// Other URLs whose responses are to be removed, or replaced by ``StoredResponse/invalidated()``.
    public var invalidated: [URL] = []
}

@_spi(HTTPCacheEngine) extension HTTPCache {
    /// Decides about a response before its body is read. Interim responses are passed on.
    public func update(after exchange: CacheExchange) -> CacheUpdate {
        if exchange.status < 200 { return CacheUpdate(answer: .response) }
        if exchange.request.isUnsafe { return afterUnsafe(exchange) }
        if exchange.request.method == "HEAD" { return afterHead(exchange) }
        guard exchange.request.method == "GET" else { return CacheUpdate(answer: .response) }
        if exchange.status == 304, let index = exchange.revalidated { return afterConfirmation(exchange, index) }
        if [500, 502, 503, 504].contains(exchange.status), let index = exchange.revalidated,
            replacesFailure(exchange.stored[index], request: exchange.request, now: exchange.responseTime)
        {
            return CacheUpdate(answer: .stale(index))
        }
        return afterResponse(exchange)
    }

    private func afterResponse(_ exchange: CacheExchange) -> CacheUpdate {
        let fitting = Set(matching(exchange.request, exchange.stored))
        var update = CacheUpdate(answer: .response)
        // A failure does not replace a successful response, whatever lifetime it declares.
        let isFailure = exchange.status >= 500 || [408, 425, 429].contains(exchange.status)
        if isFailure, fitting.contains(where: { exchange.stored[$0].status < 400 }) { return update }
        if let response = storable(exchange) {
            return CacheUpdate(answer: .storing(response), removed: crowdedOut(exchange, by: fitting))
        }
        // A newer response that must not be stored outdates the stored ones; failures do not.
        let isSuccessor = (200...399).contains(exchange.status) && ![206, 304].contains(exchange.status)
        if isSuccessor || [404, 410].contains(exchange.status) { update.removed = fitting }
        if exchange.status == 206, let index = exchange.revalidated, isOther(exchange, exchange.stored[index]) {
            update.removed = [index]
        }
        return update
    }

    /// Returns the responses to remove when one is stored: those it replaces, and the oldest beyond the limit.
    private func crowdedOut(_ exchange: CacheExchange, by replaced: Set<Int>) -> Set<Int> {
        let others = exchange.stored.indices.filter { !replaced.contains($0) }
            .sorted { isOlder(exchange.stored[$0], exchange.stored[$1]) }
        return replaced.union(others.prefix(max(0, others.count - max(1, policy.variantLimit) + 1)))
    }

    /// Returns whether a partial response belongs to another version than the stored response.
    private func isOther(_ exchange: CacheExchange, _ response: StoredResponse) -> Bool {
        guard let tag = exchange.headers["ETag"], let stored = response.entityTag else { return true }
        return EntityTag(tag) != EntityTag(stored)
    }

    // MARK: Confirmations

    /// Handles a 304 (RFC 9111, section 4.3.4).
    private func afterConfirmation(_ exchange: CacheExchange, _ index: Int) -> CacheUpdate {
        // Without a validator of the cache, the 304 answers the condition of the client.
        guard exchange.stored[index].entityTag != nil || exchange.stored[index].lastModified != nil else {
            return CacheUpdate(answer: .response)
        }
        let confirmed = confirmed(exchange, index)
        guard confirmed.contains(index) else { return CacheUpdate(answer: .repetition, removed: [index]) }
        var update = CacheUpdate(answer: .confirmed(index))
        for place in confirmed {
            let refreshed = refreshed(exchange.stored[place], exchange, isChosen: place == index)
            update.refreshed[place] = refreshed
            let (directives, _) = policy.directives(of: refreshed.headers)
            if forbidsStoring(refreshed.status, directives) || redirectsForbidStoring(exchange) {
                update.removed.insert(place)
            }
        }
        return update
    }

    /// Returns the responses that a 304 confirms.
    private func confirmed(_ exchange: CacheExchange, _ index: Int) -> [Int] {
        let stored = exchange.stored[index]
        if let text = exchange.headers["ETag"] {
            let tag = EntityTag(text)
            guard let own = stored.entityTag.map(EntityTag.init), own.opaque == tag.opaque else { return [] }
            // A strong tag identifies one body in all variants.
            guard !tag.isWeak, !own.isWeak, tag.isWellFormed else { return [index] }
            return exchange.stored.indices.filter { exchange.stored[$0].entityTag.map(EntityTag.init) == tag }
        }
        // The server was asked about one response only, so it confirms that one.
        guard stored.entityTag == nil, let date = exchange.headers["Last-Modified"] else { return [index] }
        return date == stored.lastModified ? [index] : []
    }

    private func refreshed(_ response: StoredResponse, _ exchange: CacheExchange, isChosen: Bool) -> StoredResponse {
        var result = response
        result.headers = merged(response.headers, with: exchange.headers)
        result.requestTime = exchange.requestTime
        result.responseTime = max(exchange.requestTime, exchange.responseTime)
        result.isInvalidated = false
        result.redirection = redirection(of: exchange)
        if isChosen, let fields = SelectingField.all(of: result.headers, in: exchange.request.headers) {
            result.selecting = fields
        }
        return result
    }

    /// Returns the stored fields after an update (RFC 9111, section 3.2). New fields replace those of the same name,
    /// except fields that describe the stored body.
    func merged(_ stored: HTTPHeaders, with new: HTTPHeaders) -> HTTPHeaders {
        let added = storableFields(new).filter { !HTTPCache.fieldsOfBody.contains($0.name.lowercased()) }
        var replaced = Set(added.map { $0.name.lowercased() })
        // The stored age is outdated; a response without `Age` has none.
        replaced.insert("age")
        return HTTPHeaders(stored.filter { !replaced.contains($0.name.lowercased()) } + added)
    }

    private static let fieldsOfBody: Set<String> = ["content-length", "content-encoding", "content-range"]

    // MARK: Other methods

    /// Handles the response to a HEAD (RFC 9111, section 4.3.5).
    private func afterHead(_ exchange: CacheExchange) -> CacheUpdate {
        var update = CacheUpdate(answer: .response)
        guard exchange.status == 200 else { return update }
        for index in matching(exchange.request, exchange.stored) {
            let stored = exchange.stored[index]
            update.refreshed[index] =
                describes(exchange.headers, stored)
                ? refreshed(stored, exchange, isChosen: true) : stored.invalidated()
        }
        return update
    }

    private func describes(_ headers: HTTPHeaders, _ stored: StoredResponse) -> Bool {
        guard stored.status == 200 else { return false }
        if let tag = headers["ETag"], tag != stored.entityTag { return false }
        if let date = headers["Last-Modified"], date != stored.headers["Last-Modified"] { return false }
        guard let length = headers["Content-Length"] else { return true }
        return length == stored.bodyLength.map(String.init) ?? stored.headers["Content-Length"] ?? length
    }

    /// Handles the response to an unsafe method (RFC 9111, section 4.4). A response to POST is stored if it declares
    /// itself the representation that GET would return (RFC 9110, section 9.3.3).
    private func afterUnsafe(_ exchange: CacheExchange) -> CacheUpdate {
        guard (200...399).contains(exchange.status) else { return CacheUpdate(answer: .response) }
        let url = exchange.request.url
        var update = CacheUpdate(answer: .response, removed: Set(exchange.stored.indices))
        var seen: Set<String> = [HTTPCache.identity(of: url)]
        let named = ["Location", "Content-Location"].flatMap { exchange.headers.all($0).prefix(4) }
        for other in named.compactMap({ HTTPCache.sameOrigin($0, as: url) })
        where seen.insert(HTTPCache.identity(of: other)).inserted {
            update.invalidated.append(other)
        }
        if exchange.request.method == "POST", exchange.status == 200,
            let location = exchange.headers["Content-Location"],
            let target = HTTPCache.sameOrigin(location, as: url),
            HTTPCache.identity(of: target) == HTTPCache.identity(of: url),
            let response = storable(exchange), policy.hasExplicitLifetime(response.headers)
        {
            update.answer = .storing(response)
        }
        return update
    }
}
