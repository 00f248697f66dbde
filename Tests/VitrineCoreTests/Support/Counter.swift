import Synchronization

/// A number that any thread may count up.
final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }

    @discardableResult
    func add(_ number: Int) -> Int { count.wrappingAdd(number, ordering: .sequentiallyConsistent).newValue }

    func raise(to number: Int) { count.max(number, ordering: .sequentiallyConsistent) }
}
