#if os(Linux)
import CVitrineCurl
import VitrineCore

extension HTTPResponse {
    /// Returns the response without the content codings of its body, whose end is then checked.
    ///
    /// - Parameters:
    ///   - request: The request, whose limit applies to the decoded body.
    ///   - url: The URL in errors.
    /// - Returns: nil if there is no coding.
    /// - Throws: ``NetworkError/invalidResponse(url:reason:)`` for a coding that is not supported.
    func decoded(as request: HTTPRequest, at url: String) throws(NetworkError) -> HTTPResponse? {
        let codings = HTTPList.names(head.headers.all("Content-Encoding")).filter { $0 != "identity" }
        guard !codings.isEmpty else { return nil }
        var response = self
        response.head.decodedFrom = response.head.headers.takeCoding()
        // Such a response describes a body that it does not have.
        guard request.method != "HEAD", head.status != 304, !head.isWithoutContent else { return response }
        guard codings.count <= DecodedBody.mostCodings else {
            let reason = "its body has more than \(DecodedBody.mostCodings) content codings"
            throw .invalidResponse(url: url, reason: reason)
        }
        var source = body.source
        // The last coding was applied last.
        for coding in codings.reversed() {
            guard let decoder = ContentDecoder(coding) else {
                throw .invalidResponse(url: url, reason: "the content coding \(coding) is not supported")
            }
            source = DecodedBody(source, decoder, limit: request.maximumBodySize, url: url)
        }
        response.body = ResponseBody(source)
        return response
    }
}

/// A body whose content coding is undone as it is read. A body without the end of its coding is an error.
final class DecodedBody: BodySource {
    /// More codings than this are an attack.
    static let mostCodings = 4
    /// The most bytes that are decoded at a time.
    private static let chunkSize = 64 << 10

    private struct State {
        /// Bytes that have been received but not decoded.
        var rest: ArraySlice<UInt8> = []
        var received = 0
        var decoded = 0
        var isAtEnd = false
    }

    private enum Step {
        case chunk([UInt8])
        case more
        case damaged
    }

    let url: String
    private let body: any BodySource
    private let limit: ByteCount
    private let state: Locked<(State, ContentDecoder)>

    init(_ body: any BodySource, _ decoder: ContentDecoder, limit: ByteCount, url: String) {
        self.body = body
        self.limit = limit
        self.url = url
        state = Locked((State(), decoder))
    }

    func next() async throws(NetworkError) -> [UInt8]? {
        while true {
            switch state.withLock({ Self.step(&$0.0, $0.1) }) {
            case .chunk(let bytes):
                guard state.withLock({ $0.0.decoded }) <= limit.bytes else {
                    cancel()
                    throw .bodyTooLarge(url: url, limit: limit)
                }
                return bytes
            case .damaged:
                cancel()
                throw .invalidResponse(url: url, reason: "the body cannot be decoded")
            case .more: break
            }
            if let chunk = try await body.next() {
                state.withLock { state in
                    state.0.rest = chunk[...]
                    state.0.received += chunk.count
                }
                continue
            }
            let (received, decoded, isAtEnd) = state.withLock { ($0.0.received, $0.0.decoded, $0.0.isAtEnd) }
            // Servers declare a coding of empty bodies as well.
            guard isAtEnd || received == 0 else {
                throw .truncated(
                    url: url, received: ByteCount(decoded), reason: "the compressed body ends before its end")
            }
            return nil
        }
    }

    /// Decodes one chunk of the bytes that have been received.
    private static func step(_ state: inout State, _ decoder: ContentDecoder) -> Step {
        // Decoders can hold decoded bytes without further input, but not before the first.
        guard state.received > 0 else { return .more }
        while true {
            let before = state.rest.count
            var result = CCURL_MORE
            let chunk = [UInt8](unsafeUninitializedCapacity: chunkSize) { buffer, filled in
                result = decoder.decode(&state.rest, into: buffer, &filled)
            }
            guard result != CCURL_DAMAGED else { return .damaged }
            state.isAtEnd = result == CCURL_ENDED
            state.decoded += chunk.count
            if !chunk.isEmpty { return .chunk(chunk) }
            if state.rest.isEmpty { return .more }
            // A decoder that neither takes nor gives anything would be asked for ever.
            guard state.rest.count < before else { return .damaged }
        }
    }

    func cancel() { body.cancel() }
}

/// A decoder of one content coding.
///
/// Unchecked: the handle is used by one thread at a time, which holds the lock of its ``DecodedBody``.
final class ContentDecoder: @unchecked Sendable {
    private let handle: OpaquePointer

    /// Creates a decoder of a coding in lowercase; nil if it is not supported.
    init?(_ coding: String) {
        let number =
            switch coding {
            case "gzip", "x-gzip": CCURL_CODING_GZIP
            case "deflate": CCURL_CODING_DEFLATE
            case "br": CCURL_CODING_BROTLI
            case "zstd": CCURL_CODING_ZSTD
            default: 0
            }
        guard number != 0, let handle = ccurl_decoder_create(Int32(number)) else { return nil }
        self.handle = handle
    }

    deinit { ccurl_decoder_destroy(handle) }

    /// Decodes as much as there is room for, and removes the decoded bytes from the input.
    ///
    /// - Returns: `CCURL_MORE`, `CCURL_ENDED` or `CCURL_DAMAGED`.
    func decode(_ input: inout ArraySlice<UInt8>, into buffer: UnsafeMutableBufferPointer<UInt8>, _ filled: inout Int)
        -> Int
    {
        let (result, used) = input.withUnsafeBufferPointer { bytes -> (Int32, Int) in
            var next = bytes.baseAddress, rest = bytes.count
            var output = buffer.baseAddress, room = buffer.count
            let result = ccurl_decode(handle, &next, &rest, &output, &room)
            filled = buffer.count - room
            return (result, bytes.count - rest)
        }
        input = input.dropFirst(used)
        return Int(result)
    }
}
#endif
