#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Loads `file:` URLs in place, without a copy.
///
/// The body is read in chunks on threads for blocking work. Ranges are answered as a server would answer them. Files of
/// other hosts are refused.
package struct FileLoader: HTTPTransport {
    private let executor: BlockingExecutor
    private static let chunkSize = 256 << 10

    /// - Parameter executor: The threads that read.
    package init(executor: BlockingExecutor = .shared) { self.executor = executor }

    package func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        let path = try Self.path(of: request.url)
        let limit = request.maximumBodySize
        do throws(FileError) {
            let (file, size) = try await executor.run { () throws(FileError) in try OpenFile.open(path) }
            return try Self.response(file, size: size, to: request, limit: limit, executor: executor)
        } catch .tooLarge {
            throw .bodyTooLarge(url: request.url.absoluteString, limit: limit)
        } catch {
            throw .file(error)
        }
    }

    private static func response(
        _ file: OpenFile, size: Int, to request: HTTPRequest, limit: ByteCount, executor: BlockingExecutor
    ) throws(FileError) -> HTTPResponse {
        let start = min(size, request.range?.lowerBound ?? 0)
        let end = min(size, request.range?.upperBound ?? size)
        var headers: HTTPHeaders = ["Content-Length": String(max(0, end - start)), "Accept-Ranges": "bytes"]
        var status = 200
        if let range = request.range {
            status = range.lowerBound < size ? 206 : 416
            headers["Content-Range"] = status == 206 ? "bytes \(start)-\(end - 1)/\(size)" : "bytes */\(size)"
        }
        guard end - start <= limit.bytes else { throw .tooLarge(path: file.path, limit: limit.bytes) }
        let head = HTTPResponseHead(status: status, headers: headers, url: request.url, version: .none)
        guard request.method != "HEAD", end > start else { return HTTPResponse(head: head, body: ResponseBody([])) }
        let body = FileBody(file, from: start, to: end, chunkSize: chunkSize, executor: executor)
        return HTTPResponse(head: head, body: ResponseBody(body))
    }

    /// Returns the path of a `file:` URL.
    ///
    /// - Throws: ``NetworkError/invalidURL(url:reason:)`` for other URLs and for files of other hosts.
    package static func path(of url: URL) throws(NetworkError) -> String {
        let text = url.absoluteString
        guard url.isFileURL else { throw .invalidURL(url: text, reason: "it is not a file URL") }
        let host = url.host(percentEncoded: false) ?? ""
        guard host.isEmpty || host.lowercased() == "localhost" else {
            throw .invalidURL(url: text, reason: "the file is on another host")
        }
        guard let bytes = PercentEncoding.validated(url.path(percentEncoded: true).utf8), !bytes.contains(0),
            bytes.first == UInt8(ascii: "/")
        else { throw .invalidURL(url: text, reason: "it has no absolute path") }
        // A URL made from text contains UTF-8; others contain the bytes of the file's name.
        return String(validating: bytes, as: UTF8.self) ?? PathText.text(of: bytes)
    }
}

/// An open file. It is closed with the object.
private final class OpenFile: Sendable {
    private let file: FileDescriptor

    private init(_ file: consuming FileDescriptor) { self.file = file }

    var path: String { file.path }

    /// Opens a regular file. Blocks.
    static func open(_ path: String) throws(FileError) -> (OpenFile, size: Int) {
        // O_NONBLOCK, so that a FIFO without a writer cannot hang the caller.
        let file = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try file.status()
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw .untrusted(path: path, reason: "it is not a regular file")
        }
        return (OpenFile(file), Int(status.st_size))
    }

    /// Reads at an offset. Blocks. Returns fewer bytes than requested only at the end of the file.
    func read(_ count: Int, at offset: Int) throws(FileError) -> [UInt8] {
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                guard let base = buffer.baseAddress else { return }
                let size = pread(file.number, base + filled, count - filled, off_t(offset + filled))
                if size == 0 { return }
                if size > 0 {
                    filled += size
                } else if errno != EINTR {
                    code = errno
                    return
                }
            }
        }
        if code != 0 { throw FileError(operation: "pread", path: path, code: code) }
        return bytes
    }
}

/// The bytes of a file, read on demand.
private final class FileBody: BodySource {
    private struct State {
        var offset: Int
        var isCancelled = false
    }

    private let file: OpenFile
    private let end: Int
    private let chunkSize: Int
    private let executor: BlockingExecutor
    private let state: Locked<State>

    init(_ file: OpenFile, from start: Int, to end: Int, chunkSize: Int, executor: BlockingExecutor) {
        self.file = file
        self.end = end
        self.chunkSize = chunkSize
        self.executor = executor
        state = Locked(State(offset: start))
    }

    func next() async throws(NetworkError) -> [UInt8]? { try await read(chunkSize) }

    func collect(upTo limit: ByteCount, expecting expected: Int) async throws(NetworkError) -> [UInt8] {
        let rest = end - state.withLock { $0.offset }
        guard rest <= limit.bytes else { throw .bodyTooLarge(url: file.path, limit: limit) }
        return try await read(max(0, rest)) ?? []
    }

    private func read(_ most: Int) async throws(NetworkError) -> [UInt8]? {
        let (offset, isCancelled) = state.withLock { ($0.offset, $0.isCancelled) }
        guard !isCancelled, !Task.isCancelled else { throw .cancelled(url: file.path) }
        let count = min(most, end - offset)
        guard count > 0 else { return nil }
        let bytes = try await executor.onFiles { [file] () throws(FileError) in try file.read(count, at: offset) }
        guard bytes.count == count else {
            throw .truncated(
                url: file.path, received: ByteCount(offset + bytes.count), reason: "the file has become shorter")
        }
        state.withLock { $0.offset = offset + count }
        return bytes
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
}

/// Loads `data:` URLs, which contain their own content (RFC 2397).
package struct InlineDataLoader: HTTPTransport {
    package init() {}

    package func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        let text = request.url.absoluteString
        let shown = text.count > 64 ? text.prefix(64) + "…" : text
        let fragment = text.utf8.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
        guard let comma = text.utf8.firstIndex(of: UInt8(ascii: ",")), comma < fragment,
            text.prefix(5).lowercased() == "data:"
        else { throw .invalidURL(url: shown, reason: "it has no comma before its data") }
        var parameters = text[text.utf8.index(text.startIndex, offsetBy: 5)..<comma].split(
            separator: ";", omittingEmptySubsequences: false)
        // Browsers permit spaces around the word.
        let last = parameters.last.map { $0.replacing("%20", with: "").filter { $0 != " " }.lowercased() }
        let isBase64 = parameters.count > 1 && last == "base64"
        if isBase64 { parameters.removeLast() }
        let data = text.utf8[text.utf8.index(after: comma)..<fragment]
        guard data.count / 4 * 3 <= request.maximumBodySize.bytes || !isBase64,
            var bytes = PercentEncoding.validated(data)
        else { throw .invalidURL(url: shown, reason: "its data are too long or not encoded correctly") }
        if isBase64 {
            guard let decoded = Self.decodedBase64(bytes) else {
                throw .invalidURL(url: shown, reason: "its data are not base64")
            }
            bytes = decoded
        }
        guard bytes.count <= request.maximumBodySize.bytes else {
            throw .bodyTooLarge(url: shown, limit: request.maximumBodySize)
        }
        let type = parameters.joined(separator: ";")
        let headers: HTTPHeaders = [
            // RFC 2397, section 2: the default media type.
            "Content-Type": type.isEmpty ? "text/plain;charset=US-ASCII" : type, "Content-Length": String(bytes.count),
        ]
        let head = HTTPResponseHead(status: 200, headers: headers, url: request.url, version: .none)
        return HTTPResponse(head: head, body: ResponseBody(request.method == "HEAD" ? [] : bytes))
    }

    /// Decodes base64 as browsers do: white space is ignored and padding may be missing (WHATWG Infra,
    /// "forgiving-base64 decode").
    private static func decodedBase64(_ bytes: [UInt8]) -> [UInt8]? {
        var text = bytes.filter { !($0 == 0x20 || (0x09...0x0D).contains($0) && $0 != 0x0B) }
        if text.count % 4 == 0 {
            for _ in 0..<2 where text.last == UInt8(ascii: "=") { text.removeLast() }
        }
        guard text.count % 4 != 1, !text.contains(UInt8(ascii: "=")) else { return nil }
        text += [UInt8](repeating: UInt8(ascii: "="), count: (4 - text.count % 4) % 4)
        return Data(base64Encoded: Data(text)).map(Array.init)
    }
}
