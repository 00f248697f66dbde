// The toolchain's interface of this module is built on Linux's futexes.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
public struct Mutex<Value: ~Copyable>: ~Copyable {
    public init(_ initialValue: consuming sending Value) { fatalError("a declaration") }
    public borrowing func withLock<R: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R { fatalError("a declaration") }
}
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Mutex: @unchecked Sendable where Value: ~Copyable {}
