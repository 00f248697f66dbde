import Synchronization
import VitrineCore
import VitrineImageCore

/// A part of a baseline scan that another thread decodes, while the blocks before it are still unknown.
///
/// The thread starts at a byte in the middle of the data. Behind a restart marker that is the beginning of a block.
/// Elsewhere it is a guess, but Huffman codes synchronise by themselves: after some wrong blocks, the decoder comes to
/// the beginning of an MCU. (Klein and Wiseman, "Parallel Huffman Decoding with Applications to JPEG Files", The
/// Computer Journal 46(5), 2003.) The thread notes where its first MCUs begin. The decode of the part before arrives at
/// one of these places, and thereby proves that everything from there on is right. Only then the place of the blocks in
/// the image and the sum of the DC differences before them are known, so that the thread keeps coefficients.
///
/// If the two never meet, or the piece is damaged, its blocks are decoded again in order. The result is the same in
/// any case.
///
/// Unchecked: `monitor` guards the phase and the entries. The thread alone accesses everything else before it ends, and
/// the decode that waits for its end everything afterwards.
final class BlockMeanPiece: @unchecked Sendable {
    /// How many MCUs at the beginning of a piece can be met.
    static let entryCount = 2048
    /// How many of them are published at a time. Until then, a wrong guess can be given up.
    private static let step = 128
    /// MCUs decoded between two looks at the cancellation.
    private static let batch = 128
    /// The most places from which a decode is tried that meets undefined codes at first.
    private static let maximumAttempts = 1024

    /// The scan that a piece belongs to. Its tables outlive the piece.
    struct Scan {
        let source: ByteSource
        let cancellation: CancellationToken
        let slots: [BlockMeanSlot]
        let skipBits: UInt64
        /// 0 for none.
        let restartInterval: Int
        /// All of the scan's MCUs.
        let mcuCount: Int

        /// The most numbers that are kept of an MCU.
        var largestMCU: Int { slots.reduce(0) { $0 + BlockMeanLoop.largestBlock(side: $1.side) } }
    }

    private enum Phase { case waiting, running, ended }

    /// Where the first MCU begins, or is guessed to begin: a byte of the file.
    let start: Int
    /// The number of the restart marker before ``start``; nil without one.
    let restart: UInt8?
    /// The piece behind this one.
    let next: BlockMeanPiece?

    private let scan: Scan
    private let monitor = Monitor()
    private let isStopped = Atomic<Bool>(false)
    private var phase = Phase.waiting
    /// The bits from ``start`` to the beginning of each of the first MCUs, as far as the thread has come.
    private var entries: [Int] = []
    /// Whether ``entries`` are all there will be.
    private var isPublished = false

    private var positions: [Int] = []
    private var memory: UnsafeMutablePointer<Int16>?
    /// Where the numbers of the first MCUs begin.
    private var places: [Int] = []
    /// How many numbers there are.
    private var written = 0
    /// The MCUs decoded.
    private(set) var count = 0
    /// Where the piece met the next one: the index of the next piece's MCU behind the last one of this piece.
    private(set) var junction: Int?

    init(start: Int, restart: UInt8?, next: BlockMeanPiece?, scan: Scan) {
        (self.start, self.restart, self.next, self.scan) = (start, restart, next, scan)
    }

    deinit { memory?.deallocate() }

    /// The coefficients from one of the first MCUs on. Valid once the piece has ended.
    func coefficients(_ index: Int) -> UnsafePointer<Int16>? {
        guard let memory, index < places.count else { return nil }
        return UnsafePointer(memory + places[index])
    }

    // MARK: The decode that waits

    /// Whether an MCU of this piece begins at a place.
    enum Meeting {
        case at(Int)
        case notHere
        /// Neither here nor later.
        case never
    }

    /// Waits for the thread to come as far. A thread that has not started yet is not waited for, and ends.
    ///
    /// - Parameter bits: From ``start``, without stuffing.
    func meeting(at bits: Int) -> Meeting {
        monitor.lock()
        if phase == .waiting { phase = .ended }
        while phase == .running, !isPublished, entries.last ?? -1 < bits { monitor.wait() }
        let entries = entries
        monitor.unlock()
        guard let last = entries.last, bits <= last else { return .never }
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle] < bits { low = middle + 1 } else { high = middle }
        }
        return entries[low] == bits ? .at(low) : .notHere
    }

    /// Waits for the thread to end.
    ///
    /// - Returns: false if it never started.
    func waitForEnd() -> Bool {
        monitor.lock()
        defer { monitor.unlock() }
        if phase == .waiting { phase = .ended }
        else {
            while phase != .ended { monitor.wait() }
            return true
        }
        return false
    }

    /// Ends the thread as soon as possible and waits for that.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        _ = waitForEnd()
    }

    // MARK: The thread

    /// Decodes the piece.
    func run() {
        monitor.lock()
        let starts = phase == .waiting
        if starts { phase = .running }
        monitor.unlock()
        guard starts else { return }
        var window = JPEGInputWindow(scan.source)
        window.skip(start)
        var feed = JPEGEntropyFeed(inputSize: scan.source.count)
        // A read error or a cancellation ends the piece early; the decode that waits finds it by itself.
        try? decode(&window, &feed)
        publish(isLast: true)
        monitor.lock()
        phase = .ended
        monitor.broadcast()
        monitor.unlock()
    }

    private func publish(isLast: Bool) {
        monitor.lock()
        if !isPublished { entries = positions }
        isPublished = isPublished || isLast
        monitor.broadcast()
        monitor.unlock()
    }

    private var mustEnd: Bool { isStopped.load(ordering: .relaxed) || scan.cancellation.isCancelled }

    private func decode(_ window: inout JPEGInputWindow, _ feed: inout JPEGEntropyFeed) throws(ImageError) {
        let predictors = UnsafeMutablePointer<Int32>.allocate(capacity: 4 + 64)
        predictors.initialize(repeating: 0, count: 4 + 64)
        let slots = UnsafeMutablePointer<BlockMeanSlot>.allocate(capacity: scan.slots.count)
        slots.initialize(from: scan.slots, count: scan.slots.count)
        defer {
            predictors.deallocate()
            slots.deallocate()
        }
        // Memory is only taken for the part that is written.
        let memory = UnsafeMutablePointer<Int16>.allocate(capacity: scan.mcuCount * scan.largestMCU + 24)
        self.memory = memory
        let loop = BlockMeanLoop(
            slots: slots, slotCount: scan.slots.count, predictors: predictors, skipBits: scan.skipBits, lowBit: 0,
            low: predictors + 4, endRun: predictors)
        if var number = restart {
            publish(isLast: true)
            while try segment(&window, feed: &feed, loop: loop, memory: memory, upTo: count + scan.restartInterval) {
                try feed.finish(&window)
                guard try window.require(2), window.bytes[1] == JPEGMarker.firstRestart + (number + 1) & 7 else {
                    return
                }
                number = (number + 1) & 7
                window.consume(2)
                if let next, window.offset == next.start {
                    junction = 0
                    return
                }
                predictors.update(repeating: 0, count: 4)
            }
        } else {
            feed.mark = next?.start
            _ = try segment(&window, feed: &feed, loop: loop, memory: memory, upTo: scan.mcuCount)
        }
    }

    /// Decodes MCUs that no restart marker divides.
    ///
    /// - Returns: Whether there are `limit` MCUs now, and the piece goes on.
    private func segment(
        _ window: inout JPEGInputWindow, feed: inout JPEGEntropyFeed, loop: BlockMeanLoop,
        memory: UnsafeMutablePointer<Int16>, upTo limit: Int
    ) throws(ImageError) -> Bool {
        let limit = min(limit, scan.mcuCount)
        var reader = try feed.start(&window)
        var search = BlockMeanSearch(next)
        var attempts = 0
        var output = memory + written
        defer { written = output - memory }
        while count < limit {
            guard !mustEnd else { return false }
            var wanted = min(Self.batch, limit - count)
            // The last MCUs one by one, so that one beyond the end of the data is not counted.
            var end = feed.isAtEnd ? feed.end + 16 : feed.end - JPEGEntropyFeed.margin
            if feed.isAtEnd || places.count < Self.entryCount { wanted = 1 }
            if restart == nil {
                if positions.count < Self.entryCount, count == positions.count {
                    positions.append(feed.position(of: reader))
                    if positions.count % Self.step == 0 { publish(isLast: positions.count == Self.entryCount) }
                }
                if let index = search.look(feed, reader: reader, wanted: &wanted, end: &end) {
                    junction = index
                    return false
                }
            }
            let isShortened = search.isShortened
            var left = wanted
            let place = output - memory
            let outcome = loop.coefficients(&left, &reader, until: end, into: &output)
            if feed.isAtEnd && feed.isOverrun(reader) { return false }
            if left < wanted {
                if count == places.count, places.count < Self.entryCount { places.append(place) }
                count += wanted - left
            }
            switch outcome {
            case .done: break
            case .needsInput:
                if isShortened { continue }
                if feed.isAtEnd { return false }
                try feed.feed(&window, &reader)
            case .corrupt:
                // At first, that is the way of wrong guesses.
                attempts += 1
                guard restart == nil, positions.count < Self.step, attempts < Self.maximumAttempts else {
                    return false
                }
                reader = feed.reader(atByte: feed.position(of: reader) / 8 + 1)
                loop.predictors.update(repeating: 0, count: 4)
                (positions, places) = ([], [])
                (count, output) = (0, memory)
            }
        }
        return true
    }
}

/// Watches a decode for the place where it meets a piece.
struct BlockMeanSearch {
    private(set) var piece: BlockMeanPiece?
    /// Whether the last look moved the place where to stop.
    private(set) var isShortened = false

    init(_ piece: BlockMeanPiece?) { self.piece = piece }

    /// Compares the place of a reader at the beginning of an MCU with those of the piece.
    ///
    /// - Parameters:
    ///   - wanted: How many MCUs to decode until the next look.
    ///   - end: Where to stop before.
    /// - Returns: The MCU of the piece that begins here.
    mutating func look(
        _ feed: borrowing JPEGEntropyFeed, reader: JPEGBitReader, wanted: inout Int,
        end: inout UnsafePointer<UInt8>
    ) -> Int? {
        isShortened = false
        guard let piece, let mark = feed.markedByte else { return nil }
        let here = feed.position(of: reader) - 8 * mark
        if here >= 0 {
            wanted = 1
            switch piece.meeting(at: here) {
            case .at(let index): return index
            case .notHere: break
            case .never: self.piece = nil
            }
        } else if -here > 8 * JPEGEntropyFeed.margin {
            // The reader loads up to 8 bytes ahead, and an MCU is shorter than the margin.
            let stop = reader.next + (-here / 8 - JPEGEntropyFeed.margin / 2)
            isShortened = stop < end
            end = min(end, stop)
        } else {
            wanted = 1
        }
        return nil
    }
}
