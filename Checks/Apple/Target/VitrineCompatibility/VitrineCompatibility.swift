// The parts of this module that its source for Apple's platforms uses.
import VitrineCache

public final class LazyValue<Value: Sendable>: Sendable {
    public var value: Value { get async throws(CacheError) { fatalError("a declaration") } }
}
