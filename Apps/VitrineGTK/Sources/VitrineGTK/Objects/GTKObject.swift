import CGTK

/// A strong reference to a GObject, given back on the main actor.
///
/// Most of GTK's types are opaque to Swift and cannot be extended; subclasses of this stand for them. Those that take a
/// pointer accept objects of any other binding.
@MainActor
open class GTKObject {
    /// The object.
    public let raw: UnsafeMutableRawPointer
    private var isOwner = true

    /// Takes the floating reference of a new widget, or one more to an object that somebody owns.
    public init(sinking pointer: some GTKPointer) {
        raw = pointer.rawPointer
        g_object_ref_sink(raw)
    }

    /// Takes over a reference that the caller owns.
    public init(owning pointer: some GTKPointer) { raw = pointer.rawPointer }

    isolated deinit { if isOwner { g_object_unref(raw) } }

    /// The object, for calls that take an opaque type.
    public var opaque: OpaquePointer { OpaquePointer(raw) }

    /// Gives the reference back early: for one that the object itself owns, as each would keep the other.
    func becomeUnowned() {
        guard isOwner else { return }
        isOwner = false
        g_object_unref(raw)
    }

    /// Something in Swift that lives as long as the object, made when it is first asked for.
    public func attached<Value: AnyObject>(_ name: String, make: () -> Value) -> Value {
        if let known: Value = Self.attached(name, to: raw) { return known }
        let new = make()
        attach(new, as: name)
        return new
    }

    /// Lets something live as long as the object.
    public func attach(_ value: AnyObject, as name: String) {
        let release: GDestroyNotify = { Unmanaged<AnyObject>.fromOpaque($0!).release() }
        g_object_set_data_full(
            raw.assumingMemoryBound(to: GObject.self), name, Unmanaged.passRetained(value).toOpaque(), release)
    }

    /// What lives with an object under a name; nil for nothing.
    static func attached<Value: AnyObject>(_ name: String, to object: UnsafeMutableRawPointer) -> Value? {
        guard let data = g_object_get_data(object.assumingMemoryBound(to: GObject.self), name) else { return nil }
        return Unmanaged<AnyObject>.fromOpaque(data).takeUnretainedValue() as? Value
    }
}

/// A pointer to a GObject, as the importer gives it: typed, opaque or raw.
public protocol GTKPointer {
    /// Its address.
    var rawPointer: UnsafeMutableRawPointer { get }
}

extension OpaquePointer: GTKPointer {
    public var rawPointer: UnsafeMutableRawPointer { UnsafeMutableRawPointer(self) }
}

extension UnsafeMutablePointer: GTKPointer {
    public var rawPointer: UnsafeMutableRawPointer { UnsafeMutableRawPointer(self) }
}

extension UnsafeMutableRawPointer: GTKPointer {
    public var rawPointer: UnsafeMutableRawPointer { self }
}
