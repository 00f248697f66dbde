import VitrineCore

/// Inflates the data of an image on another thread, a few pieces ahead of its rows.
///
/// Unchecked: `monitor` guards the queue. The thread alone uses the inflater and writes the buffers that are free.
final class PNGInflateStage: @unchecked Sendable {
    /// Bytes of a piece, and the most pieces between the two threads.
    private static let pieceBytes = 128 << 10
    private static let pieceCount = 6
    /// Bytes by which a piece may be longer, the first one by the inflater's history, and those behind it that may be
    /// read.
    private static let slack = Inflater<PNGDataSource>.history + Inflater<PNGDataSource>.slack + 64

    private enum Phase { case waiting, running, ended }

    private let monitor = Monitor()
    private let memory = ScratchMemory(byteCount: pieceCount * (pieceBytes + slack))
    private var phase = Phase.waiting
    private var isStopped = false
    /// The sizes of the pieces that are inflated, by their number modulo ``pieceCount``.
    private var sizes = [Int](repeating: 0, count: pieceCount)
    /// How many pieces were inflated, and how many the rows have left behind.
    private var inflated = 0
    private var used = 0
    /// Whether the rows read a piece now.
    private var isReading = false
    /// Why there are no more pieces; nil while there are, and at the regular end.
    private var failure: InflateError?
    /// Whether the data ended because the file did.
    private(set) var isTruncated = false

    private var inflater: Inflater<PNGDataSource>

    init(_ source: consuming PNGDataSource) { inflater = Inflater(source, chunk: Self.pieceBytes) }

    private func piece(_ number: Int) -> UnsafeMutableRawBufferPointer {
        let size = Self.pieceBytes + Self.slack
        return UnsafeMutableRawBufferPointer(rebasing: memory.bytes[(number % Self.pieceCount * size)...].prefix(size))
    }

    /// The next bytes, which stay valid until the next call; none at the end.
    ///
    /// - Throws: ``InflateError``, after everything before the fault has been returned.
    func next() throws(InflateError) -> UnsafeRawBufferPointer {
        monitor.lock()
        if isReading {
            isReading = false
            used += 1
            monitor.broadcast()
        }
        while used == inflated, phase != .ended { monitor.wait() }
        let hasPiece = used < inflated
        isReading = hasPiece
        let (size, failure) = (sizes[used % Self.pieceCount], failure)
        monitor.unlock()
        if hasPiece { return UnsafeRawBufferPointer(rebasing: piece(used).prefix(size)) }
        if let failure { throw failure }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Ends the thread and waits for that.
    func stop() {
        monitor.lock()
        isStopped = true
        if phase == .waiting { phase = .ended }
        monitor.broadcast()
        while phase != .ended { monitor.wait() }
        monitor.unlock()
    }

    /// Inflates. The work of the thread.
    func run() {
        monitor.lock()
        let starts = phase == .waiting
        if starts { phase = .running }
        monitor.unlock()
        guard starts else { return }
        let failure: InflateError?
        do throws(InflateError) {
            while let room = free() {
                let bytes = try inflater.next()
                if bytes.isEmpty { break }
                room.copyMemory(from: bytes)
                monitor.lock()
                sizes[inflated % Self.pieceCount] = bytes.count
                inflated += 1
                monitor.broadcast()
                monitor.unlock()
            }
            failure = nil
        } catch {
            failure = error
        }
        monitor.lock()
        self.failure = failure
        isTruncated = inflater.source.isTruncated
        phase = .ended
        monitor.broadcast()
        monitor.unlock()
    }

    /// Waits for a buffer that is free; nil when stopped.
    private func free() -> UnsafeMutableRawBufferPointer? {
        monitor.lock()
        defer { monitor.unlock() }
        while !isStopped, inflated - used == Self.pieceCount { monitor.wait() }
        return isStopped ? nil : piece(inflated)
    }
}
