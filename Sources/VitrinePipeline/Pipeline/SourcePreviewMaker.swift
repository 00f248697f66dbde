import VitrineCache
import VitrineCore
import VitrineImaging

/// Makes the previews that sources have. Equal ones are made once.
final class SourcePreviewMaker: Sendable {
    private typealias Subscription = FlightSubscription<CacheKey, PixelImage?>

    private let cache: ValueCache<PixelImage>
    private let configuration: ImagePipeline.Configuration
    private let caller: SourceCaller
    private let flights = SingleFlight<CacheKey, PixelImage?>()
    private let subscriptions = Locked<[ObjectIdentifier: Subscription]>([:])

    init(_ cache: ValueCache<PixelImage>, configuration: ImagePipeline.Configuration, caller: SourceCaller) {
        self.cache = cache
        self.configuration = configuration
        self.caller = caller
    }

    /// Whether no preview is on its way.
    var isIdle: Bool { subscriptions.withLock { $0.isEmpty } }

    /// Makes the preview of a task if one is wanted and not on its way.
    func makeWantedPreview(of task: ImageTask, _ identity: CacheKey) {
        guard task.beginSourcePreview() else { return }
        let (spec, source) = (task.request.spec, task.request.source)
        let id = ObjectIdentifier(task)
        let subscription = flights.join(key(of: spec, identity), priority: task.priority) { flight in
            begin(flight, source: source, spec: spec)
        } deliver: { [self] result in
            remove(id)
            task.settleSourcePreview((try? result.get()) ?? nil)
        }
        guard !task.sourcePreviewIsSettled else { return }
        subscriptions.withLock { $0[id] = subscription }
        // Either may have come before the subscription could be found.
        guard task.state.isFinal || task.sourcePreviewIsSettled else { return }
        remove(id)
        subscription.leave()
    }

    /// Makes the preview of a task if one is wanted and not on its way, on a thread that may block or, for a source that
    /// needs it, on the main actor.
    func makeWantedPreviewBlocking(of task: ImageTask, _ identity: CacheKey, source: any BlockingImageSource) {
        guard task.beginSourcePreview() else { return }
        let spec = task.request.spec
        let render = spec.render(limits: configuration.limits, cancellation: CancellationToken())
        task.settleSourcePreview((try? preview(key(of: spec, identity), source: source, render: render)) ?? nil)
    }

    /// The priority of a task was set.
    func setPriority(_ priority: RequestPriority, of task: ObjectIdentifier) {
        subscriptions.withLock { $0[task] }?.setPriority(priority)
    }

    /// A task has ended.
    func leave(_ task: ObjectIdentifier) { remove(task)?.leave() }

    @discardableResult
    private func remove(_ task: ObjectIdentifier) -> Subscription? {
        subscriptions.withLock { $0.removeValue(forKey: task) }
    }

    private func key(of spec: ResultSpec, _ identity: CacheKey) -> CacheKey {
        spec.key(for: identity).appending("sourcePreview")
    }

    private func begin(_ flight: Flight<CacheKey, PixelImage?>, source: any ImageSource, spec: ResultSpec) {
        let call = caller.newCall(flight.priority)
        flight.cancellation.onCancel { [caller] in caller.cancel(call) }
        let render = spec.render(limits: configuration.limits, cancellation: flight.cancellation)
        let body: SourceCaller.Body =
            if let blocking = source as? any BlockingImageSource {
                .blocking(onMainActor: blocking.requiresMainActor) { [self] in
                    guard !flight.cancellation.isCancelled else { return }
                    flight.finish(Result { try preview(flight.key, source: blocking, render: render) })
                }
            } else {
                .task { [self] in
                    guard !flight.cancellation.isCancelled else { return }
                    do {
                        flight.finish(.success(try await preview(flight.key, asking: source, render: render)))
                    } catch {
                        flight.finish(.failure(error))
                    }
                }
            }
        caller.enqueue(call, on: caller.placing, body: body) { error in
            flight.finish(.failure(error("\(type(of: source))")))
        }
    }

    /// The preview from its cache, or from a source that is asked in tasks.
    private func preview(
        _ key: CacheKey, asking source: any ImageSource, render: RenderRequest
    ) async throws -> PixelImage? {
        guard configuration.cachesPreviews else { return try await source.preview(render) }
        if let image = try? await cache.value(forKey: key) { return image }
        guard let image = try await source.preview(render) else { return nil }
        _ = try? await cache.set(image, forKey: key)
        return image
    }

    /// The preview from its cache, or from the source. May block, but for the main actor, where the disk is left
    /// out.
    private func preview(
        _ key: CacheKey, source: any BlockingImageSource, render: RenderRequest
    ) throws -> PixelImage? {
        guard configuration.cachesPreviews else { return try source.preview(render) }
        if let image = cache[key] { return image }
        let usesDisk = !source.requiresMainActor && configuration.usesDiskCache
        if usesDisk, let image = cache.valueOnDiskBlocking(forKey: key) { return image }
        guard let image = try source.preview(render) else { return nil }
        if usesDisk { try? cache.setBlocking(image, forKey: key) } else { cache[key] = image }
        return image
    }
}

extension ImageTask {
    /// Whether the preview has been told, or is known not to come.
    fileprivate var sourcePreviewIsSettled: Bool { progress.withLock { $0.sourcePreview.isSettled } }
}
