#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// Loads `file:` addresses in place: nothing is copied, and what the response says of its address is the file (R78).
///
/// The body is read piece by piece on threads for blocking work. A range is answered as a server would. A host other
/// than this machine is refused.
public struct FileLoader: HTTPTransport {
    private let executor: BlockingExecutor
    private static let chunkSize = 256 << 10

    /// - Parameter executor: Whose threads read.
    public init(executor: BlockingExecutor = .shared) { self.executor = executor }

    public var capabilities: LoadingCapabilities { .backPressure }

    public func load(
        _ request: HTTPRequest, allowing guardian: ConnectFilter?
    ) async throws(NetworkError) -> HTTPResponse {
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

    /// The path a `file:` address stands for.
    ///
    /// - Throws: ``NetworkError/invalidURL(url:reason:)`` for other addresses, and those of other machines.
    public static func path(of url: URL) throws(NetworkError) -> String {
        let text = url.absoluteString
        guard url.isFileURL else { throw .invalidURL(url: text, reason: "it is no address of a file") }
        let host = url.host(percentEncoded: false) ?? ""
        guard host.isEmpty || host.lowercased() == "localhost" else {
            throw .invalidURL(url: text, reason: "the file is on another machine")
        }
        guard let bytes = PercentEncoding.decode(url.path(percentEncoded: true).utf8), !bytes.contains(0),
            bytes.first == UInt8(ascii: "/")
        else { throw .invalidURL(url: text, reason: "it holds no path from the root") }
        // An address made of a path as text has the UTF-8 of that text, others have the file's own bytes.
        return String(validating: bytes, as: UTF8.self) ?? PathText.text(of: bytes)
    }
}
