#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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
