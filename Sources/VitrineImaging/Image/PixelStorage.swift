/// The memory behind an ``Image`` or a ``PixelPlane``: allocated once, freed with its last owner.
///
/// Unchecked because it holds a raw pointer: the bytes are written only while a single owner can see the storage
/// (during initialisation, or after `isKnownUniquelyReferenced` said so) and are read-only from then on.
public final class PixelStorage: @unchecked Sendable {
    package let bytes: UnsafeMutableRawBufferPointer
    private let release: (@Sendable (UnsafeMutableRawBufferPointer) -> Void)?

    /// Alignment that `malloc` gives by itself. Asking for more would take the aligned allocator, whose freed blocks
    /// glibc before 2.38 hardly ever uses again: memory then grows with every picture.
    private static let alignment = 16

    /// Memory for `count` bytes, 16-byte aligned, not initialised.
    package init(uninitializedByteCount count: Int) {
        precondition(count >= 0, "a pixel buffer cannot have a negative size")
        #if os(Linux)
        if count >= HugePages.minimumByteCount, let mapping = HugePages.map(count) {
            bytes = mapping
            release = HugePages.unmap
            return
        }
        #endif
        release = nil
        bytes = .allocate(byteCount: count, alignment: Self.alignment)
    }

    /// Memory for `count` bytes, 16-byte aligned, all zero.
    package convenience init(zeroedByteCount count: Int) {
        self.init(uninitializedByteCount: count)
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
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
        self.release = release
    }

    /// Bytes held.
    public var count: Int { bytes.count }

    /// Read access to the bytes for the duration of `body`.
    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try body(UnsafeRawBufferPointer(bytes))
    }

    deinit {
        if let release { release(bytes) } else { bytes.deallocate() }
    }
}
