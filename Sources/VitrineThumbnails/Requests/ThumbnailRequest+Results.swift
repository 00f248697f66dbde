import VitrineCache
import VitrineCore
public import VitrineImaging

extension ThumbnailRequest {
    /// Calls `handler` with the thumbnail or the error, where ``delivery`` says; not at all after ``cancel()``.
    ///
    /// May be called at any time and several times; a request that has ended calls it at once.
    ///
    /// - Returns: The request.
    @discardableResult
    public func onThumbnail(_ handler: @escaping @Sendable (Result<Image, ThumbnailError>) -> Void) -> Self {
        let result = progress.withLock { progress in
            if !progress.state.isFinal { progress.thumbnailHandlers.append(handler) }
            return progress.state == .cancelled ? nil : progress.result
        }
        if let result { deliver { handler(result) } }
        return self
    }

    /// Calls `handler` with something to show until the thumbnail is there, before that is told (R90).
    ///
    /// Not called if the source has no placeholder, or the thumbnail was in memory. Without a handler none is made.
    ///
    /// - Returns: The request.
    @discardableResult
    public func onPlaceholder(_ handler: @escaping @Sendable (Image) -> Void) -> Self {
        let known: Image? = progress.withLock { progress in
            switch progress.placeholder {
            case .settled(let image): return progress.state == .cancelled ? nil : image
            case .unwanted, .wanted, .coming:
                if !progress.state.isFinal { progress.placeholderHandlers.append(handler) }
                return nil
            }
        }
        if let known { deliver { handler(known) } } else { wantPlaceholder() }
        return self
    }

    /// The thumbnail, once it is there (R96). Does not enqueue the request; any number of tasks may wait.
    ///
    /// - Throws: ``ThumbnailError``; `CancellationError` when the request or the waiting task is cancelled. Cancelling
    ///   the task leaves the request as it is.
    public var value: Image {
        get async throws {
            let pending = PendingValue<Image>()
            observeResult { result in
                pending.settle(result.mapError { $0.isCancellation ? CancellationError() as any Error : $0 })
            }
            return try await pending.wait()
        }
    }

    /// What to show until the thumbnail is there; nil if the source has nothing, or the thumbnail came first.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled.
    public var placeholder: Image? {
        get async throws {
            let pending = PendingValue<Image?>()
            observePlaceholder { pending.settle(.success($0)) }
            return try await pending.wait()
        }
    }

    /// The same results for threads that may block (R96).
    public var blocking: Blocking { Blocking(request: self) }

    /// A request's results for threads that may block: never for tasks.
    public struct Blocking: Sendable {
        let request: ThumbnailRequest

        /// The thumbnail, once it is there.
        ///
        /// A programming error on the main thread for a source that needs the main actor: both would wait for ever.
        ///
        /// - Throws: ``ThumbnailError``.
        public func value() throws(ThumbnailError) -> Image {
            checkThread()
            let outcome = Outcome<Result<Image, ThumbnailError>>()
            request.observeResult { outcome.set($0) }
            return try outcome.wait().get()
        }

        /// What to show until the thumbnail is there; nil if there is nothing, or the thumbnail came first.
        public func placeholder() -> Image? {
            checkThread()
            let outcome = Outcome<Image?>()
            request.observePlaceholder { outcome.set($0) }
            return outcome.wait()
        }

        private func checkThread() {
            precondition(
                !(request.source.requiresMainActor && Delivery.isMainActor) || request.state.isFinal,
                "The main thread cannot wait for a thumbnail that is made on the main actor.")
        }
    }

    // MARK: Observing

    /// Calls `body` once with the result, on any thread, after the request's own closures were sent off.
    func observeResult(_ body: @escaping @Sendable (Result<Image, ThumbnailError>) -> Void) {
        let result = progress.withLock { progress in
            if progress.result == nil { progress.waiters.append(body) }
            return progress.result
        }
        if let result { body(result) }
    }

    func observePlaceholder(_ body: @escaping @Sendable (Image?) -> Void) {
        let known: Image?? = progress.withLock { progress in
            if case .settled(let image) = progress.placeholder { return .some(image) }
            if progress.state.isFinal { return .some(nil) }
            progress.placeholderWaiters.append(body)
            return nil
        }
        if let known { body(known) } else { wantPlaceholder() }
    }

    /// Calls `body` once when the request has ended in whatever way, at once if it has.
    func observeEnd(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = progress.withLock { progress in
            if !progress.state.isFinal { progress.endObservers.append(body) }
            return progress.state.isFinal
        }
        if hasEnded { body() }
    }
}

extension ThumbnailError {
    /// Whether it stands for a cancellation.
    var isCancellation: Bool {
        if case .cancelled = self { return true }
        return false
    }
}
