/// Reads what a ``BinaryWriter`` wrote. Nothing is trusted: whatever the bytes are, reading ends, in a value or an
/// error, and allocates no more than a small multiple of their number.
///
/// It reads from memory of the caller's and must not be used after that is gone.
public struct BinaryReader: ~Copyable {
    @usableFromInline let start: UnsafeRawPointer
    @usableFromInline var position: UnsafeRawPointer
    @usableFromInline let end: UnsafeRawPointer
    let registry: TypeRegistry
    private let depthLimit: Int
    @usableFromInline var levels: Int

    private var objects: [AnyObject?] = []
    /// Numbers of objects whose initializers run and have not registered them yet, innermost last.
    private var unregistered: [Int] = []
    private var types: [any PersistentObject.Type] = []

    /// A reader of bytes.
    public init(
        _ bytes: UnsafeRawBufferPointer, registry: TypeRegistry, depthLimit: Int = PersistentCoder.defaultDepthLimit
    ) {
        start = bytes.baseAddress ?? Self.nowhere
        position = start
        end = start + bytes.count
        self.registry = registry
        self.depthLimit = depthLimit
        levels = depthLimit
    }

    /// An address for no bytes.
    private static var nowhere: UnsafeRawPointer {
        UnsafeRawPointer(Unmanaged.passUnretained(TypeRegistry.shared).toOpaque())
    }

    /// How many bytes were read.
    @inlinable public var offset: Int { position - start }
    /// How many bytes are left.
    @inlinable public var remaining: Int { end - position }

    /// Lends the bytes that are left, without reading them.
    var unread: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: position, count: remaining) }

    // MARK: Values

    /// Reads a value of a type, mostly an inferred one.
    @inlinable
    public mutating func read<Value: PersistentValue>(
        _ type: Value.Type = Value.self
    ) throws(PersistenceError) -> Value {
        try Value.restore(from: &self)
    }

    // MARK: Numbers and bytes

    @usableFromInline @inline(never)
    func short() -> PersistenceError { .truncated(offset: offset) }

    /// The error for a number or raw value that a type does not have.
    @usableFromInline @inline(never)
    func outOfRange(_ type: String) -> PersistenceError { .malformed("no \(type) before byte \(offset)") }

    /// Reads one byte.
    @inlinable
    public mutating func readByte() throws(PersistenceError) -> UInt8 {
        guard position < end else { throw short() }
        let byte = position.load(as: UInt8.self)
        position += 1
        return byte
    }

    /// Reads a number as ``BinaryWriter/write(unsigned:)`` wrote it.
    @inlinable
    public mutating func readUnsigned() throws(PersistenceError) -> UInt64 {
        guard position < end else { throw short() }
        let first = position.load(as: UInt8.self)
        guard first >= 0x80 else {
            position += 1
            return UInt64(first)
        }
        return try readLongUnsigned()
    }

    @usableFromInline @inline(never)
    mutating func readLongUnsigned() throws(PersistenceError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            guard position < end else { throw short() }
            let byte = position.load(as: UInt8.self)
            position += 1
            // The tenth byte has one bit to give.
            guard shift < 63 || byte <= 1 else { throw .malformed("a number is too large before byte \(offset)") }
            value |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 { return value }
            shift &+= 7
        }
    }

    /// Reads a number as ``BinaryWriter/write(signed:)`` wrote it.
    @inlinable
    public mutating func readSigned() throws(PersistenceError) -> Int64 {
        let value = try readUnsigned()
        return Int64(bitPattern: value &>> 1) ^ (0 &- Int64(bitPattern: value & 1))
    }

    /// Reads 8 bytes in little endian.
    @inlinable
    public mutating func readWord() throws(PersistenceError) -> UInt64 {
        guard remaining >= 8 else { throw short() }
        let word = position.loadUnaligned(as: UInt64.self)
        position += 8
        return UInt64(littleEndian: word)
    }

    /// Reads 4 bytes in little endian.
    @inlinable
    public mutating func readHalfWord() throws(PersistenceError) -> UInt32 {
        guard remaining >= 4 else { throw short() }
        let word = position.loadUnaligned(as: UInt32.self)
        position += 4
        return UInt32(littleEndian: word)
    }

    /// Reads a number of elements, each of which takes at least one byte.
    @inlinable
    public mutating func readCount() throws(PersistenceError) -> Int {
        let count = try readUnsigned()
        guard count <= UInt64(remaining) else { throw short() }
        return Int(truncatingIfNeeded: count)
    }

    /// Lends so many bytes.
    @inlinable
    public mutating func take(_ count: Int) throws(PersistenceError) -> UnsafeRawBufferPointer {
        guard count >= 0, remaining >= count else { throw short() }
        let bytes = UnsafeRawBufferPointer(start: position, count: count)
        position += count
        return bytes
    }

    /// Lends bytes as ``BinaryWriter/write(counted:)`` wrote them.
    @inlinable
    public mutating func readCounted() throws(PersistenceError) -> UnsafeRawBufferPointer {
        try take(try readCount())
    }

    /// For how many of `count` elements room is made before any is seen: what the bytes that are left can bear out.
    @inlinable
    public func reservation(_ count: Int, stride: Int) -> Int {
        min(count, max(16, remaining &* 4 / max(1, stride)))
    }

    // MARK: Records and objects

    /// Begins a record inside the ones begun.
    @inlinable
    public mutating func enter() throws(PersistenceError) {
        levels &-= 1
        if levels < 0 { throw tooDeep() }
    }

    /// Ends a record.
    @inlinable
    public mutating func leave() { levels &+= 1 }

    @usableFromInline @inline(never)
    func tooDeep() -> PersistenceError { .tooDeep(limit: depthLimit) }

    /// Makes an object known, so that what it leads to can lead back to it. The initializer of a root class calls it
    /// when `self` is whole, before it reads the late properties.
    public mutating func register(_ object: AnyObject) {
        if let number = unregistered.popLast() { objects[number] = object }
    }

    @usableFromInline
    mutating func object<Object: PersistentObject>(_: Object.Type) throws(PersistenceError) -> Object {
        let tag = try readUnsigned()
        if tag == 0 { return try reference() }
        let type = try type(tag)
        let number = objects.count
        objects.append(nil)
        unregistered.append(number)
        try enter()
        let object: Object
        if type == Object.self {
            object = try Object(restoring: &self)
        } else if let subtype = type as? Object.Type {
            object = try subtype.init(restoring: &self)
        } else {
            throw .typeMismatch(path: "", expected: Object.persistentName, found: type.persistentName)
        }
        leave()
        if unregistered.last == number { register(object) }
        return object
    }

    private mutating func reference<Object: PersistentObject>() throws(PersistenceError) -> Object {
        let number = try readUnsigned()
        guard number < UInt64(objects.count) else { throw .malformed("no object \(number) before byte \(offset)") }
        guard let known = objects[Int(number)] else {
            throw .cycleThroughRequiredProperty(type: Object.persistentName)
        }
        guard let object = known as? Object else {
            throw .typeMismatch(path: "", expected: Object.persistentName, found: "\(Swift.type(of: known))")
        }
        return object
    }

    private mutating func type(_ tag: UInt64) throws(PersistenceError) -> any PersistentObject.Type {
        if tag == 1 {
            let fingerprint = try readWord()
            guard let type = registry.objectType(of: fingerprint) else {
                throw .unknownSchema(fingerprint: fingerprint)
            }
            types.append(type)
            return type
        }
        guard tag - 2 < UInt64(types.count) else { throw .malformed("no class \(tag) before byte \(offset)") }
        return types[Int(tag - 2)]
    }
}
