extension HTTPCache {
    /// Decides what to do with a response, before its body is read.
    ///
    /// The fields that matter are ``CacheExchange/request``'s as the requester made them; a response with an interim
    /// status (100…199) is passed on.
    public func update(after exchange: CacheExchange) -> CacheUpdate {
        if exchange.status < 200 { return CacheUpdate(answer: .response) }
        if exchange.request.isUnsafe { return afterUnsafe(exchange) }
        if exchange.request.method == "HEAD" { return afterHead(exchange) }
        guard exchange.request.method == "GET" else { return CacheUpdate(answer: .response) }
        if exchange.status == 304, let index = exchange.revalidated { return afterConfirmation(exchange, index) }
        if [500, 502, 503, 504].contains(exchange.status), let index = exchange.revalidated,
            replacesFailure(exchange.stored[index], exchange.request, exchange.responseTime)
        {
            return CacheUpdate(answer: .stale(index))
        }
        return afterResponse(exchange)
    }

    private func afterResponse(_ exchange: CacheExchange) -> CacheUpdate {
        let fitting = Set(matching(exchange.request, exchange.stored))
        var update = CacheUpdate(answer: .response)
        // A failure, however long it says it lasts, does not take the place of what was good (R81).
        let isFailure = exchange.status >= 500 || [408, 425, 429].contains(exchange.status)
        if isFailure, fitting.contains(where: { exchange.stored[$0].status < 400 }) { return update }
        if let response = storable(exchange) {
            return CacheUpdate(answer: .storing(response), removed: crowdedOut(exchange, by: fitting))
        }
        // What has a successor that may not be stored is out of date; failures and refusals say nothing of it.
        let isSuccessor = (200...399).contains(exchange.status) && ![206, 304].contains(exchange.status)
        if isSuccessor || [404, 410].contains(exchange.status) { update.removed = fitting }
        if exchange.status == 206, let index = exchange.revalidated, isOther(exchange, exchange.stored[index]) {
            update.removed = [index]
        }
        return update
    }

    /// What goes when a response is stored: what it replaces, and the oldest that are too many.
    private func crowdedOut(_ exchange: CacheExchange, by replaced: Set<Int>) -> Set<Int> {
        let others = exchange.stored.indices.filter { !replaced.contains($0) }
            .sorted { isOlder(exchange.stored[$0], exchange.stored[$1]) }
        return replaced.union(others.prefix(max(0, others.count - max(1, policy.variantLimit) + 1)))
    }

    /// Whether a partial response is part of something else than what is stored.
    private func isOther(_ exchange: CacheExchange, _ response: StoredResponse) -> Bool {
        guard let tag = exchange.headers["ETag"], let stored = response.entityTag else { return true }
        return EntityTag(tag) != EntityTag(stored)
    }

    // MARK: Confirmations

    /// After a 304: RFC 9111 section 4.3.4.
    private func afterConfirmation(_ exchange: CacheExchange, _ index: Int) -> CacheUpdate {
        // Asked without a validator of our own, it answers the requester's condition.
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
            if forbidsStoring(refreshed.status, directives) { update.removed.insert(place) }
        }
        return update
    }

    /// The places of those that a 304 speaks of.
    private func confirmed(_ exchange: CacheExchange, _ index: Int) -> [Int] {
        let stored = exchange.stored[index]
        if let text = exchange.headers["ETag"] {
            let tag = EntityTag(text)
            guard let own = stored.entityTag.map(EntityTag.init), own.opaque == tag.opaque else { return [] }
            // A strong tag names one body, whoever else asked for it.
            guard !tag.isWeak, !own.isWeak, tag.isWellFormed else { return [index] }
            return exchange.stored.indices.filter { exchange.stored[$0].entityTag.map(EntityTag.init) == tag }
        }
        // The server was asked about one response only, so without a tag that is what it means.
        guard stored.entityTag == nil, let date = exchange.headers["Last-Modified"] else { return [index] }
        return date == stored.lastModified ? [index] : []
    }

    private func refreshed(_ response: StoredResponse, _ exchange: CacheExchange, isChosen: Bool) -> StoredResponse {
        var result = response
        result.headers = merged(response.headers, with: exchange.headers)
        result.requestTime = exchange.requestTime
        result.responseTime = max(exchange.requestTime, exchange.responseTime)
        result.isInvalidated = false
        if isChosen, let fields = SelectingField.all(of: result.headers, in: exchange.request.headers) {
            result.selecting = fields
        }
        return result
    }

    /// Stored fields after an update (RFC 9111 section 3.2): new ones replace those of the same name, but for those
    /// that describe the stored body as it is.
    func merged(_ stored: HTTPHeaders, with new: HTTPHeaders) -> HTTPHeaders {
        let added = storableFields(new).filter { !HTTPCache.fieldsOfBody.contains($0.name.lowercased()) }
        var replaced = Set(added.map { $0.name.lowercased() })
        // What the stored age was counts no more; a response that says no age has none.
        replaced.insert("age")
        return HTTPHeaders(stored.filter { !replaced.contains($0.name.lowercased()) } + added)
    }

    private static let fieldsOfBody: Set<String> = ["content-length", "content-encoding", "content-range"]

    // MARK: Other methods

    /// After a HEAD: RFC 9111 section 4.3.5.
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

    /// After a method that may have changed something: RFC 9111 section 4.4. A POST whose response says that it is
    /// what a GET would bring is stored as that (RFC 9110 section 9.3.3).
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
