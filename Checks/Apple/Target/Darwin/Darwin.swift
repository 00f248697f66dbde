// What of the C library the adapters use. A pointer there; the retargeted standard library cannot pass texts as such.
@discardableResult
public func unlink(_ path: String) -> Int32 { 0 }
