// The parts of this module that the adapters use. The module itself needs a C library, which does not exist for Apple's
// platforms on Linux. If a declaration differs from the module, the adapters do not compile in the other check.
import Synchronization

public enum RequestPriority: Int, Sendable, Comparable {
    case veryLow, low, normal, high, veryHigh
    public static func < (one: RequestPriority, other: RequestPriority) -> Bool { one.rawValue < other.rawValue }
}

public struct CacheKey: Hashable, Sendable, ExpressibleByStringLiteral {
    public init(_ text: String) {}
    public init(stringLiteral value: String) {}
}

public struct Locked<Value>: ~Copyable, @unchecked Sendable {
    public init(_ value: consuming sending Value) {}
    public borrowing func withLock<R, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R { fatalError("a declaration") }
}

public protocol CacheableValue: Sendable {
    init(cacheBytes: [UInt8]) throws
    func cacheBytes() throws -> [UInt8]
}

public final class MemoryPressure: Sendable {
    public enum Level: Int, Sendable { case warning, critical }
    public static let shared = MemoryPressure()
    public init() {}
    public func send(_ level: Level) {}
}

package final class AsyncPromise<Value: Sendable>: Sendable {
    package init() {}
    package func fulfill(_ value: Value) {}
    package func wait() -> Value { fatalError("a declaration") }
}

public final class BlockingExecutor: Sendable {
    public static let shared = BlockingExecutor()
    public func run<R: Sendable, E: Error>(
        _ body: @escaping @Sendable () throws(E) -> R
    ) async throws(E) -> R { try body() }
}
