import VitrineCore

/// The bytes of a body while it is transferred, for any number of readers that may begin at any time.
///
/// It keeps all bytes until ``end()``, so that a reader that begins late sees them from the first one. A body of more
/// than ``limit`` bytes ends it early: its bytes are released, and readers get no more.
package final class ArrivingBytes: Broadcast {
    /// A place in the bytes.
    package struct Position: Sendable, Hashable {
        /// Changes when the body begins again.
        package fileprivate(set) var attempt = 0
        fileprivate var chunk = 0

        package init() {}
    }

    package struct State: BroadcastState {
        fileprivate var chunks: [[UInt8]] = []
        fileprivate var count = 0
        fileprivate var attempt = 0
        package fileprivate(set) var version = 0
        package fileprivate(set) var isClosed = false
        package var waiters = BroadcastWaiters()
    }

    /// The number of bytes to keep at most.
    package let limit: Int
    private let state = Locked(State())

    package init(limit: Int) { self.limit = limit }

    package func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    /// Begins a body. Bytes of an earlier attempt are dropped.
    package func begin() {
        change { state in
            guard !state.isClosed else { return }
            state.attempt += 1
            state.chunks = []
            state.count = 0
            state.version += 1
        }
    }

    /// Appends bytes of the body.
    package func append(_ chunk: [UInt8]) {
        guard !chunk.isEmpty else { return }
        change { state in
            guard !state.isClosed else { return }
            state.version += 1
            guard chunk.count <= limit - state.count else {
                state.isClosed = true
                state.chunks = []
                return
            }
            state.chunks.append(chunk)
            state.count += chunk.count
        }
    }

    /// Ends the bytes. Readers get no more, also not of those that they have not read.
    package func end() {
        change { state in
            state.isClosed = true
            state.chunks = []
            state.version += 1
        }
    }

    /// Returns the bytes behind a position, as soon as there are any.
    ///
    /// A new ``Position/attempt`` means that the bytes begin again.
    ///
    /// - Returns: nil at the end, and when the calling task is cancelled.
    package func bytes(after position: Position) async -> (bytes: [UInt8], end: Position)? {
        while !Task.isCancelled {
            let (chunks, end, version, isClosed) = state.withLock { state in
                var end = Position()
                (end.attempt, end.chunk) = (state.attempt, state.chunks.count)
                let first = position.attempt == state.attempt ? position.chunk : 0
                return (Array(state.chunks.dropFirst(first)), end, state.version, state.isClosed)
            }
            if isClosed { return nil }
            if let first = chunks.first { return (chunks.count == 1 ? first : Array(chunks.joined()), end) }
            await waitForChange(since: version)
        }
        return nil
    }
}

/// A body whose bytes are copied while it is read.
final class CopiedBody: BodySource {
    private let body: any BodySource
    private let arriving: ArrivingBytes

    init(_ body: any BodySource, _ arriving: ArrivingBytes) {
        self.body = body
        self.arriving = arriving
    }

    func next() async throws(NetworkError) -> [UInt8]? {
        let chunk = try await body.next()
        if let chunk { arriving.append(chunk) }
        return chunk
    }

    func cancel() { body.cancel() }
}
