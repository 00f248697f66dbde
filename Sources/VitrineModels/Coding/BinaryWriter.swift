/// Writes the properties of a value, without names or types. The schema beside the bytes has those.
///
/// Conformances to ``PersistentRecord`` write their properties one after the other. See there for an example.
public struct BinaryWriter: ~Copyable {
    // Integers are varints (LEB128), zigzag if signed. Other numbers are little endian, text and data counted. Structs
    // and enums are inline. An object is a tag and, the first time, its properties. Tag 0 and a number is an object
    // that was written before, tag 1 and a fingerprint the first object of its class, tag n an object of class n − 2.
    //
    // A writer that cannot write a value keeps the first reason in `failure` and continues. Its bytes are then useless.

    @usableFromInline var base: UnsafeMutableRawPointer
    @usableFromInline var capacity: Int
    /// The number of bytes written.
    @usableFromInline var count = 0
    /// The reason why the bytes are useless; nil if they are valid.
    private(set) var failure: PersistenceError?

    let registry: TypeRegistry
    /// The schemas that a reader of the bytes needs in addition to the schema of the outermost value.
    private(set) var fingerprints: [UInt64] = []
    private var objects = ObjectTable()
    /// The fingerprints of the written classes, in the order of their tags.
    private var classes: [UInt64] = []
    /// Types whose index in `classes` is known.
    private var types: [(type: ObjectIdentifier, index: Int)] = []
    private let depthLimit: Int
    /// The structs and enums that the innermost object can still nest.
    @usableFromInline var levels: Int
    private var nesting: Nesting

    /// Creates a writer.
    ///
    /// - Parameters:
    ///   - registry: The schemas of classes.
    ///   - depthLimit: The largest number of nested records.
    ///   - capacity: The number of bytes to reserve. Default 512.
    init(registry: TypeRegistry, depthLimit: Int = PersistentCoder.defaultDepthLimit, capacity: Int = 512) {
        self.registry = registry
        self.depthLimit = depthLimit
        levels = depthLimit
        nesting = Nesting(limit: depthLimit)
        self.capacity = max(16, capacity)
        base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    /// Creates a writer of bytes that will stand in those of another writer. It shares the limits of that writer.
    init(inside writer: borrowing BinaryWriter) {
        self.init(registry: writer.registry, depthLimit: max(0, writer.levels), capacity: 64)
        nesting = writer.nesting
        nesting.outer += writer.depthLimit - writer.levels + 1
    }

    deinit {
        base.deallocate()
    }

    // MARK: Results

    /// Calls a closure with the bytes written so far.
    borrowing func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: base, count: count))
    }

    /// A copy of the bytes written so far.
    var bytes: [UInt8] { [UInt8](UnsafeRawBufferPointer(start: base, count: count)) }

    /// Marks the bytes as useless. Keeps the first reason.
    mutating func fail(_ error: PersistenceError) {
        if failure == nil { failure = error }
    }

    // MARK: Values

    /// Writes a value.
    @inlinable
    public mutating func write<Value: PersistentValue>(_ value: Value) { value._persist(to: &self) }

    /// Writes the number of an enum's case, before the payload of the case.
    ///
    /// - Parameter number: The position of the case in the description of the enum, from 0.
    @inlinable
    public mutating func write(case number: Int) { write(unsigned: UInt64(truncatingIfNeeded: number)) }

    // MARK: Numbers and bytes

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
    mutating func write(byte: UInt8) {
        reserve(1)
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count = count &+ 1
    }

    /// Writes a number with seven bits a byte, the lowest bits first (LEB128).
    @inlinable
    mutating func write(unsigned value: UInt64) {
        reserve(10)
        var rest = value
        var offset = count
        while rest >= 0x80 {
            base.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: offset, as: UInt8.self)
            offset &+= 1
            rest &>>= 7
        }
        base.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: offset, as: UInt8.self)
        count = offset &+ 1
    }

    /// Writes a number of either sign (zigzag), a small one in few bytes.
    @inlinable
    mutating func write(signed value: Int64) {
        write(unsigned: UInt64(bitPattern: (value &<< 1) ^ (value &>> 63)))
    }

    /// Writes 8 bytes in little endian.
    @inlinable
    mutating func write(word: UInt64) {
        reserve(8)
        base.storeBytes(of: word.littleEndian, toByteOffset: count, as: UInt64.self)
        count = count &+ 8
    }

    /// Writes 4 bytes in little endian.
    @inlinable
    mutating func write(halfWord: UInt32) {
        reserve(4)
        base.storeBytes(of: halfWord.littleEndian, toByteOffset: count, as: UInt32.self)
        count = count &+ 4
    }

    /// Writes bytes.
    @inlinable
    mutating func write(bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
        reserve(bytes.count)
        (base + count).copyMemory(from: start, byteCount: bytes.count)
        count = count &+ bytes.count
    }

    /// Writes the number of bytes, then the bytes.
    @inlinable
    mutating func write(counted bytes: UnsafeRawBufferPointer) {
        write(unsigned: UInt64(bytes.count))
        write(bytes: bytes)
    }

    // MARK: Records and objects

    /// Begins a nested record.
    ///
    /// - Returns: false if the nesting is too deep.
    @inlinable
    mutating func enter() -> Bool {
        levels &-= 1
        if levels >= 0 { return true }
        failTooDeep()
        return false
    }

    /// Ends a record.
    @inlinable
    mutating func leave() { levels &+= 1 }

    @usableFromInline @inline(never)
    mutating func failTooDeep() {
        levels &+= 1
        fail(.tooDeep(limit: depthLimit))
    }

    /// Writes the tag of an object.
    ///
    /// - Returns: Whether the properties must follow, in ``insideObject(_:)``.
    @usableFromInline
    mutating func beginObject(_ object: AnyObject, type: any PersistentObject.Type) -> Bool {
        guard !writeReference(object) else { return false }
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
            return false
        }
    }

    /// Runs a closure that writes the properties of an object, which can lead to further objects without a limit.
    @usableFromInline
    mutating func insideObject(_ body: (inout BinaryWriter) -> Void) {
        let (outer, outerLevels) = (nesting, levels)
        nesting.outer += depthLimit - levels + 1
        levels = depthLimit
        if nesting.isFull { onLargeStack(body) } else { body(&self) }
        (nesting, levels) = (outer, outerLevels)
    }

    @inline(never)
    private mutating func onLargeStack(_ body: (inout BinaryWriter) -> Void) {
        nesting.outer = 0
        nesting.capacity = LargeStack.levels
        if !LargeStack.run(limit: depthLimit, { body(&self) }) { fail(.tooDeep(limit: depthLimit)) }
    }

    /// Writes the tag of untyped data of the class with this schema.
    mutating func beginObject(_ object: AnyObject, fingerprint: UInt64) -> Bool {
        guard !writeReference(object) else { return false }
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

    /// - Returns: The index of the class in the order of tags.
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

    /// Adds a schema that a reader of the bytes needs.
    mutating func need(_ fingerprint: UInt64) {
        if !fingerprints.contains(fingerprint) { fingerprints.append(fingerprint) }
    }
}

/// Numbers objects by identity, in the order in which they are added. A hash table with open addressing.
///
/// The table retains the objects, so that no address is used again while the table has it.
private struct ObjectTable {
    private var objects: [AnyObject] = []
    /// Addresses, 0 for a free slot. The count is a power of two.
    private var addresses: [UInt] = []
    private var numbers: [UInt32] = []

    /// Assigns the next number to a new object.
    ///
    /// - Returns: The number of an object that is known; nil for a new one.
    mutating func insert(_ object: AnyObject) -> Int? {
        if objects.count * 2 >= addresses.count { grow() }
        let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
        let place = place(of: address)
        if addresses[place] != 0 { return Int(numbers[place]) }
        addresses[place] = address
        numbers[place] = UInt32(truncatingIfNeeded: objects.count)
        objects.append(object)
        return nil
    }

    private func place(of address: UInt) -> Int {
        let mask = addresses.count - 1
        // The low bits of addresses are always 0; the product's middle bits depend on all others.
        var place = Int(truncatingIfNeeded: (UInt64(address) >> 4) &* 0x9E37_79B9_7F4A_7C15 >> 32) & mask
        while addresses[place] != 0, addresses[place] != address { place = (place + 1) & mask }
        return place
    }

    private mutating func grow() {
        let size = max(16, addresses.count * 2)
        addresses = [UInt](repeating: 0, count: size)
        numbers = [UInt32](repeating: 0, count: size)
        for (number, object) in objects.enumerated() {
            let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
            let place = place(of: address)
            addresses[place] = address
            numbers[place] = UInt32(truncatingIfNeeded: number)
        }
    }
}
