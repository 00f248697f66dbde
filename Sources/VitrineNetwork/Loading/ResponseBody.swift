public import VitrineCore

/// The body of a response: chunks, in order, each handed over for good.
///
/// What is not read is not received: a slow reader slows the server down. A body can be read once. Letting go of it
/// before its end, and of every iterator over it, ends the transfer.
///
/// ```swift
/// for try await chunk in response.body { try file.write(chunk) }
/// ```
///
/// A body that ends before it should is an error, never a short success.
public struct ResponseBody: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = NetworkError

    private let source: any BodySource

    /// A body that comes from `source`.
    public init(_ source: any BodySource) { self.source = source }

    /// A body that is there already.
    public init(_ bytes: [UInt8]) { source = CompleteBody(bytes) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let source: any BodySource

        /// The next chunk, never empty; nil at the end.
        ///
        /// - Throws: Why there is no more.
        public mutating func next() async throws(NetworkError) -> [UInt8]? { try await source.next() }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> [UInt8]? { try await source.next() }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }

    /// Shows the rest of the body to a closure, piece by piece: without new memory for each, so the cheapest way to
    /// bring a large body to a file.
    ///
    /// - Parameter consume: Sees the bytes while it runs, and may block the task's thread. What it throws ends the
    ///   transfer.
    public func read<Failure: Error>(
        _ consume: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) async throws(NetworkError) -> Result<Void, Failure> {
        var spare: [UInt8] = []
        while let chunk = try await source.next(reusing: spare) {
            let result = chunk.withUnsafeBytes { bytes in Result { () throws(Failure) in try consume(bytes) } }
            if case .failure = result {
                cancel()
                return result
            }
            spare = chunk
        }
        return .success(())
    }

    /// The next chunk, with the memory of an earlier one to use again.
    package func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        try await source.next(reusing: spare)
    }

    /// The rest of the body in one piece. Cheaper than going through the chunks.
    ///
    /// - Parameter limit: The most bytes to accept. Default: what the request allows.
    /// - Throws: ``NetworkError/bodyTooLarge(url:limit:)`` beyond the limit, or why there is no more.
    public func collect(upTo limit: ByteCount = .unlimited) async throws(NetworkError) -> [UInt8] {
        try await source.collect(upTo: limit)
    }

    /// The same body, counted as it is read.
    func counted(by progress: TransferProgress) -> ResponseBody { ResponseBody(CountedBody(source, progress)) }

    /// The same body, copied as it is read.
    func copied(to arriving: ArrivingBytes) -> ResponseBody {
        arriving.begin()
        return ResponseBody(CopiedBody(source, arriving))
    }

    /// Reads a small rest, so that the connection can be used again; ends the transfer if there is more, or if it does
    /// not come soon: a new connection costs less than to wait for what nobody wants.
    func discard() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                var rest = 64 << 10
                while rest > 0, let chunk = try? await source.next() { rest -= chunk.count }
            }
            group.addTask { try? await Task.sleep(for: .milliseconds(500)) }
            await group.next()
            cancel()
            group.cancelAll()
        }
    }

    /// Ends the transfer. Reading throws ``NetworkError/cancelled(url:)`` from now on, unless everything is there.
    public func cancel() { source.cancel() }
}

/// Where the chunks of a ``ResponseBody`` come from. It has one reader.
public protocol BodySource: AnyObject, Sendable {
    /// The next chunk, never empty, once there is one; nil at the end.
    func next() async throws(NetworkError) -> [UInt8]?

    /// The same, with the memory of an earlier chunk to use again. Default: does not.
    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]?

    /// The rest in one piece, of at most `limit` bytes.
    func collect(upTo limit: ByteCount) async throws(NetworkError) -> [UInt8]

    /// Ends the transfer. Called any number of times, from any thread.
    func cancel()
}

extension BodySource {
    public func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? { try await next() }

    /// The rest in one piece, for sources that have no quicker way.
    package func collectChunks(upTo limit: ByteCount, url: String) async throws(NetworkError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try await next() {
            guard bytes.count + chunk.count <= limit.bytes else {
                cancel()
                throw .bodyTooLarge(url: url, limit: limit)
            }
            if bytes.isEmpty { bytes = chunk } else { bytes += chunk }
        }
        return bytes
    }
}

/// The body that is there already.
final class CompleteBody: BodySource {
    private let rest: Locked<[UInt8]?>

    init(_ bytes: [UInt8]) { rest = Locked(bytes.isEmpty ? nil : bytes) }

    func next() async throws(NetworkError) -> [UInt8]? {
        rest.withLock { $0.take() }
    }

    func collect(upTo limit: ByteCount) async throws(NetworkError) -> [UInt8] {
        let bytes = rest.withLock { $0.take() } ?? []
        guard bytes.count <= limit.bytes else { throw .bodyTooLarge(url: "", limit: limit) }
        return bytes
    }

    func cancel() {}
}
