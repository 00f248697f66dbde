/// How many lookups found something and how many nothing.
@usableFromInline
package struct LookupTally: Sendable {
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0

    /// Nothing was looked up.
    @usableFromInline
    init() {}
}
