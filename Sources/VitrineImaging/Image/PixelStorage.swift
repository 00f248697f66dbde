import Synchronization

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
