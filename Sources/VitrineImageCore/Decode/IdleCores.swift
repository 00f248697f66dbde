import VitrineCore

/// The processors that nothing else in this process uses, for decodes that can use more than one.
///
/// Every decode counts as one busy processor while it runs. A decode of a large image may claim those that are idle.
/// With as many decodes as processors, each runs on one thread. Work of other processes is not counted.
package final class IdleCores: Sendable {
    /// The processors of this process. Workers have none to claim, because the host starts several of them.
    package static let shared = IdleCores()

    /// The most threads of one decode.
    package static let maximumThreads = 8

    private struct State {
        var count: Int
        var decodes = 0
        var claimed = 0
    }

    private let state: Locked<State>
    /// The threads of claimed processors.
    private let executor: BlockingExecutor

    /// - Parameter count: The number of processors.
    package init(count: Int = ProcessorCount.active) {
        state = Locked(State(count: count))
        executor = BlockingExecutor(threads: max(1, count), name: "vitrine-idle")
    }

    /// Sets the number of processors. With 1, nothing can be claimed.
    package func limit(to count: Int) { state.withLock { $0.count = count } }

    /// Runs a decode on the calling thread, and counts it meanwhile.
    package func counting<R>(_ decode: () throws(ImageError) -> R) throws(ImageError) -> R {
        state.withLock { $0.decodes += 1 }
        defer { state.withLock { $0.decodes -= 1 } }
        return try decode()
    }

    /// Claims idle processors beside that of the calling thread.
    ///
    /// - Parameter wanted: The most that the caller can use.
    /// - Returns: How many it may use until it calls ``release(_:)``; 0 if other decodes run on all of them.
    package func claim(_ wanted: Int) -> Int {
        state.withLock { state in
            let idle = state.count - max(1, state.decodes) - state.claimed
            let granted = max(0, min(wanted, Self.maximumThreads - 1, idle))
            state.claimed += granted
            return granted
        }
    }

    /// Gives back claimed processors.
    package func release(_ count: Int) { state.withLock { $0.claimed -= count } }

    /// Runs work on a claimed processor.
    package func run(_ work: @escaping @Sendable () -> Void) { executor.submit(work) }
}
