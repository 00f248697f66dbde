import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork

/// The bookkeeping of an ``ImagePipeline``: the jobs, their subscribers, and the sources to call.
///
/// A *job* makes one image and has any number of subscribers. Jobs of one source that wait for a slot form a
/// *batch*, which is one call of the source. Pure data; the pipeline holds it under its lock and carries out the
/// ``Effects`` outside.
struct RequestScheduler {
    enum Stage {
        /// The caches are being asked.
        case lookingUp
        /// In a batch that waits for a slot.
        case waiting(Int)
        /// In a batch that is under way.
        case running(Int)
    }

    /// The identities of work that is shared.
    struct Sharing {
        /// Of the work for one image.
        let image: CacheKey
        /// Of a call of the source.
        let source: CacheKey

        /// Requests whose source has other bounds, and those that want a new load, have work of their own.
        init(_ key: CacheKey, identity: CacheKey, source: any ImageSource, levels: CacheLevels) {
            let bounds = (source as? any RemoteImageSource)?.bounds ?? ""
            let isRefresh = levels.isDisjoint(with: .readOnly)
            guard isRefresh || !bounds.isEmpty else {
                (image, self.source) = (key, identity)
                return
            }
            let reason = isRefresh ? "refresh" : "load"
            (image, self.source) = (key.appending(reason, bounds), identity.appending(reason, bounds))
        }
    }

    struct Job {
        let key: CacheKey
        let sharing: Sharing
        let identity: CacheKey
        let spec: ResultSpec
        let source: any ImageSource
        var subscribers: [any JobSubscriber]
        var stage = Stage.lookingUp
        /// Its turn at the caches.
        let slot: QueueSlot
        /// The latest image of the bytes received so far.
        var preview: JobPreview?
        /// Stops the making of previews; nil if none are made.
        var previews: CancellationToken?

        /// The union of the subscribers' levels.
        var options: CacheLevels { subscribers.reduce([]) { $0.union($1.cacheLevels) } }
        var wantsImage: Bool { subscribers.contains { $0.wantsImage } }
        var isProgressive: Bool { subscribers.contains { $0.isProgressive } }
        var wantsPreviews: Bool { subscribers.contains { $0.wantsPreviews } }
        /// The highest of the subscribers'.
        var priority: RequestPriority { subscribers.map(\.priority).max() ?? .veryLow }
        var executionPriority: RequestPriority { subscribers.map(\.executionPriority).max() ?? .veryLow }
    }

    struct Batch {
        let identity: CacheKey
        let sharing: Sharing
        let source: any ImageSource
        /// The content of a remote source, once it is loaded.
        var loaded: LoadedSource?
        /// The bytes of the content while they are transferred; nil if no job is progressive.
        var arriving: ArrivingBytes?
        var jobs: [Int]
        var isRunning = false
        let slot: QueueSlot
        let cancellation = CancellationToken()
    }

    /// The effects of a change, to be carried out outside the lock.
    struct Effects {
        /// Their priority has changed.
        var reprioritized: [QueueSlot] = []
        /// Not wanted any more.
        var cancelled: [QueueSlot] = []
        /// Batches that run without a subscriber.
        var abandoned: [(id: Int, batch: Batch)] = []
        /// Loads of content, and previews, that no subscriber waits for.
        var cancelledLoads: [CancellationToken] = []
        /// To be released outside the lock.
        var released: [any Sendable] = []
    }

    private(set) var jobs: [Int: Job] = [:]
    private(set) var batches: [Int: Batch] = [:]
    private var lastID = 0
    /// The job to join for a key.
    private var joinable: [CacheKey: Int] = [:]
    /// The batch that waits for a slot, by source.
    private var waiting: [CacheKey: Int] = [:]
    private var places: [ObjectIdentifier: Int] = [:]

    /// A number for a job, a batch, or another call of a source.
    mutating func newID() -> Int {
        lastID += 1
        return lastID
    }

    // MARK: Subscribers

    /// Adds a subscriber to the job for an image.
    ///
    /// - Parameter key: The key of the image, by `spec` and `identity`.
    /// - Returns: The job, and its turn if it is new and has to begin.
    mutating func join(
        _ subscriber: any JobSubscriber, source: any ImageSource, identity: CacheKey,
        spec: ResultSpec, key: CacheKey, effects: inout Effects
    ) -> (id: Int, newSlot: QueueSlot?) {
        let sharing = Sharing(key, identity: identity, source: source, levels: subscriber.cacheLevels)
        if let id = joinable[sharing.image] {
            jobs[id]?.subscribers.append(subscriber)
            places[ObjectIdentifier(subscriber)] = id
            if case .running? = jobs[id]?.stage { subscriber.markRunning() }
            reprioritize(id, &effects)
            return (id, nil)
        }
        let id = newID()
        let slot = QueueSlot(PrioritySource(subscriber.priority))
        jobs[id] = Job(
            key: key, sharing: sharing, identity: identity, spec: spec, source: source, subscribers: [subscriber],
            slot: slot)
        joinable[sharing.image] = id
        places[ObjectIdentifier(subscriber)] = id
        return (id, slot)
    }

    /// Takes a subscriber out; the last one ends the job.
    mutating func leave(_ subscriber: any JobSubscriber, _ effects: inout Effects) {
        guard let id = places.removeValue(forKey: ObjectIdentifier(subscriber)), var job = jobs[id] else { return }
        job.subscribers.removeAll { $0 === subscriber }
        jobs[id] = job
        guard job.subscribers.isEmpty else { return reprioritize(id, &effects) }
        effects.cancelled.append(job.slot)
        remove(id, &effects)
    }

    /// A subscriber's priorities may have changed.
    mutating func refresh(_ subscriber: any JobSubscriber, _ effects: inout Effects) {
        guard let id = places[ObjectIdentifier(subscriber)] else { return }
        reprioritize(id, &effects)
    }

    private mutating func reprioritize(_ id: Int, _ effects: inout Effects) {
        guard let job = jobs[id] else { return }
        if job.slot.priority.store(job.priority) { effects.reprioritized.append(job.slot) }
        switch job.stage {
        case .lookingUp: break
        case .waiting(let batch), .running(let batch): reprioritize(batch: batch, &effects)
        }
    }

    private mutating func reprioritize(batch id: Int, _ effects: inout Effects) {
        guard let batch = batches[id] else { return }
        let priority = batch.jobs.compactMap { jobs[$0]?.priority }.max() ?? .veryLow
        if batch.slot.priority.store(priority) { effects.reprioritized.append(batch.slot) }
    }

    // MARK: Jobs

    /// Ends a job.
    ///
    /// - Returns: The subscribers to notify; none if it has ended before.
    mutating func end(_ id: Int, _ effects: inout Effects) -> [any JobSubscriber] {
        guard let job = jobs[id] else { return [] }
        for subscriber in job.subscribers { places[ObjectIdentifier(subscriber)] = nil }
        remove(id, endsRunning: false, &effects)
        return job.subscribers
    }

    /// Ends a job whose image is not to be had without reading it.
    ///
    /// - Returns: The subscribers to notify; nil, and nothing changes, if one of them needs the image.
    mutating func endUnseen(_ id: Int, _ effects: inout Effects) -> [any JobSubscriber]? {
        jobs[id]?.wantsImage == true ? nil : end(id, &effects)
    }

    private mutating func remove(_ id: Int, endsRunning: Bool = true, _ effects: inout Effects) {
        guard let job = jobs.removeValue(forKey: id) else { return }
        effects.released.append(job)
        if let previews = job.previews { effects.cancelledLoads.append(previews) }
        joinable[job.sharing.image] = nil
        switch job.stage {
        case .lookingUp: break
        case .waiting(let batch), .running(let batch): leave(batch: batch, id, endsRunning: endsRunning, &effects)
        }
    }

    private mutating func leave(batch id: Int, _ job: Int, endsRunning: Bool, _ effects: inout Effects) {
        batches[id]?.jobs.removeAll { $0 == job }
        guard let batch = batches[id] else { return }
        guard batch.jobs.isEmpty else { return reprioritize(batch: id, &effects) }
        if !batch.isRunning {
            batches[id] = nil
            waiting[batch.sharing.source] = nil
            effects.cancelled.append(batch.slot)
            effects.cancelledLoads.append(batch.cancellation)
            effects.released.append(batch)
        } else if endsRunning {
            batches[id] = nil
            effects.abandoned.append((id, batch))
        }
    }

    // MARK: Previews

    /// The previews of one job that are to be made.
    struct Previews: Sendable {
        let job: Int
        let spec: ResultSpec
        let source: String
        let arriving: ArrivingBytes
        let priority: PrioritySource
        let cancellation: CancellationToken
    }

    /// The job a subscriber waits for.
    func job(of subscriber: any JobSubscriber) -> Int? { places[ObjectIdentifier(subscriber)] }

    /// Lets a batch that is about to be loaded keep its bytes, if one of its jobs may want previews.
    ///
    /// - Returns: The bytes, and the batch's jobs.
    mutating func beginArriving(batch id: Int, limit: Int) -> (bytes: ArrivingBytes, jobs: [Int])? {
        guard let batch = batches[id], batch.jobs.contains(where: { jobs[$0]?.isProgressive == true }) else { return nil }
        let arriving = ArrivingBytes(limit: limit)
        batches[id]?.arriving = arriving
        return (arriving, batch.jobs)
    }

    /// Begins with the previews of a job whose content is transferred.
    ///
    /// - Returns: nil if they are made already, not wanted, or not possible.
    mutating func beginPreviews(of id: Int) -> Previews? {
        guard let job = jobs[id], job.previews == nil, case .waiting(let batchID) = job.stage,
            let batch = batches[batchID], let arriving = batch.arriving, job.wantsPreviews
        else { return nil }
        let token = CancellationToken()
        jobs[id]?.previews = token
        return Previews(
            job: id, spec: job.spec, source: job.identity.sourceName, arriving: arriving, priority: batch.slot.priority,
            cancellation: token)
    }

    /// Notes a preview of a job.
    ///
    /// - Returns: The preview and its subscribers; nil if the job has ended.
    mutating func setPreview(
        _ image: PixelImage, of previews: Previews
    ) -> (preview: JobPreview, subscribers: [any JobSubscriber])? {
        guard let job = jobs[previews.job], job.previews === previews.cancellation else { return nil }
        let preview = JobPreview(image: image, number: (job.preview?.number ?? 0) + 1)
        jobs[previews.job]?.preview = preview
        return (preview, job.subscribers.filter(\.isProgressive))
    }

    // MARK: Batches

    /// Puts a job that no cache could serve into its source's batch.
    ///
    /// - Returns: The batch if it is new and has to be enqueued.
    mutating func wait(_ id: Int, _ effects: inout Effects) -> (id: Int, batch: Batch)? {
        guard let job = jobs[id], case .lookingUp = job.stage else { return nil }
        if let batch = waiting[job.sharing.source] {
            batches[batch]?.jobs.append(id)
            jobs[id]?.stage = .waiting(batch)
            reprioritize(batch: batch, &effects)
            return nil
        }
        let batch = Batch(
            identity: job.identity, sharing: job.sharing, source: job.source, jobs: [id],
            slot: QueueSlot(PrioritySource(job.priority)))
        let batchID = newID()
        batches[batchID] = batch
        waiting[job.sharing.source] = batchID
        jobs[id]?.stage = .waiting(batchID)
        return (batchID, batch)
    }

    /// How much of the processor a batch may claim: the most that one of its requests says.
    func executionPriority(ofBatch id: Int) -> RequestPriority {
        batches[id]?.jobs.compactMap { jobs[$0]?.executionPriority }.max() ?? .veryLow
    }

    /// The union of the levels of a batch's requests.
    func levels(ofBatch id: Int) -> CacheLevels {
        (batches[id]?.jobs ?? []).reduce([]) { $0.union(jobs[$1]?.options ?? []) }
    }

    /// Notes the content of a batch's remote source.
    ///
    /// - Returns: Whether the batch still waits for it.
    mutating func setLoaded(_ loaded: LoadedSource, ofBatch id: Int) -> Bool {
        guard let batch = batches[id], !batch.isRunning else { return false }
        batches[id]?.loaded = loaded
        return true
    }

    /// Closes a batch that has a slot. Later jobs wait for the next batch.
    ///
    /// - Returns: The work; nil if the batch has ended.
    mutating func begin(batch id: Int) -> Work? {
        guard let batch = batches[id], !batch.isRunning else { return nil }
        batches[id]?.isRunning = true
        waiting[batch.sharing.source] = nil
        return start(id, batch)
    }

    /// Takes a job that has not started out of its place, into a batch of its own that runs at once.
    mutating func takeOver(_ id: Int, _ effects: inout Effects) -> Work? {
        guard let job = jobs[id] else { return nil }
        switch job.stage {
        case .running: return nil
        case .lookingUp: effects.cancelled.append(job.slot)
        case .waiting(let batch): leave(batch: batch, id, endsRunning: false, &effects)
        }
        var batch = Batch(
            identity: job.identity, sharing: job.sharing, source: job.source, jobs: [id],
            slot: QueueSlot(PrioritySource(job.priority)))
        batch.isRunning = true
        let batchID = newID()
        batches[batchID] = batch
        return start(batchID, batch)
    }

    private mutating func start(_ id: Int, _ batch: Batch) -> Work {
        var parts: [Work.Part] = []
        for jobID in batch.jobs {
            jobs[jobID]?.stage = .running(id)
            guard let job = jobs[jobID] else { continue }
            for subscriber in job.subscribers { subscriber.markRunning() }
            parts.append(Work.Part(job: jobID, spec: job.spec, key: job.key))
        }
        return Work(
            batch: id, source: batch.loaded?.source ?? batch.source, identity: batch.identity, loaded: batch.loaded,
            parts: parts, slot: batch.slot, cancellation: batch.cancellation)
    }

    /// Ends a batch, whose jobs have ended.
    mutating func end(batch id: Int, _ effects: inout Effects) {
        guard let batch = batches.removeValue(forKey: id) else { return }
        if !batch.isRunning { waiting[batch.sharing.source] = nil }
        effects.released.append(batch)
    }

    /// Ends a batch and its jobs.
    ///
    /// - Returns: The batch, and the subscribers to notify; nil if it has ended before.
    mutating func fail(
        batch id: Int, _ effects: inout Effects
    ) -> (batch: Batch, subscribers: [any JobSubscriber])? {
        guard let batch = batches[id] else { return nil }
        end(batch: id, &effects)
        return (batch, batch.jobs.flatMap { end($0, &effects) })
    }

    /// Whether nothing is left.
    var isEmpty: Bool { jobs.isEmpty && batches.isEmpty && joinable.isEmpty && waiting.isEmpty && places.isEmpty }
}

/// One call of a source, and the results it has to make.
struct Work: Sendable {
    struct Part: Sendable {
        let job: Int
        let spec: ResultSpec
        let key: CacheKey
    }

    let batch: Int
    var source: any ImageSource
    let identity: CacheKey
    /// The content of a remote source; nil for any other.
    var loaded: LoadedSource?
    var parts: [Part]
    let slot: QueueSlot
    let cancellation: CancellationToken
}

/// The result of a job.
struct Made: Sendable {
    /// nil for an image on disk that no subscriber needs in memory.
    let image: PixelImage?
    let origin: Origin
}

/// An image of the bytes received so far.
struct JobPreview: Sendable {
    let image: PixelImage
    /// Counts the previews of a job from 1.
    let number: Int
}

/// A subscriber of a job: a task, or a prefetch.
protocol JobSubscriber: AnyObject, Sendable {
    var priority: RequestPriority { get }
    var executionPriority: RequestPriority { get }
    var cacheLevels: CacheLevels { get }
    /// Whether the image itself is wanted, not only that it is on disk.
    var wantsImage: Bool { get }
    /// Whether previews may be wanted, so that a transfer keeps its bytes for them.
    var isProgressive: Bool { get }
    /// Whether previews are wanted now.
    var wantsPreviews: Bool { get }

    /// The source is at work. Must not block, nor call the pipeline.
    func markRunning()

    /// The bytes received so far gave an image.
    func previewDidArrive(_ preview: JobPreview)

    /// Called once, unless the subscriber left.
    func jobDidEnd(_ result: Result<Made, ImagePipelineError>)
}

extension ImageTask: JobSubscriber {
    var wantsImage: Bool { true }
    var isProgressive: Bool { request.isProgressive }

    func jobDidEnd(_ result: Result<Made, ImagePipelineError>) {
        switch result {
        case .success(let made):
            guard let image = made.image else { return }
            finish(.success(image), from: made.origin)
        case .failure(let error): finish(.failure(error))
        }
    }
}

/// A place on a ``WorkQueue`` whose urgency may change before, while and after it is taken.
final class QueueSlot: Sendable {
    private struct State {
        var item: WorkItem?
        var isCancelled = false
        var isFinished = false
    }

    /// How urgent it is.
    let priority: PrioritySource
    private let state = Locked(State())

    init(_ priority: PrioritySource) { self.priority = priority }

    /// Waits for a slot. `start` must return quickly; ``finish()`` gives the slot back.
    func enqueue(on queue: WorkQueue, start: @escaping @Sendable () -> Void) {
        let item = queue.enqueue(priority: priority.value) { item in
            self.attach(item)
            start()
        }
        attach(item)
        priority.observe { item.priority = $0 }
    }

    /// Leaves the queue if there is no slot yet.
    func cancel() {
        let item = state.withLock { state in
            state.isCancelled = true
            return state.item
        }
        item?.cancel()
    }

    /// Gives the slot back. May be called any number of times.
    func finish() {
        let item = state.withLock { state in
            state.isFinished = true
            return state.item
        }
        item?.finish()
    }

    private func attach(_ item: WorkItem) {
        let (isCancelled, isFinished) = state.withLock { state in
            state.item = item
            return (state.isCancelled, state.isFinished)
        }
        if isCancelled { item.cancel() }
        if isFinished { item.finish() }
    }
}
