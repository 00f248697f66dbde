// The parts of this module that the adapters use.
import VitrineCache

public final class LazyValue<Value: Sendable>: Sendable {
    public var value: Value { get async throws(CacheError) { fatalError("a declaration") } }
}
