import Synchronization
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The memory of an image's pixels, freed with its last owner. See ``PixelImage/sharedPixels``.
///
/// Unchecked because it holds a raw pointer. The bytes are written only while a single owner has access: during
/// initialisation, or after `isWritable(_:)` returned true.
public final class PixelStorage: @unchecked Sendable {
    package let bytes: UnsafeMutableRawBufferPointer
    /// Owns the bytes, unless other code allocated them.
    private let memory: ScratchMemory?
    /// Whether a weak reference exists that may become a strong one, which no count of references shows.
    private let isRemembered = Atomic<Bool>(false)
    private let release: (@Sendable (UnsafeMutableRawBufferPointer) -> Void)?

    /// Memory for `count` bytes, 16-byte aligned, all zero. There is no other kind: a byte that a decoder leaves out
    /// must not show an earlier image.
    package init(zeroedByteCount count: Int) {
        let memory = ScratchMemory(byteCount: count)
        bytes = memory.bytes
        self.memory = consume memory
        release = nil
    }

    /// A copy of `source`.
    package convenience init(copying source: UnsafeRawBufferPointer) {
        self.init(zeroedByteCount: source.count)
        bytes.copyMemory(from: source)
    }

    /// Adopts memory that other code allocated (a codec, a shared mapping); `release` frees it.
    package init(
        adopting bytes: UnsafeMutableRawBufferPointer,
        release: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Void
    ) {
        self.bytes = bytes
        memory = nil
        self.release = release
    }

    /// Marks the storage as weakly referenced: from now on, writers get a copy.
    package func remember() { isRemembered.store(true, ordering: .releasing) }

    /// Returns whether no other code has, or can get, access to the storage.
    static func isWritable(_ storage: inout PixelStorage) -> Bool {
        isKnownUniquelyReferenced(&storage) && !storage.isRemembered.load(ordering: .acquiring)
    }

    /// The number of bytes.
    package var count: Int { bytes.count }

    /// The bytes. They stay valid and unchanged for as long as the reader holds the storage.
    public var sharedBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(bytes) }

    /// Calls `body` with the bytes.
    package func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try body(UnsafeRawBufferPointer(bytes))
    }

    deinit { release?(bytes) }
}

/// A block of memory for pixels or for work on them, all zero at first, freed with its owner.
///
/// Small blocks come from `malloc`, medium ones from the ``BufferPool``. Large ones are mappings of their own, in pages
/// of 2 MB where the kernel has them, which saves 4,000 page faults for 16 MB. They go back to the system when they are
/// freed. The upper part can go back while a decoder still fills the rest: libwebp requires an output as large as the
/// image.
package struct ScratchMemory: ~Copyable {
    private enum Origin {
        case heap
        case pool(UnsafeMutableRawBufferPointer)
        case mapping
    }

    /// The memory, 16-byte aligned.
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

    /// Memory for `count` bytes, for sizes that a file determines.
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
            return (cleared(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])), .pool(buffer))
        }
        return (cleared(.allocate(byteCount: count, alignment: BufferPool.alignment)), .heap)
    }

    /// Clears memory of an earlier owner. Every image writes it next, so it is in the processor's caches then.
    private static func cleared(_ bytes: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        return bytes
    }

    /// Returns the whole huge pages among the first `count` bytes of a large block to the system. Their content is
    /// lost.
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

/// Recently freed buffers of medium size, kept for the next image.
///
/// Thumbnails need the same few buffers again and again. Freed by `malloc` between two images, they would return to
/// the system. Mapping and clearing their pages for the next image takes a quarter of the time of a small thumbnail.
///
/// The pool never holds more than ``maximumByteCount`` bytes in ``maximumCount`` buffers, and frees the oldest first.
/// Buffers keep their content. Memory pressure of any level empties the pool and pauses it until the next allocation,
/// so that memory freed meanwhile returns to the system. Can be used from any thread.
package final class BufferPool: Sendable {
    /// The sizes that are kept. `malloc` keeps smaller blocks itself; larger ones have a mapping of their own.
    package static let byteCounts = (64 << 10)...(4 << 20)
    /// The most bytes kept altogether.
    package static let maximumByteCount = 4 << 20
    /// The most buffers kept.
    package static let maximumCount = 8

    /// The pool of all images of the process, emptied by the system's memory pressure.
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
    /// - Parameter pressure: The source of reports that empty the pool; nil for none.
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

    /// Returns memory for at least `count` bytes (at most an eighth more), 16-byte aligned, with any content. Release
    /// it by ``give(_:)``.
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

    /// Frees all buffers, and those given back before the next allocation.
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

    /// The alignment of `malloc`. A larger one would need the aligned allocator, whose freed blocks glibc before 2.38
    /// hardly ever uses again.
    static let alignment = 16

    /// Removes the best fit; of several the one freed last, whose content is most likely in the processor's caches.
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

    /// Lets `malloc` keep the memory of codecs between two images.
    ///
    /// glibc returns a free top of its heap above 128 KB to the system. After a larger block has been freed, the
    /// threshold is twice that block's size (mallopt(3), M_MMAP_THRESHOLD, "dynamic mmap threshold"), unless the
    /// program or its environment has set it. Any image of medium size has this effect, here even the first.
    private static func letHeapKeepItsTop() {
        let block = UnsafeMutableRawPointer.allocate(byteCount: 512 << 10, alignment: alignment)
        block.storeBytes(of: 0, as: UInt8.self)
        block.deallocate()
    }
}
