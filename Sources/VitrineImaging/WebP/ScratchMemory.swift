#if LibWebP
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Memory that a decoder fills from the top and whose upper part can be given back while it works.
///
/// libwebp insists on an output as large as the picture. The system hands out memory only where it is touched, so
/// returning what has been consumed keeps the resident part at a few megabytes however large the picture is.
struct ScratchMemory: ~Copyable {
    let bytes: UnsafeMutableRawBufferPointer
    private let isMapped: Bool
    private var released = 0

    /// Released in steps of the size of a huge page: with those, a picture costs a handful of page faults, not
    /// thousands.
    private static let granule = 2 << 20

    /// Memory for `count` bytes with undefined content.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when the system refuses.
    init(byteCount count: Int, input: String) throws(ImageError) {
        guard count > 2 * ScratchMemory.granule else {
            bytes = .allocate(byteCount: count, alignment: 16)
            isMapped = false
            return
        }
        #if os(Linux)
        let flags = MAP_PRIVATE | MAP_ANONYMOUS
        #else
        let flags = MAP_PRIVATE | MAP_ANON
        #endif
        guard let address = mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0), address != MAP_FAILED else {
            throw .limitExceeded(input: input, limit: .memory, actual: count, allowed: 0)
        }
        #if os(Linux)
        madvise(address, count, MADV_HUGEPAGE)
        #endif
        bytes = UnsafeMutableRawBufferPointer(start: address, count: count)
        isMapped = true
    }

    /// Gives back the first `count` bytes, as far as they are whole granules; their content is lost.
    mutating func release(upTo count: Int) {
        guard isMapped, let base = bytes.baseAddress else { return }
        let address = UInt(bitPattern: base)
        let mask = UInt(ScratchMemory.granule - 1)
        let end = (address + UInt(min(count, bytes.count))) & ~mask
        let start = (address + UInt(released) + mask) & ~mask
        guard end > start else { return }
        madvise(UnsafeMutableRawPointer(bitPattern: start), Int(end - start), MADV_DONTNEED)
        released = Int(end - address)
    }

    deinit {
        if isMapped { munmap(bytes.baseAddress, bytes.count) } else { bytes.deallocate() }
    }
}
#endif
