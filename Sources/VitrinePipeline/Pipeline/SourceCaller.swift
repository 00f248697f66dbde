package import VitrineCore
import VitrineImaging

/// Calls sources. Each call waits for a slot of its queue, and then runs on a thread that may block, on the main actor,
/// or in a task, with a time limit. A source that hangs keeps its thread; the slot goes to the next call.
package final class SourceCaller: Sendable {
    /// A call that waits for a slot or runs.
    package struct Call: Sendable {
        let id: Int
        let slot: QueueSlot
    }

    /// The code of a call, and where it runs.
    package enum Body: Sendable {
        /// On a thread of this priority that may block, or on the main actor.
        case blocking(priority: RequestPriority = .normal, onMainActor: Bool = false, @Sendable () -> Void)
        case task(@Sendable () async -> Void)
    }

    /// Called in place of, or beside, the body of a call that took too long or was not made.
    package typealias FailureHandler = @Sendable (_ error: (_ source: String) -> ImagePipelineError) -> Void

    /// Calls for images.
    package let making: WorkQueue
    /// Calls for identities.
    let identifying = WorkQueue(limit: 4)
    /// Calls for the previews that sources have.
    let placing = WorkQueue(limit: 2)
    let pool: ForeignCallPool
    private let lastID = Locked(0)

    package init(_ configuration: ImagePipeline.Configuration) {
        making = WorkQueue(
            limit: configuration.concurrency, reserved: configuration.concurrency > 1 ? [.low: 1] : [:])
        pool = ForeignCallPool(
            idleLimit: configuration.concurrency, stuckLimit: configuration.maximumAbandonedThreads,
            timeLimit: configuration.timeLimit, longTimeLimit: configuration.timeLimit * Deadline.wallFactor,
            grace: configuration.grace)
    }

    /// Creates a call that belongs to no batch.
    package func newCall(_ priority: PrioritySource = PrioritySource()) -> Call {
        // Counted down, as the scheduler counts its batches up: all share the pool.
        let id = lastID.withLock { id in
            id -= 1
            return id
        }
        return Call(id: id, slot: QueueSlot(priority))
    }

    /// Makes a call when it has a slot. The slot is given back, and the time ends, with the body.
    package func enqueue(_ call: Call, on queue: WorkQueue, body: Body, onFailure: @escaping FailureHandler) {
        let timed: Body =
            switch body {
            case .blocking(let priority, let onMainActor, let body):
                .blocking(priority: priority, onMainActor: onMainActor) { [pool] in
                    pool.didBegin(call.id)
                    body()
                    call.slot.finish()
                }
            case .task(let body):
                .task { [pool] in
                    pool.didBegin(call.id)
                    await body()
                    call.slot.finish()
                }
            }
        call.slot.enqueue(on: queue) { [self] in start(call, body: timed, onFailure: onFailure) }
    }

    /// Makes a call that has a slot. The body tells the pool when its time begins, and gives the slot back.
    func start(_ call: Call, body: Body, onFailure: @escaping FailureHandler) {
        let onTimeout: @Sendable () -> Void = {
            call.slot.finish()
            onFailure { .timedOut(source: $0) }
        }
        let isMade =
            switch body {
            case .blocking(let priority, let onMainActor, let body):
                pool.call(call.id, priority: priority, onMainActor: onMainActor, body: body, onTimeout: onTimeout)
            case .task(let body): pool.callInTask(call.id, body: body, onTimeout: onTimeout)
            }
        guard !isMade else { return }
        ImagePipeline.endingExecutor.submit { [pool] in
            call.slot.finish()
            onFailure { .tooManyAbandonedThreads(source: $0, count: pool.stuckCount) }
        }
    }

    /// Takes a call out of its queue, or abandons it if it runs.
    package func cancel(_ call: Call) {
        call.slot.cancel()
        abandon(call)
    }

    /// Abandons a call that runs. The source has been told to stop.
    func abandon(_ call: Call) { pool.abandon(call.id) { call.slot.finish() } }

    /// Makes a call and returns its value. It is cancelled with the calling task.
    ///
    /// - Parameter start: Enqueues the call; given the closure for its result, of which the first counts.
    package func value<Value: Sendable>(
        priority: PrioritySource = PrioritySource(),
        _ start: (_ call: Call, _ deliver: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Void
    ) async throws -> Value {
        let result = AsyncPromise<Result<Value, any Error>>()
        let call = newCall(priority)
        start(call) { result.fulfill($0) }
        do {
            return try await result.cancellableValue().get()
        } catch {
            if error is CancellationError { cancel(call) }
            throw error
        }
    }

    // MARK: Identities

    /// Returns a source's identity, asked for where the source may be asked.
    package func identity(of source: any ImageSource) async throws -> CacheKey {
        if let known = source.knownIdentity { return known }
        return try await value { call, deliver in
            findIdentity(of: source, call) { result in deliver(result.mapError { $0 as any Error }) }
        }
    }

    /// Asks a source for its identity in its turn: on a thread if it blocks, else in a task.
    ///
    /// - Parameter deliver: Receives the identity or the error. After a timeout it may be called a second time.
    func findIdentity(
        of source: any ImageSource, _ call: Call,
        deliver: @escaping @Sendable (Result<CacheKey, ImagePipelineError>) -> Void
    ) {
        let body: Body =
            if source.isAskedInTasks {
                .task {
                    do throws(ImagePipelineError) {
                        deliver(.success(try await source.identity()))
                    } catch {
                        deliver(.failure(error))
                    }
                }
            } else {
                .blocking {
                    do throws(ImagePipelineError) {
                        if let identity = try source.identityBlocking() { deliver(.success(identity)) }
                    } catch {
                        deliver(.failure(error))
                    }
                }
            }
        enqueue(call, on: identifying, body: body) { error in deliver(.failure(error("\(type(of: source))"))) }
    }
}
