#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A class whose instances are stored.
///
/// An object is stored once, even if several properties refer to it, and is restored as one object. A subclass is
/// restored as itself, also where the property has the type of a superclass.
///
/// Equality, hash, copy and description use the stored properties; see ``PersistentObject/==(_:_:)`` and
/// ``PersistentRecord/persistentCopy(by:)``.
///
/// `@Persistable` generates the conformance. Without the macro, a ``KeyPathObject`` lists its properties, and needs no
/// further code.
///
/// By hand, the initializer of a root class first reads the properties that it requires, then calls
/// ``BinaryReader/register(_:)`` with `self`, then reads the other properties. Only those can refer back to the object.
/// ``RecordBuilder`` describes them as `late`.
public protocol PersistentObject: PersistentRecord, CustomStringConvertible, AnyObject {
    /// Returns whether all stored properties, including those of superclasses, are equal.
    ///
    /// - Parameter other: An object of exactly the same class.
    func persistentEquals(_ other: AnyObject) -> Bool
    /// Hashes all stored properties, including those of superclasses.
    func persistentHash(into hasher: inout Hasher)
}

extension PersistentObject {
    public static func _persistentType(in schema: inout _SchemaBuilder) -> _StoredType {
        schema.mention(Self.self)
        return _StoredType(.object(persistentName))
    }

    public var _persistentDynamicType: any PersistentValue.Type { type(of: self) }

    @inlinable
    public func _persist(to writer: inout BinaryWriter) {
        guard writer.beginObject(self, type: type(of: self)) else { return }
        writer.insideObject { persistProperties(to: &$0) }
    }

    @inlinable
    public static func _restore(from reader: inout BinaryReader) throws(PersistenceError) -> Self {
        try reader.object(Self.self)
    }

    /// Returns whether two objects have the same class and equal stored properties.
    ///
    /// Cyclic objects are equal if no path through their properties leads to a difference.
    public static func == (first: Self, second: Self) -> Bool {
        if first === second { return true }
        guard type(of: first) == type(of: second) else { return false }
        return ObjectWalk.comparing(first, second: second) { first.persistentEquals(second) }
    }

    /// Hashes the class and the stored properties.
    ///
    /// Nested objects contribute only their class, so equal graphs have equal hashes even if they are cyclic.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(type(of: self)))
        ObjectWalk.hashing { persistentHash(into: &hasher) }
    }
}

/// The comparisons and hashes of objects that run on one thread. It stops them at cycles.
private final class ObjectWalk {
    private struct Pair: Hashable {
        let first: ObjectIdentifier
        let second: ObjectIdentifier
    }

    /// Pairs that are being compared or were found equal, in the order in which their comparisons began.
    private var pairs: [Pair] = []
    /// The same pairs, once there are too many for a linear search.
    private var index: Set<Pair> = []
    private var depth = 0
    private var isHashing = false

    /// The largest number of pairs for a linear search.
    private static let fewPairs = 12

    /// The walk of the calling thread.
    private static var current: ObjectWalk {
        if let known = pthread_getspecific(slot) {
            return Unmanaged<ObjectWalk>.fromOpaque(known).takeUnretainedValue()
        }
        let walk = ObjectWalk()
        pthread_setspecific(slot, Unmanaged.passRetained(walk).toOpaque())
        return walk
    }

    private static let slot: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key) { pointer in
            #if canImport(Darwin)
            Unmanaged<ObjectWalk>.fromOpaque(pointer).release()
            #else
            if let pointer { Unmanaged<ObjectWalk>.fromOpaque(pointer).release() }
            #endif
        }
        precondition(code == 0, "no thread-local storage key is available")
        return key
    }()

    /// Runs the comparison of two objects. A pair that is being compared or was found equal counts as equal.
    ///
    /// A comparison that finds a difference discards the pairs found equal during it, which may depend on that pair.
    static func comparing(_ first: AnyObject, second: AnyObject, body: () -> Bool) -> Bool {
        let walk = current
        let pair = Pair(first: ObjectIdentifier(first), second: ObjectIdentifier(second))
        if walk.contains(pair) { return true }
        let begin = walk.pairs.count
        walk.insert(pair)
        walk.depth += 1
        let isEqual = body()
        walk.depth -= 1
        if walk.depth == 0 || !isEqual { walk.forget(from: begin) }
        return isEqual
    }

    private func contains(_ pair: Pair) -> Bool {
        pairs.count > Self.fewPairs ? index.contains(pair) : pairs.contains(pair)
    }

    private func insert(_ pair: Pair) {
        pairs.append(pair)
        if pairs.count == Self.fewPairs + 1 {
            index = Set(pairs)
        } else if pairs.count > Self.fewPairs {
            index.insert(pair)
        }
    }

    private func forget(from begin: Int) {
        if begin <= Self.fewPairs {
            index = []
        } else {
            for pair in pairs[begin...] { index.remove(pair) }
        }
        pairs.removeSubrange(begin...)
    }

    /// Hashes an object's properties, unless the object is nested in one that is being hashed.
    static func hashing(_ body: () -> Void) {
        let walk = current
        guard !walk.isHashing else { return }
        walk.isHashing = true
        defer { walk.isHashing = false }
        body()
    }
}
