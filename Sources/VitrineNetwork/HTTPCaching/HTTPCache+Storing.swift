@_spi(HTTPCacheEngine) extension HTTPCache {
    /// Returns the response to store; nil if it must not be stored or could never be used (RFC 9111, section 3).
    func storable(_ exchange: CacheExchange) -> StoredResponse? {
        // 206 and 416 are incomplete, and a 304 has no content.
        guard (200...599).contains(exchange.status), ![206, 304, 416].contains(exchange.status),
            !exchange.request.directives.noStore
        else { return nil }
        let (directives, _) = policy.directives(of: exchange.headers)
        guard !forbidsStoring(exchange.status, directives), allowsCredentials(exchange.request, directives),
            let selecting = SelectingField.all(of: exchange.headers, in: exchange.request.headers)
        else { return nil }
        let response = StoredResponse(
            status: exchange.status, headers: storableFields(exchange.headers), requestTime: exchange.requestTime,
            responseTime: exchange.responseTime, selecting: selecting)
        return isUseful(response, directives) ? response : nil
    }

    /// Returns whether directives forbid storing a response with a status.
    func forbidsStoring(_ status: Int, _ directives: CacheDirectives) -> Bool {
        if directives.mustUnderstand {
            guard HTTPCachePolicy.understands(status) else { return true }
        } else if directives.noStore {
            return true
        }
        return policy.isShared && directives.isPrivate.isEverything
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
            headers.filter { field in
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
    func hasExplicitLifetime(_ headers: HTTPHeaders) -> Bool {
        let (directives, isTargeted) = directives(of: headers)
        return directives.maxAge != nil || (isShared && directives.sharedMaxAge != nil)
            || (!isTargeted && headers.contains("Expires"))
    }
}
