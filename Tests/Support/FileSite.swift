#if os(Linux)
/// What a server that keeps to the rules answers to requests for one file.
package struct FileSite: Sendable {
    /// The file.
    package var content: [UInt8]
    /// Its entity tag; nil for none.
    package var tag: String? = "\"v1\""
    /// More lines of the header. A `Last-Modified` among them is a validator, too.
    package var fields: [String] = []

    package init(_ content: [UInt8]) { self.content = content }

    /// A reply with the whole, or with the part that is asked for.
    ///
    /// - Parameter count: After how many bytes of body to go on with `end`; nil for all of them.
    package func reply(
        to request: LoopbackServer.Request, upTo count: Int? = nil, then end: [LoopbackServer.Step] = [.close]
    ) -> [LoopbackServer.Step] {
        var lines = fields + (tag.map { ["ETag: \($0)"] } ?? [])
        var body = content[...]
        var status = 200
        let dates = fields.filter { $0.hasPrefix("Last-Modified: ") }.map { String($0.dropFirst(15)) }
        let validators = [tag].compactMap(\.self) + dates
        let isWanted = request.header("If-Range").map { validators.contains($0) } ?? true
        if isWanted, let (start, last) = Self.range(request) {
            guard start < content.count else {
                return [.reply(416, ["Content-Range: bytes */\(content.count)"])]
            }
            status = 206
            body = content[start...min(last ?? .max, content.count - 1)]
            lines.append("Content-Range: bytes \(start)-\(body.endIndex - 1)/\(content.count)")
        }
        lines = ["HTTP/1.1 \(status) Status", "Content-Length: \(body.count)"] + lines
        let head = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        guard let count, count < body.count else { return [.bytes(head + body)] }
        return [.bytes(head + body.prefix(count))] + end
    }

    /// The first byte that is asked for, and the last one; nil if everything is.
    package static func range(_ request: LoopbackServer.Request) -> (Int, Int?)? {
        guard let range = request.header("Range"), range.hasPrefix("bytes=") else { return nil }
        let bounds = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let start = Int(bounds[0]) else { return nil }
        return (start, Int(bounds[1]))
    }
}
#endif
