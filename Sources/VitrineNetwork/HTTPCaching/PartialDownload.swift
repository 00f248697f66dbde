/// A body of which the beginning is there: how to ask for the rest, and whether what comes fits (RFC 9110 sections
/// 13.1.5 and 14).
///
/// Bodies are put together only under a strong validator and at exactly the right place. A source that has changed
/// starts over: nothing is ever spliced in silence.
public struct PartialDownload: Sendable, Hashable {
    /// How many bytes are there.
    public let length: Int
    /// The length of the whole, if it is known.
    public let total: Int?
    /// What the rest is wanted under: a strong entity tag, or a date that is surely strong enough.
    public let validator: String

    /// - Parameters:
    ///   - length: How many bytes of the body are there.
    ///   - head: What was stored of the response they came with.
    /// - Returns: nil if the rest must not be asked for: there is no strong validator, the body was sent in a coding,
    ///   or nothing is there to add to.
    public init?(length: Int, of head: StoredResponse) {
        guard length > 0, head.status == 200 || head.status == 206, head.headers.first("Content-Encoding") == nil,
            !HTTPList.names(head.headers.all("Accept-Ranges")).contains("none")
        else { return nil }
        if let tag = head.entityTag {
            let parsed = EntityTag(tag)
            guard !parsed.isWeak, parsed.isWellFormed else { return nil }
            validator = tag
        } else {
            // RFC 9110 section 8.8.2.2: a date is strong when the file was at rest for a while; a minute is generous.
            guard let date = head.lastModified, let changed = HTTPDate.seconds(date, now: head.responseTime),
                head.headers.contains("Date"), head.date - changed >= 60
            else { return nil }
            validator = date
        }
        let declared = head.headers.first("Content-Range").flatMap(ContentRange.init)?.total
        total = declared ?? head.headers.first("Content-Length").flatMap { HTTPList.number(Array($0.utf8)[...]) }
        self.length = length
        if let total, length > total { return nil }
    }

    /// What a response to the request for the rest means.
    public enum Continuation: Sendable, Hashable {
        /// Its body goes behind what is there; the whole will have this length, if it is known.
        case append(total: Int?)
        /// Its body is the whole, of a source that has changed or gives no parts: start over with it.
        case restart
        /// What is there is the whole already.
        case complete
        /// It is of no use. What is there does not fit any more when `discarding`; otherwise it may be tried again.
        case failed(discarding: Bool)
    }

    /// The fields to send: `Range`, `If-Range`, and no coding, as offsets count bytes.
    public func requestHeaders(_ headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        headers.set("Range", "bytes=\(length)-")
        headers.set("If-Range", validator)
        headers.set("Accept-Encoding", "identity")
        return headers
    }

    /// What to do with the response to a request with those fields.
    public func continuation(status: Int, headers: HTTPHeaders) -> Continuation {
        switch status {
        case 200: return .restart
        case 206:
            guard let range = headers.first("Content-Range").flatMap(ContentRange.init),
                headers.all("Content-Range").count == 1,
                range.range.lowerBound == length, headers.first("Content-Encoding") == nil,
                range.total == nil || total == nil || range.total == total, hasSameValidator(headers)
            else { return .failed(discarding: true) }
            return .append(total: range.total ?? total)
        case 416:
            // RFC 9110 section 15.5.17: it names the length of the whole.
            let isWhole = total == length && headers.first("Content-Range") == "bytes */\(length)"
            return isWhole ? .complete : .failed(discarding: true)
        default: return .failed(discarding: [404, 410].contains(status))
        }
    }

    private func hasSameValidator(_ headers: HTTPHeaders) -> Bool {
        if let tag = headers.first("ETag") { return tag == validator || !validator.hasPrefix("\"") }
        return true
    }
}
