/// A body that lies in a ``PartialFile`` as a whole.
package struct CompletedTransfer: Sendable {
    /// The head of the whole: status 200, also where it came in parts.
    package let head: ResponseHead
    /// When the last request was sent that brought a part of it, since 1970.
    package let requestTime: Duration
    /// When its response arrived, since 1970.
    package let responseTime: Duration
    /// How many bytes were there before.
    package let resumedLength: Int
    /// How many times what was there had to be given up.
    package let restarts: Int
}

/// A response with the times its freshness is counted from.
package struct DatedResponse: Sendable {
    package let response: DataResponse
    /// Since 1970.
    package let requestTime: Duration
    /// Since 1970.
    package let responseTime: Duration

    package init(_ response: DataResponse, requestTime: Duration, responseTime: Duration) {
        self.response = response
        self.requestTime = requestTime
        self.responseTime = responseTime
    }
}
