package import HTTPTypes
package import NIOCore
import NIOHTTP1

/// A request of HTTP/1.1 that may be answered on its event loop, before a task is made for it. It is a GET or HEAD
/// without a body on a connection that stays.
package struct ImmediateRequest {
    package let isHead: Bool
    /// The path and the query, as the client sent them.
    package let target: String
    package let fields: RequestFields
    package let channel: any Channel
}

/// An answer that needs no work.
package struct ImmediateAnswer {
    /// Lines of a header, each with its end, without the empty line behind them.
    package struct Lines: Sendable {
        fileprivate let bytes: ByteBuffer

        package init(_ status: HTTPResponse.Status, _ fields: HTTPFields) {
            var bytes = ByteBuffer()
            Self.write(status, to: &bytes)
            for field in fields { Self.write(field.name.rawName, field.value, to: &bytes) }
            self.bytes = bytes
        }

        static func write(_ status: HTTPResponse.Status, to buffer: inout ByteBuffer) {
            switch status.code {
            case 200: buffer.writeStaticString("HTTP/1.1 200 OK\r\n")
            case 304: buffer.writeStaticString("HTTP/1.1 304 Not Modified\r\n")
            default:
                // A status that was made of its code has no phrase of its own.
                let own = status.reasonPhrase
                let phrase = own.isEmpty ? HTTPResponseStatus(statusCode: status.code).reasonPhrase : own
                buffer.writeString("HTTP/1.1 \(status.code) \(phrase)\r\n")
            }
        }

        static func write(_ name: String, _ value: String, to buffer: inout ByteBuffer) {
            buffer.writeString(name)
            buffer.writeStaticString(": ")
            buffer.writeString(value)
            buffer.writeStaticString("\r\n")
        }
    }

    /// Shorter bodies are copied behind their header, which costs less than a second part of a write.
    private static let longestCopy = 8192

    package let status: Int
    /// How the image was found; nil for answers that are no image.
    package let origin: ImageAnswer.Origin?
    /// Bytes of the body that are sent.
    package let bodyCount: Int
    /// The header, then the body if that is short.
    private(set) var bytes: ByteBuffer
    /// The body if it is long.
    private(set) var body: ByteBuffer?

    /// - Parameter body: Nil for answers without a body, those of HEAD among them.
    package init(
        _ lines: Lines, status: Int, origin: ImageAnswer.Origin? = nil, body: ByteBuffer? = nil,
        allocator: ByteBufferAllocator
    ) {
        self.status = status
        self.origin = origin
        bodyCount = body?.readableBytes ?? 0
        // Room for the fields that are added, and the empty line.
        bytes = allocator.buffer(
            capacity: lines.bytes.readableBytes + 256 + (bodyCount <= Self.longestCopy ? bodyCount : 0))
        bytes.writeImmutableBuffer(lines.bytes)
        self.body = body
    }

    package mutating func add(_ name: StaticString, _ value: String) {
        bytes.writeStaticString(name)
        bytes.writeStaticString(": ")
        bytes.writeString(value)
        bytes.writeStaticString("\r\n")
    }

    /// Ends the header.
    mutating func finish() {
        bytes.writeStaticString("\r\n")
        guard let body, bodyCount <= Self.longestCopy else { return }
        bytes.writeImmutableBuffer(body)
        self.body = nil
    }
}

/// Answers requests on event loops, without waiting; nil for a request that needs a task.
package typealias ImmediateResponder = @Sendable (ImmediateRequest) -> ImmediateAnswer?
