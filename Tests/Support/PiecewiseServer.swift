#if os(Linux)
import Foundation

/// A server that sends one body in pieces: the first at once, each further one when the test says so.
package final class PiecewiseServer: Sendable {
    package let server: LoopbackServer
    private let barriers: [LoopbackServer.Barrier]

    /// - Parameters:
    ///   - pieces: The body.
    ///   - fields: Of the header, beside the length.
    package init(_ pieces: [[UInt8]], _ fields: [String] = ["Content-Type: image/jpeg", "Cache-Control: max-age=60"]) throws {
        let barriers = pieces.dropFirst().map { _ in LoopbackServer.Barrier() }
        self.barriers = barriers
        server = try LoopbackServer { _ in
            let lines = ["HTTP/1.1 200 OK", "Content-Length: \(pieces.map(\.count).reduce(0, +))"] + fields
            var steps: [LoopbackServer.Step] = [.text(lines.joined(separator: "\r\n") + "\r\n\r\n")]
            for (index, piece) in pieces.enumerated() {
                if index > 0 { steps.append(.wait(barriers[index - 1])) }
                steps.append(.bytes(piece))
            }
            return steps
        }
    }

    /// A body in pieces that end at fractions of it.
    package convenience init(_ bytes: [UInt8], endingAt fractions: [Double]) throws {
        var pieces: [[UInt8]] = []
        var start = 0
        for fraction in fractions + [1] {
            let end = Int(Double(bytes.count) * fraction)
            pieces.append(Array(bytes[start..<end]))
            start = end
        }
        try self.init(pieces)
    }

    deinit { sendAll() }

    package func url(_ target: String = "/a.jpg") -> URL { server.url(target) }

    /// Lets a piece go, from 1.
    package func send(_ piece: Int) { barriers[piece - 1].open() }

    /// Lets all pieces go.
    package func sendAll() { for barrier in barriers { barrier.open() } }
}
#endif
