// The parts of the C library that the adapters use. Strings are pointers, because the retargeted standard library cannot
// convert them.
@discardableResult
public func unlink(_ path: String) -> Int32 { 0 }
