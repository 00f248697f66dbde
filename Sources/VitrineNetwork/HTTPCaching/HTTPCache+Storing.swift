extension HTTPCache {
    /// The response as it is to be stored; nil if it may not be, or never could be used (RFC 9111 section 3).
    func storable(_ exchange: CacheExchange) -> StoredResponse? {
        // Parts are not the whole, and a 304 is nothing by itself.
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

    /// Whether directives forbid to keep a response of a status.
    func forbidsStoring(_ status: Int, _ directives: CacheDirectives) -> Bool {
        if directives.mustUnderstand {
            guard HTTPCachePolicy.understands(status) else { return true }
        } else if directives.noStore {
            return true
        }
        return policy.isShared && directives.isPrivate.isEverything
    }

    /// RFC 9111 section 3.5: what one person's credentials brought is not for others unless it says so.
    private func allowsCredentials(_ request: CacheRequest, _ directives: CacheDirectives) -> Bool {
        guard policy.isShared, request.headers.contains("Authorization") else { return true }
        return directives.isPublic || directives.mustRevalidate || directives.sharedMaxAge != nil
    }

    /// Whether something speaks for storing: that the response says how long it is fresh, or that it usually can be.
    /// Failures without a lifetime are left out: nobody wants to see them again.
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

    /// The fields that may be stored (RFC 9111 section 3.1): not those of a single connection, not those that the
    /// response keeps back by name, and no validator that cannot be sent back.
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

    /// The fields that concern a single connection (RFC 9110 section 7.6.1 and section 11.7), in small letters.
    public static let connectionFields: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authentication-info",
        "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// A server that lists these in `Connection` is not listened to: without them a response would be stored without
    /// its limits.
    private static let kept: Set<String> = [
        "age", "cache-control", "cdn-cache-control", "content-encoding", "content-length", "content-range",
        "content-type", "date", "etag", "expires", "last-modified", "vary",
    ]
}

extension HTTPCachePolicy {
    /// Whether a response says itself how long it is fresh.
    func hasExplicitLifetime(_ headers: HTTPHeaders) -> Bool {
        let (directives, isTargeted) = directives(of: headers)
        return directives.maxAge != nil || (isShared && directives.sharedMaxAge != nil)
            || (!isTargeted && headers.contains("Expires"))
    }
}
