import VitrineCore

extension BlockingExecutor {
    /// Runs a store's work on one of the threads, and tells it when its task is cancelled.
    ///
    /// - Parameter name: What a cancellation before the start is about.
    func run<R: Sendable>(
        _ name: String, _ body: @escaping @Sendable (CancellationToken) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        let token = CancellationToken()
        let result = await withTaskCancellationHandler {
            await run { () -> Result<R, StoreError> in
                Result { () throws(StoreError) in
                    if token.isCancelled { throw .cancelled(name: name) }
                    return try body(token)
                }
            }
        } onCancel: {
            token.cancel()
        }
        return try result.get()
    }
}
