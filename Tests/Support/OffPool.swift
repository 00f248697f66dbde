internal import VitrineCore

/// Runs a test that blocks on a thread of its own, so that tests that await are not held up.
package func offPool<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    let executor = BlockingExecutor(threads: 1, name: "reliability")
    return try await executor.run { () throws(any Error) in try body() }
}
