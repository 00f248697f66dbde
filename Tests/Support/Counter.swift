import Synchronization

/// A number that any thread may count up.
package final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    package init() {}

    package var value: Int { count.load(ordering: .sequentiallyConsistent) }

    @discardableResult
    package func add(_ number: Int) -> Int { count.wrappingAdd(number, ordering: .sequentiallyConsistent).newValue }

    package func raise(to number: Int) { count.max(number, ordering: .sequentiallyConsistent) }
}
