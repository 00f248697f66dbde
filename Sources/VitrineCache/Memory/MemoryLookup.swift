/// What looking a key up has led to.
@usableFromInline
package enum MemoryLookup<Value: Sendable>: Sendable {
    /// The value, which counts.
    case found(Value)
    /// No entry, or one known to be expired.
    case missing
    /// Its lifetime is over and was not known to be: to be looked up again by who may change things.
    case ended
}
