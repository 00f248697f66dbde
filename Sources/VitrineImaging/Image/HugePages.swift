#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if os(Linux)
/// Memory of its own for large pictures: given back to the system when it is freed, and in pages of 2 MB where the
/// kernel has them, which saves 4,000 page faults for 16 MB.
enum HugePages {
    /// From here on a mapping is worth its two system calls.
    static let minimumByteCount = 8 << 20
    /// Bytes of a page of the larger size, on x86-64 and on ARM64 with 4 KB pages.
    private static let page = 2 << 20

    /// Zeroed memory aligned to a large page; nil when the system has none left.
    static func map(_ count: Int) -> UnsafeMutableRawBufferPointer? {
        let (total, overflow) = count.addingReportingOverflow(page)
        guard !overflow,
            let start = mmap(nil, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            start != MAP_FAILED
        else { return nil }
        // The parts before and behind the aligned range go back at once.
        let end = start + total
        let aligned = start.alignedUp(toMultipleOf: page)
        let used = aligned + roundedToPages(count)
        if aligned > start { munmap(start, aligned - start) }
        if end > used { munmap(used, end - used) }
        // Advice only: without huge pages the memory works as well.
        madvise(aligned, used - aligned, MADV_HUGEPAGE)
        return UnsafeMutableRawBufferPointer(start: aligned, count: count)
    }

    /// Gives back what ``map(_:)`` gave.
    @Sendable static func unmap(_ bytes: UnsafeMutableRawBufferPointer) {
        munmap(bytes.baseAddress, roundedToPages(bytes.count))
    }

    private static func roundedToPages(_ count: Int) -> Int {
        let small = Int(sysconf(Int32(_SC_PAGESIZE)))
        return (count + small - 1) / small * small
    }
}
#endif
