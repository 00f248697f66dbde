extension WorkQueue {
    /// Runs an asynchronous operation in the calling task once a slot is free, and returns what it returns.
    ///
    /// - Parameters:
    ///   - priority: How urgent it is.
    ///   - operation: The work. The slot is held until it returns, wherever it suspends.
    /// - Throws: `CancellationError` at once if the calling task is cancelled before the operation has started;
    ///   whatever `operation` throws after that.
    public nonisolated(nonsending) func run<T>(
        priority: Priority = .normal,
        operation: nonisolated(nonsending) () async throws -> T
    ) async throws -> T {
        let (item, _) = try await admission(priority: priority, following: nil)
        defer { item.finish() }
        return try await operation()
    }

    /// The same with a priority that can change while the operation waits and runs.
    public nonisolated(nonsending) func run<T>(
        following priority: PrioritySource,
        operation: nonisolated(nonsending) () async throws -> T
    ) async throws -> T {
        let (item, registration) = try await admission(priority: priority.value, following: priority)
        defer {
            if let registration { priority.remove(registration) }
            item.finish()
        }
        return try await operation()
    }

    /// Runs an asynchronous operation in a task of its own once a slot is free.
    ///
    /// - Parameters:
    ///   - priority: How urgent it is.
    ///   - executor: Where the task prefers to run; nil for the global pool, where it must not block.
    ///   - operation: The work. ``WorkItem/cancel()`` cancels its task.
    @discardableResult
    public func enqueue(
        priority: Priority = .normal,
        on executor: (any TaskExecutor)? = nil,
        operation: @escaping @Sendable () async -> Void
    ) -> WorkItem {
        let token = CancellationToken()
        return enqueue(priority: priority, onCancel: { token.cancel() }) { item in
            let task = Task(executorPreference: executor) {
                await operation()
                item.finish()
            }
            token.onCancel { task.cancel() }
        }
    }

    /// Runs blocking work on the threads of an executor once a slot is free.
    ///
    /// - Parameters:
    ///   - priority: How urgent it is.
    ///   - executor: Whose threads run it.
    ///   - body: The work. It polls ``WorkItem/isCancelled`` of the item it is given if it takes long.
    @discardableResult
    public func enqueue(
        priority: Priority = .normal,
        blockingOn executor: BlockingExecutor,
        body: @escaping @Sendable (WorkItem) -> Void
    ) -> WorkItem {
        enqueue(priority: priority) { item in
            executor.submit {
                if !item.isCancelled { body(item) }
                item.finish()
            }
        }
    }

    /// Waits for a slot.
    private nonisolated(nonsending) func admission(
        priority: Priority, following source: PrioritySource?
    ) async throws -> (WorkItem, PrioritySource.Registration?) {
        try Task.checkCancellation()
        let admission = WorkAdmission()
        let item = enqueue(
            priority: priority,
            onCancel: { admission.settle(.cancelled) },
            start: { _ in admission.settle(.admitted) })
        let registration = source?.observe { item.priority = $0 }
        if item.state == .running { return (item, registration) }
        let isAdmitted = await withTaskCancellationHandler {
            await admission.wait()
        } onCancel: {
            item.cancel()
        }
        guard isAdmitted, !Task.isCancelled else {
            // Does nothing for an item that left the queue; gives the slot back if the cancellation came just after.
            item.finish()
            if let source, let registration { source.remove(registration) }
            throw CancellationError()
        }
        return (item, registration)
    }
}
