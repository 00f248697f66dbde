import CGTK

/// A strong reference to a GObject, which is released on the main actor.
///
/// Most types of GTK are opaque to Swift and cannot be extended, so they have subclasses of this class. Initializers
/// with a pointer accept objects of any other binding.
@MainActor
open class GTKObject {
    /// The object.
    public let raw: UnsafeMutableRawPointer
    private var isOwner = true

    /// Takes the floating reference of a new widget, or adds a reference to an object that has an owner.
    public init(sinking pointer: some GTKPointer) {
        raw = pointer.rawPointer
        g_object_ref_sink(raw)
    }

    /// Takes ownership of a reference of the caller.
    public init(owning pointer: some GTKPointer) { raw = pointer.rawPointer }

    isolated deinit { if isOwner { g_object_unref(raw) } }

    /// The object, for calls that take an opaque type.
    public var opaque: OpaquePointer { OpaquePointer(raw) }

    /// Releases the reference early, to break a cycle with an object that owns this one.
    func becomeUnowned() {
        guard isOwner else { return }
        isOwner = false
        g_object_unref(raw)
    }

    /// Returns a Swift object that lives as long as the GObject. It is created by the first call.
    public func attached<Value: AnyObject>(_ name: String, make: () -> Value) -> Value {
        if let known: Value = Self.attached(name, to: raw) { return known }
        let new = make()
        attach(new, as: name)
        return new
    }

    /// Attaches a Swift object, which then lives as long as the GObject.
    public func attach(_ value: AnyObject, as name: String) {
        let release: GDestroyNotify = { Unmanaged<AnyObject>.fromOpaque($0!).release() }
        g_object_set_data_full(
            raw.assumingMemoryBound(to: GObject.self), name, Unmanaged.passRetained(value).toOpaque(), release)
    }

    /// Returns the Swift object attached under a name; nil for none.
    static func attached<Value: AnyObject>(_ name: String, to object: UnsafeMutableRawPointer) -> Value? {
        guard let data = g_object_get_data(object.assumingMemoryBound(to: GObject.self), name) else { return nil }
        return Unmanaged<AnyObject>.fromOpaque(data).takeUnretainedValue() as? Value
    }
}

/// A pointer to a GObject, as imported from C: typed, opaque or raw.
public protocol GTKPointer {
    /// The address of the object.
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
