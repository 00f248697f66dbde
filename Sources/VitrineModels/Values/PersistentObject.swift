/// A class whose instances are stored: each once, however many refer to it, and as what it is, also where a property
/// has the type of a superclass.
///
/// Equality, hash, copy and description follow from what is stored; see ``PersistentObject/==(_:_:)`` and
/// ``PersistentRecord/persistentCopy(by:)``.
///
/// By hand, the initializer of a root class reads what it cannot do without, then calls
/// ``BinaryReader/register(_:)`` with `self`, and then reads the rest: only properties of the rest can lead back to the
/// object, and they are described as `late`.
public protocol PersistentObject: PersistentRecord, CustomStringConvertible, AnyObject {
    /// Whether all stored properties, also those of superclasses, are equal.
    ///
    /// - Parameter other: An object of exactly the same class.
    func persistentEquals(_ other: AnyObject) -> Bool
    /// Feeds all stored properties, also those of superclasses.
    func persistentHash(into hasher: inout Hasher)
}

extension PersistentObject {
    public static func persistentType(in schema: inout SchemaBuilder) -> ValueType {
        schema.mention(Self.self)
        return .object(persistentName)
    }

    public var persistentDynamicType: any PersistentValue.Type { type(of: self) }

    @inlinable
    public func persist(to writer: inout BinaryWriter) {
        guard writer.beginObject(self, type: type(of: self)) else { return }
        persistProperties(to: &writer)
        writer.leave()
    }

    @inlinable
    public static func restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        try reader.object(Self.self)
    }

    /// Whether two objects are of the same class with equal stored properties. Objects that lead back to themselves
    /// are equal if no difference can be found by following their properties.
    public static func == (first: Self, second: Self) -> Bool {
        if first === second { return true }
        guard type(of: first) == type(of: second) else { return false }
        return ObjectWalk.comparing(first, second) { first.persistentEquals(second) }
    }

    /// Feeds the class and the stored properties; objects inside are fed by their class only, so that equal graphs
    /// have equal hashes whatever their cycles.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(type(of: self)))
        ObjectWalk.hashing { persistentHash(into: &hasher) }
    }
}
