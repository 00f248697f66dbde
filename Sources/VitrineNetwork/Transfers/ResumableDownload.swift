/// A body of which the beginning is there: how to ask for the rest, and whether what comes fits (RFC 9110 sections
/// 13.1.5 and 14).
///
/// Bodies are put together only under a strong validator and at exactly the right place. A source that has changed
/// starts over: nothing is ever spliced in silence. Where a source has no strong validator, and if so wanted, the end
/// of what is there is asked for again, to be compared with what comes.
package struct ResumableDownload: Sendable, Hashable {
    /// How many bytes are there.
    package let length: Int
    /// The length of the whole, if it is known.
    package let total: Int?
    /// What the rest is wanted under: a strong entity tag, or a date that is surely strong enough; nil if the
    /// ``overlap`` has to tell.
    package let validator: String?
    /// How many bytes of what is there come again, to be compared before anything is appended; usually 0 with a validator.
    package let overlap: Int
    /// The fields that must be the same again without a validator.
    private let tag: String?, date: String?

    /// The first byte to ask for.
    package var start: Int { length - overlap }

    /// - Parameters:
    ///   - length: How many bytes of the body are there.
    ///   - head: What was stored of the response they came with.
    ///   - overlap: How many bytes to compare where there is no strong validator; 0 to ask for the rest only under one.
    /// - Returns: nil if the rest must not be asked for: there is no strong validator, and no more than `overlap` or a
    ///   body of unknown length; the body was sent in a coding; or nothing is there to add to.
    package init?(length: Int, of head: StoredResponse, comparing overlap: Int = 0) {
        self.init(length: length, of: head, comparing: overlap, always: 0)
    }

    /// The same for after ``Continuation/unconfirmed``: compares `always` of the last bytes, or as many as there are,
    /// also under a strong validator.
    init?(length: Int, of head: StoredResponse, comparing overlap: Int, always: Int) {
        guard length > 0, head.status == 200 || head.status == 206, head.headers["Content-Encoding"] == nil,
            !HTTPList.names(head.headers.all("Accept-Ranges")).contains("none")
        else { return nil }
        let declared = head.headers["Content-Range"].flatMap(ContentRange.init)?.total
        total = declared ?? head.headers["Content-Length"].flatMap { HTTPList.number(Array($0.utf8)[...]) }
        if let total, length > total { return nil }
        validator = Self.strongValidator(of: head)
        self.length = length
        tag = head.headers["ETag"]
        date = head.headers["Last-Modified"]
        self.overlap = validator == nil ? overlap : min(max(0, always), length)
        guard validator != nil || overlap > 0 && length > overlap && total != nil else { return nil }
    }

    private static func strongValidator(of head: StoredResponse) -> String? {
        if let tag = head.entityTag {
            let parsed = EntityTag(tag)
            return !parsed.isWeak && parsed.isWellFormed ? tag : nil
        }
        // RFC 9110 section 8.8.2.2: a date is strong when the file was at rest for a while; a minute is generous.
        guard let date = head.lastModified, let changed = HTTPDate.seconds(date, now: head.responseTime),
            head.headers.contains("Date"), head.date - changed >= 60
        else { return nil }
        return date
    }

    /// What a response to the request for the rest means.
    package enum Continuation: Sendable, Hashable {
        /// Its body goes behind what is there; the whole will have this length, if it is known.
        case append(total: Int?)
        /// It does not say of which version it is a part, as it should (RFC 9110, section 15.3.7): the server may not know
        /// `If-Range`, and its body must not be appended. Ask for the whole, or compare some of what is there first.
        case unconfirmed
        /// Its body is the whole, of a source that has changed or gives no parts: start over with it.
        case restart
        /// What is there is the whole already.
        case complete
        /// It is of no use. What is there does not fit any more when `discarding`; otherwise it may be tried again.
        case failed(discarding: Bool)
    }

    /// The fields to send: `Range`, `If-Range`, and no coding, as offsets count bytes.
    package func requestHeaders(_ headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        headers["Range"] = "bytes=\(start)-"
        if let validator { headers["If-Range"] = validator }
        headers["Accept-Encoding"] = "identity"
        return headers
    }

    /// What to do with the response to a request with those fields.
    package func continuation(status: Int, headers: HTTPHeaders) -> Continuation {
        switch status {
        case 200: return .restart
        case 206:
            guard let range = headers.contentRange, range.range.lowerBound == start,
                headers["Content-Encoding"] == nil,
                range.total == nil || total == nil || range.total == total, hasSameValidator(headers)
            else { return .failed(discarding: true) }
            if validator != nil, overlap == 0, !isConfirmed(by: headers) { return .unconfirmed }
            return .append(total: range.total ?? total)
        case 416:
            // RFC 9110 section 15.5.17: it names the length of the whole.
            let isWhole = overlap == 0 && total == length && headers["Content-Range"] == "bytes */\(length)"
            return isWhole ? .complete : .failed(discarding: true)
        default: return .failed(discarding: [404, 410].contains(status))
        }
    }

    private func hasSameValidator(_ headers: HTTPHeaders) -> Bool {
        guard let validator else {
            // The overlap is to find what these do not tell; what they tell counts.
            return headers["ETag"] == tag && headers["Last-Modified"] == date
                && headers.contentRange?.total == total
        }
        if let tag = headers["ETag"], self.tag != nil { return tag == validator }
        if let date = headers["Last-Modified"], let known = self.date, self.tag == nil { return date == known }
        return true
    }

    /// Whether a part says that it is of the body whose beginning is there.
    func isConfirmed(by headers: HTTPHeaders) -> Bool {
        guard let validator else { return false }
        return headers[tag == nil ? "Last-Modified" : "ETag"] == validator
    }
}
