import VitrineCore
import VitrineImageCore

/// Inflates the data of an image on another thread, a few pieces ahead of its rows. While the rows wait, their thread
/// inflates a later part of the data itself (``AheadInflater``), from whose end the other thread goes on when it has
/// come to the part's beginning.
///
/// Unchecked: `monitor` guards the queue. The thread alone uses the inflater and writes the buffers that are free. The
/// part belongs to the thread of the rows until the other thread takes it.
final class PNGInflateStage: @unchecked Sendable {
    /// Bytes of a piece, and the most pieces between the two threads.
    private static let pieceBytes = 128 << 10
    private static let pieceCount = 6
    /// Bytes by which a piece may be longer, the first one by the inflater's history, and those behind it that may be
    /// read.
    private static let slack = Inflater<PNGDataSource>.history + Inflater<PNGDataSource>.slack + 64
    /// The most chunks that lie before a part.
    private static let maximumChunks = 4_096
    /// After so many parts in turn that were of no use, none is tried.
    private static let maximumFailures = 3

    private enum Phase { case waiting, running, ended }
    private enum PartState {
        /// There is none, or the thread of the rows works on it.
        case open
        /// The other thread wants it or takes it.
        case wanted
        /// Its bytes are right, and come before the piece with this number.
        case ready(Int)
    }

    private let monitor = Monitor()
    private let memory = ScratchMemory(byteCount: pieceCount * (pieceBytes + slack))
    private var phase = Phase.waiting
    private var isStopped = false
    /// The sizes of the pieces that are inflated, by their number modulo ``pieceCount``.
    private var sizes = [Int](repeating: 0, count: pieceCount)
    /// How many pieces were inflated, and how many the rows have left behind.
    private var inflated = 0
    private var used = 0
    /// Whether the rows read a piece now, or the part.
    private var isReading = false
    private var isReadingPart = false
    /// Why there are no more pieces; nil while there are, and at the regular end.
    private var failure: InflateError?
    /// Whether the data ended because the file did.
    private(set) var isTruncated = false

    private var inflater: Inflater<PNGDataSource>
    /// Where the inflater is, in bits of the stream; 0 before it has begun.
    private var position = 0

    private let leadBytes: Int
    private var part: AheadInflater<PNGDataSource>?
    private var partState = PartState.open
    /// Whether the thread of the rows works on the part now.
    private var isAhead = false
    private var failures = 0
    /// The stream, from ``scouted`` on, and room for the part. Used by the thread of the rows alone.
    private var scout: PNGDataSource
    private var partMemory: AheadInflater<PNGDataSource>.Memory?
    private var scouted = 0
    /// Whether there is no part left that far ahead.
    private var isNearEnd = false

    /// - Parameter leadBytes: Bytes of the stream from where the other thread is to the part, which becomes at most
    ///   twice as many.
    init(_ source: PNGDataSource, leadBytes: Int) {
        inflater = Inflater(source, chunk: Self.pieceBytes)
        scout = source
        self.leadBytes = leadBytes
    }

    private func piece(_ number: Int) -> UnsafeMutableRawBufferPointer {
        let size = Self.pieceBytes + Self.slack
        return UnsafeMutableRawBufferPointer(rebasing: memory.bytes[(number % Self.pieceCount * size)...].prefix(size))
    }

    // MARK: The thread of the rows

    /// The next bytes, which stay valid until the next call; none at the end.
    ///
    /// - Throws: ``InflateError``, after everything before the fault has been returned.
    func next() throws(InflateError) -> UnsafeRawBufferPointer {
        monitor.lock()
        leave()
        while true {
            if case .ready(used) = partState, let part {
                isReadingPart = true
                monitor.unlock()
                return part.bytes
            }
            if used < inflated || phase == .ended { break }
            if canWorkAhead { workAhead() } else { monitor.wait() }
        }
        let hasPiece = used < inflated
        isReading = hasPiece
        let (size, failure) = (sizes[used % Self.pieceCount], failure)
        monitor.unlock()
        if hasPiece { return UnsafeRawBufferPointer(rebasing: piece(used).prefix(size)) }
        if let failure { throw failure }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Gives back the piece or part that the rows have read. Under the lock.
    private func leave() {
        if isReading {
            isReading = false
            used += 1
            monitor.broadcast()
        }
        if isReadingPart {
            isReadingPart = false
            part = nil
            partState = .open
        }
    }

    private var canWorkAhead: Bool {
        guard case .open = partState, phase == .running, position > 0, !isNearEnd else { return false }
        return part.map { !$0.isDone } ?? (failures < Self.maximumFailures)
    }

    /// Works on the part for a while. Called and returns under the lock, which it releases meanwhile.
    private func workAhead() {
        let known = part, begin = position >> 3 + leadBytes
        isAhead = true
        monitor.unlock()
        var found = known
        if let known { known.advance() } else { found = try? newPart(from: begin) }
        monitor.lock()
        isAhead = false
        if known == nil {
            part = found
            failures += 1
        }
        monitor.broadcast()
    }

    /// Looks for a part that begins at or behind a byte of the stream.
    private func newPart(from begin: Int) throws(ImageError) -> AheadInflater<PNGDataSource>? {
        isNearEnd = (try? !scout.skip(begin - scouted, chunks: Self.maximumChunks)) ?? true
        guard !isNearEnd else { return nil }
        scouted = begin
        let memory = partMemory ?? AheadInflater.Memory(capacity: 2 * leadBytes)
        partMemory = memory
        return try AheadInflater(from: begin, in: memory) { [scout] byte throws(ImageError) in
            var source = scout
            return try source.skip(byte - begin, chunks: Self.maximumChunks) ? source : nil
        }
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

    // MARK: The other thread

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
                if bytes.isEmpty, !inflater.isAtStop { break }
                room.copyMemory(from: bytes)
                publish(bytes.count)
                if inflater.isAtStop { takePart() }
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
        if case .open = partState { inflater.stop = part?.start } else { inflater.stop = nil }
        return isStopped ? nil : piece(inflated)
    }

    private func publish(_ count: Int) {
        monitor.lock()
        defer { monitor.unlock() }
        position = inflater.position
        if case .open = partState, let part, part.start < position, !isAhead { self.part = nil }
        guard count > 0 else { return }
        sizes[inflated % Self.pieceCount] = count
        inflated += 1
        monitor.broadcast()
    }

    /// Goes on behind the part, in front of which the inflater is. The part then follows the last piece.
    private func takePart() {
        monitor.lock()
        partState = .wanted
        while isAhead { monitor.wait() }
        let taken = part
        monitor.unlock()
        var next: Inflater<PNGDataSource>?
        if let taken, let past = inflater.past { next = taken.inflater(behind: past.bytes, past.adler) }
        inflater.stop = nil
        let isTaken = next != nil
        if let next = next.take() { inflater = next }
        monitor.lock()
        position = inflater.position
        if isTaken {
            partState = .ready(inflated)
            failures = 0
        } else {
            part = nil
            partState = .open
        }
        monitor.broadcast()
        monitor.unlock()
    }
}
