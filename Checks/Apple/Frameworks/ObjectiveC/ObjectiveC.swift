// Associated objects without the Objective-C runtime. They are found by address. A deallocated owner has none, because
// addresses are reused.
public enum objc_AssociationPolicy: UInt, Sendable {
    case OBJC_ASSOCIATION_ASSIGN = 0, OBJC_ASSOCIATION_RETAIN_NONATOMIC = 1
}

private struct Slot: Hashable {
    let owner: ObjectIdentifier
    let key: UnsafeRawPointer
}

private struct Entry {
    weak var owner: AnyObject?
    let value: AnyObject
}

nonisolated(unsafe) private var table: [Slot: Entry] = [:]

public func objc_getAssociatedObject(_ owner: AnyObject, _ key: UnsafeRawPointer) -> Any? {
    let entry = table[Slot(owner: ObjectIdentifier(owner), key: key)]
    return entry?.owner === owner ? entry?.value : nil
}

public func objc_setAssociatedObject(
    _ owner: AnyObject, _ key: UnsafeRawPointer, _ value: Any?, _ policy: objc_AssociationPolicy
) {
    table[Slot(owner: ObjectIdentifier(owner), key: key)] = value.map { Entry(owner: owner, value: $0 as AnyObject) }
}

/// For tests: releases the objects of deallocated owners, as the runtime does automatically.
public func stubSweepAssociatedObjects() { table = table.filter { $0.value.owner != nil } }
