/// A body that lies in a ``PartialFile`` as a whole.
package struct CompletedTransfer: Sendable {
    /// The head of the whole: status 200, also where it came in parts.
    package let head: HTTPResponseHead
    /// When the last request was sent that brought a part of it, since 1970.
    package let requestTime: Duration
    /// When its response arrived, since 1970.
    package let responseTime: Duration
    /// How many bytes were there before.
    package let resumedLength: Int
    /// How many times what was there had to be given up.
    package let restarts: Int

    /// - Parameters:
    ///   - last: The last response that brought a part of it, or said that nothing is missing.
    ///   - headers: The fields of the whole.
    ///   - length: How many bytes are there.
    init(_ last: DatedResponse, headers: HTTPHeaders, length: Int, resumedLength: Int, restarts: Int) {
        var head = last.response.head
        head.status = [206, 416].contains(head.status) ? 200 : head.status
        head.headers = headers
        head.headers.remove("Content-Range")
        if head.decodedFrom == nil { head.headers["Content-Length"] = String(length) }
        self.head = head
        (requestTime, responseTime) = (last.requestTime, last.responseTime)
        (self.resumedLength, self.restarts) = (resumedLength, restarts)
    }
}

/// A response with the times its freshness is counted from.
package struct DatedResponse: Sendable {
    package let response: HTTPResponse
    /// Since 1970.
    package let requestTime: Duration
    /// Since 1970.
    package let responseTime: Duration

    package init(_ response: HTTPResponse, requestTime: Duration, responseTime: Duration) {
        self.response = response
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    /// What is kept of it beside its body.
    var stored: StoredResponse {
        StoredResponse(
            status: response.head.status, headers: HTTPCache().storableFields(response.head.headers),
            requestTime: requestTime, responseTime: responseTime, selecting: [])
    }
}
