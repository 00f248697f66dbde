import VitrineNetwork

/// A response with all of its body.
struct Response: Sendable {
    var status: Int
    var reason: String
    var headers: HTTPHeaders
    var body: [UInt8]
}

/// The server behind the proxy: one connection for each request.
struct Origin: Sendable {
    let host: String
    let port: UInt16

    /// Sends a request and reads the whole response.
    ///
    /// - Parameter interim: Gets the heads of interim responses.
    /// - Throws: When there is no response, or not all of it.
    func send(
        _ method: String, _ target: String, _ headers: HTTPHeaders, _ body: [UInt8],
        interim: (Message) throws -> Void = { _ in }
    ) throws -> Response {
        let connection = try Connection(host: host, port: port)
        var message = Message(start: "\(method) \(target) HTTP/1.1", headers: HTTPHeaders())
        message.headers.append("Host", port == 80 ? host : "\(host):\(port)")
        for field in headers where field.name.lowercased() != "host" { message.headers.append(field.name, field.value) }
        if !body.isEmpty || !["GET", "HEAD", "DELETE"].contains(method) {
            message.headers["Content-Length"] = String(body.count)
        }
        message.headers.append("Via", "1.1 vitrine-cache-proxy")
        message.headers.append("Connection", "close")
        try connection.send(message.head + body)
        while var head = try Message.head(from: connection) {
            let parts = head.start.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]),
                (100...999).contains(status)
            else { throw MessageError.malformed }
            if status < 200 {
                guard status != 101 else { throw MessageError.malformed }
                try interim(head)
                continue
            }
            if method != "HEAD", status != 204, status != 304 {
                try head.readBody(from: connection, endsWithConnection: true)
            }
            return Response(
                status: status, reason: parts.count > 2 ? String(parts[2]) : "", headers: head.headers, body: head.body)
        }
        throw MessageError.incomplete
    }
}
