import Foundation
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// Serves connections: asks the engine, the store and the origin, in the order the engine's documentation names.
struct Proxy: Sendable {
    let origin: Origin
    let cache: HTTPCache
    let store: ResponseStore
    let clock = WallClock.system

    /// Answers the requests of a connection until it ends.
    func serve(_ connection: Connection) {
        do {
            while var message = try Message.head(from: connection) {
                if message.headers["Expect"]?.lowercased() == "100-continue" {
                    try connection.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
                }
                try message.readBody(from: connection, endsWithConnection: false)
                guard try serve(message, connection) else { return }
            }
        } catch let error as MessageError {
            let status = error == .tooLarge ? "431 Request Header Fields Too Large" : "400 Bad Request"
            try? connection.send(Array("HTTP/1.1 \(status)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
        } catch {}
    }

    /// Answers a request.
    ///
    /// - Returns: Whether the connection goes on.
    private func serve(_ message: Message, _ connection: Connection) throws -> Bool {
        let parts = message.start.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1."), parts[1].hasPrefix("/"),
            let url = URL(string: "http://\(origin.host):\(origin.port)\(parts[1])")
        else { throw MessageError.malformed }
        let options = message.headers.all("Connection").joined(separator: ",").lowercased()
        let staysOpen = parts[2] == "HTTP/1.1" && !options.contains("close")
        var left = HTTPCache.connectionFields
        left.formUnion(options.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
        left.formUnion(["content-length", "expect"])
        let headers = HTTPHeaders(message.headers.filter { !left.contains($0.name.lowercased()) })
        let request = CacheRequest(method: String(parts[0]), url: url, headers: headers)
        let exchange = Transaction(proxy: self, request: request, target: String(parts[1]), body: message.body)
        let response = exchange.answer { interim in
            if parts[2] == "HTTP/1.1" { try connection.send(interim.head) }
        }
        try send(response, to: connection, isHead: request.method == "HEAD", staysOpen: staysOpen)
        return staysOpen
    }

    private func send(_ response: Response, to connection: Connection, isHead: Bool, staysOpen: Bool) throws {
        var left = HTTPCache.connectionFields
        left.formUnion(
            response.headers.all("Connection").flatMap { $0.split(separator: ",") }
                .map { $0.trimmingCharacters(in: .whitespaces).lowercased() })
        var headers = HTTPHeaders(response.headers.filter { !left.contains($0.name.lowercased()) })
        let hasBody = !isHead && response.status != 204 && response.status != 304
        if hasBody { headers["Content-Length"] = String(response.body.count) }
        if response.status == 204 { headers["Content-Length"] = nil }
        headers.append("Connection", staysOpen ? "keep-alive" : "close")
        let head = Message(start: "HTTP/1.1 \(response.status) \(response.reason)", headers: headers).head
        try connection.send(hasBody ? head + response.body : head)
    }
}
