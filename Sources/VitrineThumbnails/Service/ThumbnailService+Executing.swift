import VitrineCache
import VitrineCore
public import VitrineImaging

extension ThumbnailService {
    /// Makes a thumbnail on the calling thread, without waiting for a place (R95). Never in a task, which must not
    /// block.
    ///
    /// What the caches have is given without the source. Work that waits for its place is taken over, and its other
    /// requests served as well; work that runs already is waited for. The result is cached as any other. The thread
    /// keeps the priority it has. The source is told to stop after ``Configuration/timeLimit``; one that does not
    /// listen keeps the thread.
    ///
    /// A request that was enqueued before is waited for.
    ///
    /// - Returns: The thumbnail, which the request's closures get as well.
    /// - Throws: ``ThumbnailError``; with ``MainActorMisuse`` for a source that needs the main actor, anywhere else.
    @discardableResult
    public func execute(_ request: ThumbnailRequest) throws(ThumbnailError) -> Image {
        guard request.begin(in: self, byGroup: false) else { return try request.blocking.value() }
        do throws(ThumbnailError) {
            try checkPlace(request.source)
            let identity = try request.source.identity()
            if let image = memoryHit(request, identity) {
                request.finish(.success(image), from: .memory)
            } else if let error = request.invalidity(identity) {
                throw error
            } else {
                execute(request, identity)
            }
        } catch {
            request.finish(.failure(error))
        }
        return try request.blocking.value()
    }

    private func checkPlace(_ source: any ThumbnailSource) throws(ThumbnailError) {
        guard source.requiresMainActor, !Delivery.isMainActor else { return }
        throw .underlying(source: "\(type(of: source))", error: MainActorMisuse())
    }

    private func execute(_ request: ThumbnailRequest, _ identity: CacheKey) {
        let (spec, source) = (request.spec, request.source)
        if request.beginPlaceholder() {
            let render = spec.render(limits: configuration.limits, cancellation: CancellationToken())
            let key = spec.key(for: identity).appending("placeholder")
            request.settlePlaceholder((try? placeholder(key, source, render)) ?? nil)
        }
        let (job, work) = change { board, effects in
            let id = board.join(request, source, identity, spec, &effects).id
            return (id, board.takeOver(id, &effects))
        }
        if request.state.isFinal { leave(request) }
        guard let work else {
            // It runs elsewhere. On the main actor that cannot be waited for.
            if source.requiresMainActor { executeBeside(request, identity) }
            return
        }
        if let plan = plan(for: job), let made = waitFor({ await self.found(plan) }) {
            tell(job, .success(made))
            return change { $0.end(batch: work.batch, &$1) }
        }
        let timer = Task {
            guard (try? await Task.sleep(for: configuration.timeLimit)) != nil else { return }
            fail(work.batch) { .timedOut(source: $0) }
        }
        let results = make(work)
        timer.cancel()
        complete(results)
    }

    /// Makes a thumbnail that is being made elsewhere once more, for its request alone.
    private func executeBeside(_ request: ThumbnailRequest, _ identity: CacheKey) {
        leave(request)
        let work = Work(
            batch: 0, source: request.source, identity: identity,
            parts: [Work.Part(job: 0, spec: request.spec, key: request.spec.key(for: identity))],
            turn: Turn(PrioritySource()), cancellation: CancellationToken())
        request.finish(make(work).results[0], from: .source)
    }

    private func found(_ plan: Plan) async -> Made? {
        guard let made = await find(plan) else { return nil }
        if let image = made.image, made.origin != .disk { await store(image, plan) }
        return made
    }

    /// Executes a request whose thumbnail is on disk, if both may use that, and enqueues others (R95). Blocks.
    ///
    /// - Returns: Whether it was executed.
    @discardableResult
    public func executeIfCachedOnDiskOrEnqueue(_ request: ThumbnailRequest) -> Bool {
        let isOnDisk = waitFor { await self.hasDiskCache(for: request) }
        guard isOnDisk else {
            enqueue(request)
            return false
        }
        // The request tells its closures what goes wrong.
        _ = try? execute(request)
        return true
    }

    private func waitFor<T: Sendable>(_ body: @escaping @Sendable () async -> T) -> T {
        let outcome = Outcome<T>()
        Task { outcome.set(await body()) }
        return outcome.wait()
    }
}

/// A programming error: a source that needs the main actor was called for on another thread, where the caller would
/// have to wait for the main thread (R97). Enqueue the request, or execute it on the main actor.
public struct MainActorMisuse: Error, Sendable, CustomStringConvertible {
    /// What to do instead.
    public var description: String {
        "the source needs the main actor: enqueue its requests, or execute them on the main actor"
    }
}
