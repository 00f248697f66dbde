import VitrineCore

/// Buffers of medium size that were freed a moment ago, kept for the next picture.
///
/// Thumbnails are made of the same few buffers over and over. Given back to `malloc` between two pictures they
/// return to the system, and for the next picture every page of them is mapped and cleared anew, which takes a quarter
/// of the time of a small thumbnail.
///
/// The pool never holds more than ``maximumByteCount`` bytes in ``maximumCount`` buffers: the oldest make room. Buffers
/// keep what was in them: who needs zeros writes them. Memory pressure of any level empties the pool, and nothing is
/// kept until memory is asked for again, so that what others free because of it goes back to the system. Safe to use
/// from any thread.
package final class BufferPool: Sendable {
    /// Sizes that are kept. Smaller ones `malloc` has at hand itself; larger ones have a mapping of their own.
    package static let byteCounts = (64 << 10)...(4 << 20)
    /// The most bytes kept altogether.
    package static let maximumByteCount = 4 << 20
    /// The most buffers kept.
    package static let maximumCount = 8

    /// The pool of all pictures of the process, emptied by the system's memory pressure.
    package static let shared = BufferPool(pressure: .shared)

    /// A block of memory. The address is kept as a number, which threads may pass on.
    private struct Buffer {
        var address: UInt
        var byteCount: Int
    }

    private struct State {
        /// The oldest first.
        var buffers: [Buffer] = []
        var byteCount = 0
        /// Whether there was memory pressure and no demand since.
        var isPaused = false
    }

    private let state = Locked(State())
    private let subscription = Locked<MemoryPressure.Subscription?>(nil)

    /// An empty pool.
    ///
    /// - Parameter pressure: Whose reports empty it; nil for nobody's.
    package init(pressure: MemoryPressure? = nil) {
        BufferPool.letHeapKeepItsTop()
        state.withLock { $0.buffers.reserveCapacity(BufferPool.maximumCount + 1) }
        guard let pressure else { return }
        let subscription = pressure.subscribe { [weak self] _ in self?.removeAll() }
        self.subscription.withLock { $0 = subscription }
    }

    deinit { removeAll() }

    /// Bytes and buffers held now.
    package var contents: (byteCount: Int, count: Int) { state.withLock { ($0.byteCount, $0.buffers.count) } }

    /// Memory for at least `count` bytes (at most an eighth more), 16-byte aligned, with any content. It goes back by
    /// ``give(_:)``.
    ///
    /// - Parameter count: A number within ``byteCounts``.
    package func take(_ count: Int) -> UnsafeMutableRawBufferPointer {
        let buffer = state.withLock { state in
            state.isPaused = false
            return BufferPool.remove(count, from: &state)
        }
        if let buffer, let start = UnsafeMutableRawPointer(bitPattern: buffer.address) {
            return UnsafeMutableRawBufferPointer(start: start, count: buffer.byteCount)
        }
        return .allocate(byteCount: count, alignment: BufferPool.alignment)
    }

    /// Keeps memory that came from ``take(_:)``, or frees it.
    package func give(_ bytes: UnsafeMutableRawBufferPointer) {
        let new = Buffer(address: UInt(bitPattern: bytes.baseAddress), byteCount: bytes.count)
        let superfluous = state.withLock { state in
            guard !state.isPaused, BufferPool.byteCounts.contains(new.byteCount) else { return [new] }
            state.buffers.append(new)
            state.byteCount += new.byteCount
            var dropped: [Buffer] = []
            while state.byteCount > BufferPool.maximumByteCount || state.buffers.count > BufferPool.maximumCount {
                let oldest = state.buffers.removeFirst()
                state.byteCount -= oldest.byteCount
                dropped.append(oldest)
            }
            return dropped
        }
        BufferPool.free(superfluous)
    }

    /// Frees everything held, and what comes until memory is asked for again.
    package func removeAll() {
        let all = state.withLock { state in
            defer {
                state.buffers.removeAll(keepingCapacity: true)
                state.byteCount = 0
                state.isPaused = true
            }
            return state.buffers
        }
        BufferPool.free(all)
    }

    /// What `malloc` gives by itself. Asking for more would take the aligned allocator, whose freed blocks glibc before
    /// 2.38 hardly ever uses again.
    static let alignment = 16

    /// The best fit; of several the one freed last, whose content is the likeliest to be in the caches.
    private static func remove(_ count: Int, from state: inout State) -> Buffer? {
        var best: Int?
        for (i, buffer) in state.buffers.enumerated() where buffer.byteCount >= count {
            guard buffer.byteCount - count <= count / 8 else { continue }
            if let other = best, state.buffers[other].byteCount < buffer.byteCount { continue }
            best = i
        }
        guard let best else { return nil }
        let buffer = state.buffers.remove(at: best)
        state.byteCount -= buffer.byteCount
        return buffer
    }

    private static func free(_ buffers: [Buffer]) {
        for buffer in buffers { UnsafeMutableRawPointer(bitPattern: buffer.address)?.deallocate() }
    }

    /// Lets what codecs allocate themselves stay with `malloc` between two pictures.
    ///
    /// glibc gives the free top of its heap back from 128 KB on. Once a larger block has been freed it takes twice that
    /// block's size for worth keeping (mallopt(3), M_MMAP_THRESHOLD, "dynamic mmap threshold"), unless the program or
    /// its environment has set the thresholds: any picture of medium size has this effect, here even the first.
    private static func letHeapKeepItsTop() {
        let block = UnsafeMutableRawPointer.allocate(byteCount: 512 << 10, alignment: alignment)
        block.storeBytes(of: 0, as: UInt8.self)
        block.deallocate()
    }
}
