import Synchronization
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The memory behind an ``Image`` or a ``PixelPlane``: allocated once, freed with its last owner.
///
/// Unchecked because it holds a raw pointer: the bytes are written only while a single owner can see the storage
/// (during initialisation, or after `isWritable(_:)` said so) and are read-only from then on.
public final class PixelStorage: @unchecked Sendable {
    package let bytes: UnsafeMutableRawBufferPointer
    /// Owns the bytes, unless somebody else allocated them.
    private let memory: ScratchMemory?
    /// Whether somebody remembers the storage weakly and may bring it back, which no count of references shows.
    private let isRemembered = Atomic<Bool>(false)
    private let release: (@Sendable (UnsafeMutableRawBufferPointer) -> Void)?

    /// Memory for `count` bytes, 16-byte aligned, not initialised.
    package convenience init(uninitializedByteCount count: Int) {
        self.init(byteCount: count, isZeroed: false)
    }

    /// Memory for `count` bytes, 16-byte aligned, all zero.
    package convenience init(zeroedByteCount count: Int) {
        self.init(byteCount: count, isZeroed: true)
    }

    private init(byteCount count: Int, isZeroed: Bool) {
        let memory = ScratchMemory(byteCount: count)
        bytes = memory.bytes
        if isZeroed, !memory.isZeroed { bytes.initializeMemory(as: UInt8.self, repeating: 0) }
        self.memory = consume memory
        release = nil
    }

    /// A copy of `source`.
    package convenience init(copying source: UnsafeRawBufferPointer) {
        self.init(uninitializedByteCount: source.count)
        bytes.copyMemory(from: source)
    }

    /// Memory that somebody else allocated (a codec, a shared mapping); `release` gives it back.
    package init(
        adopting bytes: UnsafeMutableRawBufferPointer,
        release: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void
    ) {
        self.bytes = bytes
        memory = nil
        self.release = release
    }

    /// Says that the storage is remembered weakly: whoever wants to write gets a copy from now on.
    package func remember() { isRemembered.store(true, ordering: .releasing) }

    /// Whether nobody else sees the storage or can come to see it.
    static func isWritable(_ storage: inout PixelStorage) -> Bool {
        isKnownUniquelyReferenced(&storage) && !storage.isRemembered.load(ordering: .acquiring)
    }

    /// Bytes held.
    public var count: Int { bytes.count }

    /// The bytes: valid, and the same, for as long as the storage is held by whoever reads them.
    public var sharedBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(bytes) }

    /// Read access to the bytes for the duration of `body`.
    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try body(UnsafeRawBufferPointer(bytes))
    }

    deinit { release?(bytes) }
}

/// A block of memory for pixels or for work on them, from where its size is served best; freed with its owner.
///
/// Small blocks come from `malloc`, medium ones from the ``BufferPool``, large ones are mappings of their own: in pages
/// of 2 MB where the kernel has them, which saves 4,000 page faults for 16 MB, and given back to the system when they
/// are freed or, from the top, while a decoder still fills the rest: libwebp insists on an output as large as the
/// picture.
package struct ScratchMemory: ~Copyable {
    private enum Origin {
        case heap
        case pool(UnsafeMutableRawBufferPointer)
        case mapping
    }

    /// The memory, 16-byte aligned; with undefined content unless ``isZeroed``.
    package let bytes: UnsafeMutableRawBufferPointer
    private let origin: Origin
    private var released = 0

    /// Bytes of a page of the larger size, on x86-64 and on ARM64 with 4 KB pages.
    private static let hugePage = 2 << 20

    /// Memory for `count` bytes. Traps, as any allocation does, when the system has no more.
    ///
    /// - Precondition: `count` is not negative.
    package init(byteCount count: Int) {
        guard let (bytes, origin) = ScratchMemory.allocate(count) else {
            preconditionFailure("the system has no \(count) bytes of memory left")
        }
        self.bytes = bytes
        self.origin = origin
    }

    /// Memory for `count` bytes, for sizes that a file demands.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the system refuses a large block.
    package init(byteCount count: Int, input: String) throws(ImageError) {
        guard let (bytes, origin) = ScratchMemory.allocate(count) else {
            throw .limitExceeded(input: input, limit: .memory, actual: count, allowed: 0)
        }
        self.bytes = bytes
        self.origin = origin
    }

    private static func allocate(_ count: Int) -> (UnsafeMutableRawBufferPointer, Origin)? {
        precondition(count >= 0, "a buffer cannot have a negative size")
        if count > BufferPool.byteCounts.upperBound { return map(count).map { ($0, .mapping) } }
        if count >= BufferPool.byteCounts.lowerBound {
            let buffer = BufferPool.shared.take(count)
            return (UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), .pool(buffer))
        }
        return (.allocate(byteCount: count, alignment: BufferPool.alignment), .heap)
    }

    /// Whether the system has just cleared the memory, so that nobody else need do it.
    package var isZeroed: Bool { if case .mapping = origin { true } else { false } }

    /// Gives the first `count` bytes of a large block back, as far as they are whole huge pages; their content is lost.
    package mutating func release(upTo count: Int) {
        guard case .mapping = origin, let base = bytes.baseAddress else { return }
        let end = min(count, bytes.count) & ~(ScratchMemory.hugePage - 1)
        guard end > released else { return }
        madvise(base + released, end - released, MADV_DONTNEED)
        released = end
    }

    deinit {
        switch origin {
        case .heap: bytes.deallocate()
        case .pool(let buffer): BufferPool.shared.give(buffer)
        case .mapping: munmap(bytes.baseAddress, ScratchMemory.roundedToPages(bytes.count))
        }
    }

    /// Zeroed memory aligned to a huge page; nil when the system has none left.
    private static func map(_ count: Int) -> UnsafeMutableRawBufferPointer? {
        #if os(Linux)
        let flags = MAP_PRIVATE | MAP_ANONYMOUS
        #else
        let flags = MAP_PRIVATE | MAP_ANON
        #endif
        let (total, overflow) = count.addingReportingOverflow(2 * hugePage)
        guard !overflow, let start = mmap(nil, total, PROT_READ | PROT_WRITE, flags, -1, 0), start != MAP_FAILED
        else { return nil }
        // The parts before and behind the aligned range go back at once.
        let end = start + roundedToPages(total)
        let aligned = start.alignedUp(toMultipleOf: hugePage)
        let used = aligned + roundedToPages(count)
        if aligned > start { munmap(start, aligned - start) }
        if end > used { munmap(used, end - used) }
        #if os(Linux)
        // Advice only: without huge pages the memory works as well.
        madvise(aligned, used - aligned, MADV_HUGEPAGE)
        #endif
        return UnsafeMutableRawBufferPointer(start: aligned, count: count)
    }

    private static func roundedToPages(_ count: Int) -> Int {
        let small = Int(sysconf(Int32(_SC_PAGESIZE)))
        return (count + small - 1) / small * small
    }
}

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
