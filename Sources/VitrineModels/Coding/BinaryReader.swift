/// Reads the properties of a value that a ``BinaryWriter`` wrote.
///
/// Conformances to ``PersistentRecord`` read their properties in the order in which they write them. See there for an
/// example.
///
/// The bytes are not trusted. Reading arbitrary bytes ends in a value or in an error, and allocates at most a small
/// multiple of their number. While linked objects are read, each of them takes some hundred bytes of stack as well.
public struct BinaryReader: ~Copyable {
    // Points into memory of the caller, which outlives the reader.
    @usableFromInline let start: UnsafeRawPointer
    @usableFromInline var position: UnsafeRawPointer
    @usableFromInline let end: UnsafeRawPointer
    let registry: TypeRegistry
    private let depthLimit: Int
    /// The structs and enums that the innermost object can still nest.
    @usableFromInline var levels: Int
    private var nesting: Nesting

    private var objects: [AnyObject?] = []
    /// The numbers of objects whose initializers have not registered them yet, innermost last.
    private var unregistered: [Int] = []
    private var types: [any PersistentObject.Type] = []

    init(_ bytes: UnsafeRawBufferPointer, registry: TypeRegistry, depthLimit: Int = PersistentCoder.defaultDepthLimit) {
        start = bytes.baseAddress ?? Self.nowhere
        position = start
        end = start + bytes.count
        self.registry = registry
        self.depthLimit = depthLimit
        levels = depthLimit
        nesting = Nesting(limit: depthLimit)
    }

    /// Creates a reader of bytes that stand in those of another reader. It shares the limits of that reader.
    init(_ bytes: UnsafeRawBufferPointer, inside reader: borrowing BinaryReader) {
        self.init(bytes, registry: reader.registry, depthLimit: max(0, reader.levels))
        nesting = reader.nesting
        nesting.outer += reader.depthLimit - reader.levels + 1
    }

    /// The start of an empty buffer.
    private static var nowhere: UnsafeRawPointer {
        UnsafeRawPointer(Unmanaged.passUnretained(TypeRegistry.shared).toOpaque())
    }

    /// The number of bytes read.
    @inlinable var offset: Int { position - start }
    /// The number of bytes left.
    @inlinable var remaining: Int { end - position }

    /// The bytes left. They stay unread.
    var unread: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: position, count: remaining) }

    // MARK: Values

    /// Reads a value. The type is usually inferred.
    @inlinable
    public mutating func read<Value: PersistentValue>(
        _ type: Value.Type = Value.self
    ) throws(PersistenceError) -> Value {
        try Value._restore(from: &self)
    }

    /// Reads the number of an enum's case.
    ///
    /// - Returns: The position of the case in the description of the enum, from 0. Throw
    ///   ``PersistenceError/malformed(_:)`` if the enum has no such case.
    @inlinable
    public mutating func readCase() throws(PersistenceError) -> Int { Int(clamping: try readUnsigned()) }

    // MARK: Numbers and bytes

    @usableFromInline @inline(never)
    func short() -> PersistenceError { .truncated(offset: offset) }

    /// The error for a number that the type does not have.
    @usableFromInline @inline(never)
    func outOfRange(_ type: String) -> PersistenceError { .malformed("invalid \(type) before byte \(offset)") }

    /// The error for a raw value that the type does not have. The reader does not know the property.
    @usableFromInline @inline(never)
    func unknownRawValue(_ type: String) -> PersistenceError {
        .typeMismatch(path: "", expected: type, found: "another value")
    }

    /// Reads one byte.
    @inlinable
    mutating func readByte() throws(PersistenceError) -> UInt8 {
        guard position < end else { throw short() }
        let byte = position.load(as: UInt8.self)
        position += 1
        return byte
    }

    /// Reads a number that ``BinaryWriter/write(unsigned:)`` wrote.
    @inlinable
    mutating func readUnsigned() throws(PersistenceError) -> UInt64 {
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
            // The tenth byte holds one bit of the number.
            guard shift < 63 || byte <= 1 else { throw .malformed("a number is too large before byte \(offset)") }
            value |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 { return value }
            shift &+= 7
        }
    }

    /// Reads a number that ``BinaryWriter/write(signed:)`` wrote.
    @inlinable
    mutating func readSigned() throws(PersistenceError) -> Int64 {
        let value = try readUnsigned()
        return Int64(bitPattern: value &>> 1) ^ (0 &- Int64(bitPattern: value & 1))
    }

    /// Reads 8 bytes in little endian.
    @inlinable
    mutating func readWord() throws(PersistenceError) -> UInt64 {
        guard remaining >= 8 else { throw short() }
        let word = position.loadUnaligned(as: UInt64.self)
        position += 8
        return UInt64(littleEndian: word)
    }

    /// Reads 4 bytes in little endian.
    @inlinable
    mutating func readHalfWord() throws(PersistenceError) -> UInt32 {
        guard remaining >= 4 else { throw short() }
        let word = position.loadUnaligned(as: UInt32.self)
        position += 4
        return UInt32(littleEndian: word)
    }

    /// Reads a number of elements. Each takes at least one byte.
    @inlinable
    mutating func readCount() throws(PersistenceError) -> Int {
        let count = try readUnsigned()
        guard count <= UInt64(remaining) else { throw short() }
        return Int(truncatingIfNeeded: count)
    }

    /// Reads a number of bytes, without a copy.
    @inlinable
    mutating func take(_ count: Int) throws(PersistenceError) -> UnsafeRawBufferPointer {
        guard count >= 0, remaining >= count else { throw short() }
        let bytes = UnsafeRawBufferPointer(start: position, count: count)
        position += count
        return bytes
    }

    /// Reads bytes that ``BinaryWriter/write(counted:)`` wrote, without a copy.
    @inlinable
    mutating func readCounted() throws(PersistenceError) -> UnsafeRawBufferPointer {
        try take(try readCount())
    }

    /// Returns the number of elements, at most `count`, to reserve memory for. The bytes left limit it.
    @inlinable
    func reservation(_ count: Int, stride: Int) -> Int {
        min(count, max(16, remaining &* 4 / max(1, stride)))
    }

    // MARK: Records and objects

    /// Begins a nested record.
    @inlinable
    mutating func enter() throws(PersistenceError) {
        levels &-= 1
        if levels < 0 { throw tooDeep() }
    }

    /// Ends a record.
    @inlinable
    mutating func leave() { levels &+= 1 }

    @usableFromInline @inline(never)
    func tooDeep() -> PersistenceError { .tooDeep(limit: depthLimit) }

    /// Registers an object, so that objects it refers to can refer back to it.
    ///
    /// The initializer of a root class calls it when all required properties are set, before it reads the late ones.
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
        guard let subtype = type == Object.self ? Object.self : type as? Object.Type else {
            throw .typeMismatch(path: "", expected: Object.persistentName, found: type.persistentName)
        }
        let object = try insideObject { reader throws(PersistenceError) in try subtype.init(restoring: &reader) }
        if unregistered.last == number { register(object) }
        return object
    }

    /// Runs a closure that reads the properties of an object, which can lead to further objects without a limit.
    @inline(__always)
    mutating func insideObject<Result>(
        _ body: (inout BinaryReader) throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result {
        let (outer, outerLevels) = (nesting, levels)
        nesting.outer += depthLimit - levels + 1
        levels = depthLimit
        defer { (nesting, levels) = (outer, outerLevels) }
        return nesting.isFull ? try onLargeStack(body) : try body(&self)
    }

    @inline(never)
    private mutating func onLargeStack<Value>(
        _ body: (inout BinaryReader) throws(PersistenceError) -> Value
    ) throws(PersistenceError) -> Value {
        nesting.outer = 0
        nesting.capacity = LargeStack.levels
        var result: Result<Value, PersistenceError>?
        let hasRun = LargeStack.run(limit: depthLimit) {
            do throws(PersistenceError) {
                result = .success(try body(&self))
            } catch {
                result = .failure(error)
            }
        }
        guard hasRun, let result else { throw tooDeep() }
        return try result.get()
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
