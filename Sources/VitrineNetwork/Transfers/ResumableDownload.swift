/// The request for the rest of an interrupted body, and the check of its response (RFC 9110, sections 13.1.5 and 14).
///
/// Parts are combined only under a strong validator and at the exact offset. If the source has changed, the download
/// starts over. Without a strong validator, the last received bytes can be requested again and compared.
package struct ResumableDownload: Sendable, Hashable {
    /// The number of received bytes.
    package let length: Int
    /// The length of the whole body; nil if it is unknown.
    package let total: Int?
    /// The strong entity tag or date of the received part; nil if the ``overlap`` is compared instead.
    package let validator: String?
    /// The number of received bytes to request again and compare; usually 0 with a validator.
    package let overlap: Int
    /// The fields that must be equal without a validator.
    private let tag: String?, date: String?

    /// The offset of the request.
    package var start: Int { length - overlap }

    /// Creates the continuation of a download, or returns nil if it must start over.
    ///
    /// A download cannot be resumed if nothing was received or the body has a content coding. The same applies without
    /// a strong validator, unless more than `overlap` bytes were received of a body of known length.
    ///
    /// - Parameters:
    ///   - length: The number of received bytes.
    ///   - head: The head of the response.
    ///   - overlap: The number of bytes to compare without a strong validator, or 0 to require a validator.
    package init?(length: Int, of head: StoredResponse, comparing overlap: Int = 0) {
        self.init(length: length, of: head, comparing: overlap, always: 0)
    }

    /// Creates the continuation after ``Continuation/unconfirmed``: compares up to `always` bytes also under a strong
    /// validator.
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
        // RFC 9110, section 8.8.2.2: a date is strong if the file did not change for some time. A minute is generous.
        guard let date = head.lastModified, let changed = HTTPDate.seconds(date, now: head.responseTime),
            head.headers.contains("Date"), head.date - changed >= 60
        else { return nil }
        return date
    }

    /// The meaning of a response to the request for the rest.
    package enum Continuation: Sendable, Hashable {
        /// Append the body. The whole has this length, if it is known.
        case append(total: Int?)
        /// The response does not identify its version (RFC 9110, section 15.3.7), so the server may ignore `If-Range`.
        /// Do not append the body. Request the whole, or compare some received bytes first.
        case unconfirmed
        /// The body is the whole, because the source has changed or does not support ranges. Start over with it.
        case restart
        /// All bytes have been received.
        case complete
        /// The response is of no use. If `discarding` is true, the received bytes are outdated; otherwise try again.
        case failed(discarding: Bool)
    }

    /// Returns the fields to send: `Range`, `If-Range`, and no content coding, because offsets count bytes.
    package func requestHeaders(_ headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        headers["Range"] = "bytes=\(start)-"
        if let validator { headers["If-Range"] = validator }
        headers["Accept-Encoding"] = "identity"
        return headers
    }

    /// Returns the meaning of the response to a request with these fields.
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
            // RFC 9110, section 15.5.17: the field names the length of the whole.
            let isNamed = overlap == 0 && headers["Content-Range"] == "bytes */\(length)"
            // Without a known length, the response has to declare the version.
            let isKnown = total == length || total == nil && isConfirmed(by: headers)
            let isWhole = isNamed && isKnown && hasSameTag(headers)
            return isWhole ? .complete : .failed(discarding: true)
        default: return .failed(discarding: [404, 410].contains(status))
        }
    }

    /// Returns whether a response does not declare another version.
    private func hasSameTag(_ headers: HTTPHeaders) -> Bool { headers["ETag"].map { $0 == tag } ?? true }

    /// Returns whether a response to the request for the rest is the whole under the validator of the received part,
    /// but of another length. One of them is a lie.
    func isContradicted(by head: HTTPResponseHead) -> Bool {
        guard let total, let length = head.contentLength, length != total, let tag, head.headers["ETag"] == tag,
            validator == tag
        else { return false }
        return true
    }

    private func hasSameValidator(_ headers: HTTPHeaders) -> Bool {
        guard let validator else {
            // The overlap detects changes that these fields do not show.
            return headers["ETag"] == tag && headers["Last-Modified"] == date
                && headers.contentRange?.total == total
        }
        if let tag = headers["ETag"], self.tag != nil { return tag == validator }
        if let date = headers["Last-Modified"], let known = self.date, self.tag == nil { return date == known }
        return true
    }

    /// Returns whether a partial response declares the validator of the received part.
    func isConfirmed(by headers: HTTPHeaders) -> Bool {
        guard let validator else { return false }
        return headers[tag == nil ? "Last-Modified" : "ETag"] == validator
    }
}
