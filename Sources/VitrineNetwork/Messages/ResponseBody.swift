public import VitrineCore

/// The body of a response, as a sequence of chunks.
///
/// The body is received only as fast as it is read: a slow reader slows down the server. It can be read once. The
/// transfer ends when the body and its iterators are released before the end.
///
/// ```swift
/// for try await chunk in response.body { try file.write(chunk) }
/// ```
///
/// A body that ends early throws ``NetworkError/truncated(url:received:reason:)``; it is never a short success.
public struct ResponseBody: AsyncSequence, Sendable {
    let source: any BodySource
    /// The bytes of the body as the server announced them. It may have lied.
    private let announced: Int?
    /// The most bytes to reserve for an announced length.
    private static let mostExpected = 16 << 20

    /// Creates a body that `source` produces.
    package init(_ source: any BodySource, announced: Int? = nil) {
        self.source = source
        self.announced = announced
    }

    /// Creates a body from bytes in memory.
    public init(_ bytes: [UInt8]) { self.init(CompleteBody(bytes)) }

    /// Creates a body that a closure produces, for a ``HTTPTransport`` of your own.
    ///
    /// ```swift
    /// let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
    /// let body = ResponseBody { () async throws(NetworkError) in
    ///     for await chunk in stream { return chunk }
    ///     return nil
    /// }
    /// ```
    ///
    /// - Parameter next: Returns the next chunk, or nil at the end. It is called by one reader at a time.
    public init(_ next: @escaping @Sendable () async throws(NetworkError) -> [UInt8]?) {
        self.init(ProducedBody(next))
    }

    /// An iterator over the chunks of a body.
    private struct Iterator: AsyncIteratorProtocol {
        let source: any BodySource

        /// Returns the next chunk, which is never empty; nil at the end.
        mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NetworkError) -> [UInt8]? { try await source.next() }
    }

    public func makeAsyncIterator() -> some AsyncIteratorProtocol<[UInt8], NetworkError> { Iterator(source: source) }

    /// Passes the rest of the body to a closure without copying. This is the cheapest way to write a large body to a
    /// file.
    ///
    /// - Parameter consume: Receives the next bytes, which are valid during the call. It may block the thread of the
    ///   task. An error that it throws ends the transfer.
    /// - Returns: The error that the closure threw, if any.
    /// - Throws: The error of the transfer.
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

    /// Returns the next chunk. It may use the memory of an earlier one.
    package func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        try await source.next(reusing: spare)
    }

    /// Returns the rest of the body as one array. This is cheaper than joining the chunks.
    ///
    /// - Parameter limit: The most bytes to accept. The default is the limit of the request.
    /// - Throws: ``NetworkError/bodyTooLarge(url:limit:)`` beyond the limit, or the error of the transfer.
    public func collect(upTo limit: ByteCount = .unlimited) async throws(NetworkError) -> [UInt8] {
        let expected = Swift.min(announced ?? 0, limit.bytes, Self.mostExpected)
        return try await source.collect(upTo: limit, expecting: expected)
    }

    /// Returns a body that reports its progress as it is read.
    package func counted(by progress: TransferProgress) -> ResponseBody {
        ResponseBody(CountedBody(source, progress), announced: announced)
    }

    /// Returns a body that fails if it does not have the length that its header declares, or exceeds a limit.
    ///
    /// - Parameters:
    ///   - length: The declared length; nil if it is not known.
    ///   - limit: The most bytes.
    ///   - url: The URL in errors.
    func measured(by length: Int?, upTo limit: ByteCount, at url: String) -> ResponseBody {
        ResponseBody(MeasuredBody(source, length: length, limit: limit, url: url), announced: announced ?? length)
    }

    /// Returns a body whose bytes are copied as they are read.
    func copied(to arriving: ArrivingBytes) -> ResponseBody {
        arriving.begin()
        return ResponseBody(CopiedBody(source, arriving), announced: announced)
    }

    /// Returns a body whose bytes are announced before they are kept, if they are more than a number.
    func announced(
        beyond count: Int, _ willHold: @escaping @Sendable (Int) async throws(NetworkError) -> Void
    ) -> ResponseBody { ResponseBody(AnnouncedBody(source, beyond: count, willHold), announced: announced) }

    /// Reads a small rest so that the connection can be reused. Ends the transfer if more follows or if the rest does
    /// not arrive soon, because a new connection is cheaper than the wait.
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

    /// Ends the transfer. Later reads throw ``NetworkError/cancelled(url:)``, unless the whole body has been received.
    public func cancel() { source.cancel() }
}

/// Produces the chunks of a ``ResponseBody`` for one reader.
package protocol BodySource: AnyObject, Sendable {
    /// Returns the next chunk, never empty, as soon as there is one; nil at the end.
    func next() async throws(NetworkError) -> [UInt8]?

    /// Does the same and may use the memory of an earlier chunk.
    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]?

    /// Returns the rest as one array of at most `limit` bytes.
    ///
    /// - Parameter expected: The bytes to reserve. There may be more, or fewer.
    func collect(upTo limit: ByteCount, expecting expected: Int) async throws(NetworkError) -> [UInt8]

    /// Ends the transfer. It may be called repeatedly and from any thread.
    func cancel()

    /// The URL in errors of the default ``collect(upTo:expecting:)``. Default: none.
    var url: String { get }
}

extension BodySource {
    package var url: String { "" }

    package func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? { try await next() }

    /// Joins the chunks.
    package func collect(upTo limit: ByteCount, expecting expected: Int) async throws(NetworkError) -> [UInt8] {
        var bytes: [UInt8] = []
        var spare: [UInt8] = []
        while let chunk = try await next(reusing: spare) {
            guard bytes.count + chunk.count <= limit.bytes else {
                cancel()
                throw .bodyTooLarge(url: url, limit: limit)
            }
            if bytes.isEmpty, chunk.count >= expected {
                bytes = chunk
                spare = []
            } else {
                // Gradual growth would copy the bytes several times.
                if bytes.isEmpty { bytes.reserveCapacity(expected) }
                bytes += chunk
                spare = chunk
            }
        }
        return bytes
    }
}

/// A body in memory.
private final class CompleteBody: BodySource {
    private let rest: Locked<[UInt8]?>

    init(_ bytes: [UInt8]) { rest = Locked(bytes.isEmpty ? nil : bytes) }

    func next() async throws(NetworkError) -> [UInt8]? {
        rest.withLock { $0.take() }
    }

    func collect(upTo limit: ByteCount, expecting expected: Int) async throws(NetworkError) -> [UInt8] {
        let bytes = rest.withLock { $0.take() } ?? []
        guard bytes.count <= limit.bytes else { throw .bodyTooLarge(url: "", limit: limit) }
        return bytes
    }

    func cancel() {}
}

/// A body that a closure produces.
private final class ProducedBody: BodySource {
    private let produce: @Sendable () async throws(NetworkError) -> [UInt8]?
    private let isCancelled = Locked(false)

    init(_ produce: @escaping @Sendable () async throws(NetworkError) -> [UInt8]?) { self.produce = produce }

    func next() async throws(NetworkError) -> [UInt8]? {
        while true {
            guard !isCancelled.withLock({ $0 }) else { throw .cancelled(url: "") }
            guard let chunk = try await produce() else { return nil }
            if !chunk.isEmpty { return chunk }
        }
    }

    func cancel() { isCancelled.withLock { $0 = true } }
}

/// A body that reports its progress as it is read, chunk by chunk, so that followers see steps.
private final class CountedBody: BodySource {
    private let body: any BodySource
    private let progress: TransferProgress

    init(_ body: any BodySource, _ progress: TransferProgress) {
        self.body = body
        self.progress = progress
    }

    deinit { progress.update { $0.isFinished = true } }

    func next() async throws(NetworkError) -> [UInt8]? { try await next(reusing: []) }

    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        do throws(NetworkError) {
            let chunk = try await body.next(reusing: spare)
            count(chunk?.count)
            return chunk
        } catch {
            progress.update { $0.isFinished = true }
            throw error
        }
    }

    private func count(_ count: Int?) {
        progress.update { step in
            if let count {
                step.received += count
            } else {
                step.isFinished = true
                step.isComplete = true
            }
        }
    }

    func cancel() { body.cancel() }
}

/// A body whose length is compared with the declared one, for any transport.
private final class MeasuredBody: BodySource {
    let url: String
    private let body: any BodySource
    private let length: Int?
    private let limit: ByteCount
    private let received = Locked(0)

    init(_ body: any BodySource, length: Int?, limit: ByteCount, url: String) {
        (self.body, self.length, self.limit, self.url) = (body, length, limit, url)
    }

    func next() async throws(NetworkError) -> [UInt8]? { try await next(reusing: []) }

    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        guard let chunk = try await body.next(reusing: spare) else {
            try check(isAtEnd: true, adding: 0)
            return nil
        }
        try check(isAtEnd: false, adding: chunk.count)
        return chunk
    }

    func collect(upTo limit: ByteCount, expecting expected: Int) async throws(NetworkError) -> [UInt8] {
        let rest = self.limit - ByteCount(received.withLock { $0 })
        let bytes: [UInt8]
        do throws(NetworkError) {
            bytes = try await body.collect(upTo: min(limit, rest), expecting: expected)
        } catch .bodyTooLarge {
            throw .bodyTooLarge(url: url, limit: min(limit, self.limit))
        }
        try check(isAtEnd: true, adding: bytes.count)
        return bytes
    }

    private func check(isAtEnd: Bool, adding count: Int) throws(NetworkError) {
        let total = received.withLock { received in
            received += count
            return received
        }
        if let length, total > length {
            cancel()
            throw .invalidResponse(url: url, reason: "the body is longer than its declared length of \(length) bytes")
        }
        if total > limit.bytes {
            cancel()
            throw .bodyTooLarge(url: url, limit: limit)
        }
        guard isAtEnd, let length, total < length else { return }
        throw .truncated(url: url, received: ByteCount(total), reason: "the header declares \(length) bytes")
    }

    func cancel() { body.cancel() }
}

/// A body of unknown length whose bytes are announced in growing steps.
private final class AnnouncedBody: BodySource {
    private let body: any BodySource
    private let willHold: @Sendable (Int) async throws(NetworkError) -> Void
    private let counts: Locked<(received: Int, announced: Int)>

    init(
        _ body: any BodySource, beyond count: Int, _ willHold: @escaping @Sendable (Int) async throws(NetworkError) -> Void
    ) {
        self.body = body
        self.willHold = willHold
        counts = Locked((0, count))
    }

    func next() async throws(NetworkError) -> [UInt8]? { try await next(reusing: []) }

    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        guard let chunk = try await body.next(reusing: spare) else { return nil }
        let more = counts.withLock { counts -> Int? in
            counts.received += chunk.count
            guard counts.received > counts.announced else { return nil }
            // A quarter ahead, so that long bodies have few steps.
            counts.announced = counts.received + max(65_536, counts.received / 4)
            return counts.announced
        }
        guard let more else { return chunk }
        do throws(NetworkError) {
            try await willHold(more)
        } catch {
            cancel()
            throw error
        }
        return chunk
    }

    func cancel() { body.cancel() }
}
