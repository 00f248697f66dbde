/// Writes values one after the other, without names or types: the schema beside the bytes has them.
///
/// - Integers are varints (LEB128), signed ones zigzag; other numbers little endian; text and data counted.
/// - Structs and enums are inline. An object is a tag and, the first time, its properties: tag 0 and a number for an
///   object written before, tag 1 and a fingerprint for the first of its class, tag n for one of class n − 2.
///
/// A writer that cannot write something remembers the first reason in ``failure`` and goes on; the bytes are then of
/// no use.
public struct BinaryWriter: ~Copyable {
    @usableFromInline var base: UnsafeMutableRawPointer
    @usableFromInline var capacity: Int
    /// How many bytes were written.
    public private(set) var count = 0
    /// Why the bytes are of no use; nil while they are.
    public private(set) var failure: PersistenceError?

    let registry: TypeRegistry
    /// The schemas a reader of the bytes will need, beside that of the outermost value.
    private(set) var fingerprints: [UInt64] = []
    private var objects = ObjectTable()
    /// The fingerprints of the classes written, in the order of their tags.
    private var classes: [UInt64] = []
    /// Types whose place in that order is known.
    private var types: [(type: ObjectIdentifier, index: Int)] = []
    private let depthLimit: Int
    @usableFromInline var levels: Int

    /// A writer.
    ///
    /// - Parameters:
    ///   - registry: Where classes have their schemas from.
    ///   - depthLimit: How many records may be inside one another.
    ///   - capacity: Bytes to make room for at first. Default 512.
    public init(registry: TypeRegistry, depthLimit: Int = PersistentCoder.defaultDepthLimit, capacity: Int = 512) {
        self.registry = registry
        self.depthLimit = depthLimit
        levels = depthLimit
        self.capacity = max(16, capacity)
        base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    deinit {
        base.deallocate()
    }

    // MARK: Results

    /// Lends the bytes written so far.
    public borrowing func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: base, count: count))
    }

    /// A copy of the bytes written so far.
    public var bytes: [UInt8] { [UInt8](UnsafeRawBufferPointer(start: base, count: count)) }

    /// Makes the bytes of no use, if they are not yet.
    public mutating func fail(_ error: PersistenceError) {
        if failure == nil { failure = error }
    }

    // MARK: Numbers and bytes

    @usableFromInline
    mutating func setCount(_ value: Int) { count = value }

    @inlinable @inline(__always)
    mutating func reserve(_ additional: Int) {
        if capacity &- count < additional { grow(additional) }
    }

    @usableFromInline @inline(never)
    mutating func grow(_ additional: Int) {
        let larger = max(capacity * 2, count + additional)
        let copy = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        copy.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = copy
        capacity = larger
    }

    /// Writes one byte.
    @inlinable
    public mutating func write(byte: UInt8) {
        reserve(1)
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        setCount(count &+ 1)
    }

    /// Writes seven bits a byte, the lowest first (LEB128).
    @inlinable
    public mutating func write(unsigned value: UInt64) {
        reserve(10)
        var rest = value
        var offset = count
        while rest >= 0x80 {
            base.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: offset, as: UInt8.self)
            offset &+= 1
            rest &>>= 7
        }
        base.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: offset, as: UInt8.self)
        setCount(offset &+ 1)
    }

    /// Writes small numbers of either sign in few bytes (zigzag).
    @inlinable
    public mutating func write(signed value: Int64) {
        write(unsigned: UInt64(bitPattern: (value &<< 1) ^ (value &>> 63)))
    }

    /// Writes 8 bytes in little endian.
    @inlinable
    public mutating func write(word: UInt64) {
        reserve(8)
        base.storeBytes(of: word.littleEndian, toByteOffset: count, as: UInt64.self)
        setCount(count &+ 8)
    }

    /// Writes 4 bytes in little endian.
    @inlinable
    public mutating func write(halfWord: UInt32) {
        reserve(4)
        base.storeBytes(of: halfWord.littleEndian, toByteOffset: count, as: UInt32.self)
        setCount(count &+ 4)
    }

    /// Writes bytes as they are.
    @inlinable
    public mutating func write(bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
        reserve(bytes.count)
        (base + count).copyMemory(from: start, byteCount: bytes.count)
        setCount(count &+ bytes.count)
    }

    /// Writes bytes after their number.
    @inlinable
    public mutating func write(counted bytes: UnsafeRawBufferPointer) {
        write(unsigned: UInt64(bytes.count))
        write(bytes: bytes)
    }

    // MARK: Records and objects

    /// Begins a record inside the ones begun.
    ///
    /// - Returns: false if it would be too deep.
    @inlinable
    public mutating func enter() -> Bool {
        levels &-= 1
        if levels >= 0 { return true }
        failTooDeep()
        return false
    }

    /// Ends a record.
    @inlinable
    public mutating func leave() { levels &+= 1 }

    @usableFromInline @inline(never)
    mutating func failTooDeep() {
        levels &+= 1
        fail(.tooDeep(limit: depthLimit))
    }

    /// Writes an object's tag.
    ///
    /// - Returns: Whether its properties must follow, and ``leave()``.
    @usableFromInline
    mutating func beginObject(_ object: AnyObject, type: any PersistentObject.Type) -> Bool {
        guard !writeReference(object), enter() else { return false }
        let identifier = ObjectIdentifier(type)
        if let known = types.first(where: { $0.type == identifier }) {
            write(unsigned: UInt64(known.index + 2))
            return true
        }
        do throws(PersistenceError) {
            types.append((identifier, writeClass(try registry.schema(of: type).fingerprint)))
            return true
        } catch {
            fail(error)
            leave()
            return false
        }
    }

    /// The same for what stands for an object of the class with this schema.
    mutating func beginObject(_ object: AnyObject, fingerprint: UInt64) -> Bool {
        guard !writeReference(object), enter() else { return false }
        _ = writeClass(fingerprint)
        return true
    }

    /// - Returns: false if the object was not written before.
    private mutating func writeReference(_ object: AnyObject) -> Bool {
        guard let known = objects.insert(object) else { return false }
        write(byte: 0)
        write(unsigned: UInt64(known))
        return true
    }

    /// - Returns: The class's place in the order of tags.
    private mutating func writeClass(_ fingerprint: UInt64) -> Int {
        if let index = classes.firstIndex(of: fingerprint) {
            write(unsigned: UInt64(index + 2))
            return index
        }
        classes.append(fingerprint)
        need(fingerprint)
        write(byte: 1)
        write(word: fingerprint)
        return classes.count - 1
    }

    /// A reader will need this schema as well.
    mutating func need(_ fingerprint: UInt64) {
        if !fingerprints.contains(fingerprint) { fingerprints.append(fingerprint) }
    }
}
