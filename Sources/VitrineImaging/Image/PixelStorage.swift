/// The memory behind an ``Image`` or a ``PixelPlane``: allocated once, freed with its last owner.
///
/// Unchecked because it holds a raw pointer: the bytes are written only while a single owner can see the storage
/// (during initialisation, or after `isKnownUniquelyReferenced` said so) and are read-only from then on.
public final class PixelStorage: @unchecked Sendable {
    package let bytes: UnsafeMutableRawBufferPointer
    private let release: (@Sendable (UnsafeMutableRawBufferPointer) -> Void)?

    /// Memory for `count` bytes, 64-byte aligned, not initialised.
    package init(uninitializedByteCount count: Int) {
        precondition(count >= 0, "a pixel buffer cannot have a negative size")
        bytes = .allocate(byteCount: count, alignment: 64)
        release = nil
    }

    /// Memory for `count` bytes, 64-byte aligned, all zero.
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
