import Foundation
import TestSupport
import Testing
import VitrineCompatibility
import VitrineCore
import VitrineImaging
import VitrineStores

/// Work that nobody wants any more.
@Suite struct StoreCancellationTests {
    private let temporary: TemporaryDirectory

    init() throws { temporary = try TemporaryDirectory() }

    /// Cancels work that waits for a thread, and gives its outcome.
    private func cancelled(
        _ work: @escaping @Sendable (BlockingExecutor) async throws -> Void
    ) async -> (any Error)? {
        let executor = BlockingExecutor(threads: 1, name: "one")
        let release = DispatchSemaphore(value: 0)
        executor.submit { release.wait() }
        let started = Gate()
        let task = Task {
            started.open()
            try await work(executor)
        }
        await started.wait()
        task.cancel()
        release.signal()
        do {
            try await task.value
            return nil
        } catch {
            return error
        }
    }

    private func isCancellation(_ error: (any Error)?, _ name: String) -> Bool {
        if case .cancelled(name)? = error as? StoreError { true } else { false }
    }

    @Test func filesAreNotSavedDeletedOrRenamed() async throws {
        let path = temporary.path
        let store = FileStore(.root(path), path: ["s"], durability: .relaxed)
        try await store.save([1], as: "a")
        @Sendable func on(_ executor: BlockingExecutor) -> FileStore {
            FileStore(.root(path), path: ["s"], durability: .relaxed, executor: executor)
        }
        #expect(await isCancellation(cancelled { try await on($0).save([2], as: "a") }, "a"))
        #expect(await isCancellation(cancelled { try await on($0).save([2], as: "b") }, "b"))
        #expect(await isCancellation(cancelled { try await on($0).save(fileAt: path + "/s/a", as: "b") }, "b"))
        #expect(await isCancellation(cancelled { _ = try await on($0).load("a") }, "a"))
        #expect(await isCancellation(cancelled { try await on($0).delete("a") }, "a"))
        #expect(await isCancellation(cancelled { try await on($0).rename("a", to: "b") }, "a"))
        #expect(await isCancellation(cancelled { try await FileStore.delete("a", in: [on($0)]) }, "a"))
        #expect(await isCancellation(cancelled { _ = try await on($0).list() }, store.directory))
        #expect(try await store.load("a") == [1])
        #expect(temporary.names == ["s"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: store.directory) == ["a"])
    }

    @Test func picturesAreNotSaved() async throws {
        let path = temporary.path
        let error = await cancelled { executor in
            let store = ImageStore(.root(path), path: ["s"], executor: executor)
            try await store.save(fileAt: Samples.path("lake.jpg"), as: "lake.jpg")
        }
        #expect(isCancellation(error, "lake.jpg"))
        #expect(temporary.names.isEmpty)
    }
}
