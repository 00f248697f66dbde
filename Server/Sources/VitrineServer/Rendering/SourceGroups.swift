import Synchronization
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// A result that is wanted of a source.
struct RenderJob: Sendable {
    enum Kind: Sendable { case image, summary, header }

    let kind: Kind
    let options: ProcessingOptions
    /// The format that the client prefers; nil for the source's own format.
    let format: ImageFormat?
    let source: SourceTable.Source
    /// Identifies the result.
    let key: CacheKey
    /// The position of purges when the work began.
    var began = 0
    /// The last purge before, of those that may concern the source.
    var epoch = 0
    /// The right of this node to make the result for all.
    var lease: ResultLease?
    /// Whether the store of results has none.
    var isAbsentFromStore = false
    /// The version of a file that all nodes see, with which the tier and the store know its results; nil for other
    /// sources.
    var sharedVersion: String?

    /// Identifies the result in the tier and in the store.
    var remoteKey: CacheKey { sharedVersion.map { key.appending($0) } ?? key }

    /// Identifies the result in a quicker format, while AVIF or JPEG XL is completed.
    func provisionalKey(_ alternative: ImageFormat?) -> CacheKey {
        key.appending("provisional").appending(alternative?.rawValue ?? "any")
    }

    /// Identifies the group that is loaded and decoded together. Pages of a document have sizes of their own.
    var groupKey: CacheKey {
        let key = options.page == 1 ? source.key : source.key.appending("page \(options.page)")
        return epoch == 0 ? key : key.appending("purge \(epoch)")
    }

    /// Identifies the page or the moment that is decoded of the source.
    var contentKey: CacheKey {
        let key = options.page == 1 ? source.contentKey : source.contentKey.appending("page \(options.page)")
        return options.second.map { key.appending("second \($0)") } ?? key
    }

    /// The job whose work begins now.
    func beginning(at fence: PurgeFence) -> RenderJob {
        var job = self
        job.began = fence.position
        job.epoch = fence.epoch(of: source.tags)
        return job
    }
}

/// Loads each source once for all jobs that wait for it, and starts their renders together, so that they share one
/// decode.
///
/// The steps of a group: a place for the load, the load, the header, a place for the render, the start of all renders.
/// Jobs may join until the renders start.
final class SourceGroups: Sendable {
    /// A source that was loaded.
    struct Loaded: Sendable {
        let original: SourceTable.Original
        /// Nil if no job needed it.
        let header: SourceHeader?
    }

    /// The outcome of a job.
    enum Outcome: Sendable {
        /// The source is of the version that the job's stored result was made from.
        case unchanged(Loaded)
        /// The source itself is the result.
        case passThrough(Loaded)
        /// The pipeline is making the image.
        case render(ImageTask, RenderPlan, Loaded, Place)
    }

    /// The time of each step, in the order of the work.
    struct Times: Sendable, Hashable {
        var queue = Duration.zero
        var fetch = Duration.zero
        var waits: [Rendering.Times.Step] = []

        mutating func wait(since began: ContinuousClock.Instant) {
            let duration = ContinuousClock.now - began
            queue += duration
            waits.append(.init(began: began, duration: duration))
        }
    }

    private typealias Delivery = Result<(Outcome, Times), RequestError>

    private struct Member {
        let job: RenderJob
        let storedVersion: String?
        let delivery = AsyncPromise<Delivery>()
    }

    private struct Group {
        let id: Int
        let priority: SharedPriority
        var task: Task<Void, Never>?
        var members: [Int: Member] = [:]
    }

    private struct GroupID {
        let key: CacheKey
        let number: Int
    }

    private struct State {
        var groups: [CacheKey: Group] = [:]
        var nextID = 0
    }

    private let state = Mutex(State())
    private let sources: SourceTable
    private let pipeline: ImagePipeline
    private let admission: Admission
    private let settings: RenderSettings
    private let limits: ImageLimits
    private let executor: BlockingExecutor
    private let didFail: @Sendable (CacheKey, RequestError, String?) -> Void

    /// - Parameters:
    ///   - didFail: Called with errors that concern all results of a source, with the key to keep them for and the
    ///     version of the source, if it was read.
    init(
        _ sources: SourceTable, pipeline: ImagePipeline, admission: Admission, settings: RenderSettings,
        limits: ImageLimits, executor: BlockingExecutor,
        didFail: @escaping @Sendable (CacheKey, RequestError, String?) -> Void
    ) {
        self.sources = sources
        self.pipeline = pipeline
        self.admission = admission
        self.settings = settings
        self.limits = limits
        self.executor = executor
        self.didFail = didFail
    }

    /// The number of sources that are being loaded or wait for a place.
    var count: Int { state.withLock { $0.groups.count } }

    /// Returns the outcome of a job, as soon as its render runs.
    ///
    /// - Parameters:
    ///   - job: The job.
    ///   - storedVersion: The version of the source that a stored result was made from; nil without one.
    ///   - priority: Raises that of the source's load and the renders.
    func outcome(
        of job: RenderJob, storedVersion: String?, priority: SharedPriority
    ) async throws(RequestError) -> (outcome: Outcome, times: Times) {
        if Task.isCancelled { throw .cancelled }
        let member = Member(job: job, storedVersion: storedVersion)
        let id = join(member, priority: priority)
        let delivery = await withTaskCancellationHandler {
            await member.delivery.value()
        } onCancel: {
            leave(id, job.groupKey)
        }
        let (outcome, times) = try delivery.get()
        return (outcome, times)
    }

    // MARK: Members

    /// Adds a job to the group of its source, and returns its number there.
    private func join(_ member: Member, priority: SharedPriority) -> Int {
        let key = member.job.groupKey
        return state.withLock { state in
            state.nextID += 1
            let id = state.nextID
            if let group = state.groups[key] {
                group.priority.raise(to: priority.value)
                priority.queue.follow(group.priority.queue)
                state.groups[key]?.members[id] = member
                return id
            }
            state.nextID += 1
            var group = Group(id: state.nextID, priority: SharedPriority(PrioritySource(priority.value)))
            priority.queue.follow(group.priority.queue)
            group.members[id] = member
            let (source, own, shared) = (member.job.source, GroupID(key: key, number: group.id), group.priority)
            group.task = Task { await self.run(source, group: own, priority: shared) }
            state.groups[key] = group
            return id
        }
    }

    private func leave(_ id: Int, _ key: CacheKey) {
        let (member, task) = state.withLock { state -> (Member?, Task<Void, Never>?) in
            guard let member = state.groups[key]?.members.removeValue(forKey: id) else { return (nil, nil) }
            guard let group = state.groups[key], group.members.isEmpty else { return (member, nil) }
            state.groups[key] = nil
            return (member, group.task)
        }
        task?.cancel()
        member?.delivery.fulfill(.failure(.cancelled))
    }

    /// Takes members out of a group, and ends the group if none is left.
    private func take(
        _ group: GroupID, where isWanted: (Member) -> Bool = { _ in true }
    ) -> [(id: Int, member: Member)] {
        state.withLock { state in
            guard let current = state.groups[group.key], current.id == group.number else { return [] }
            let taken = current.members.filter { isWanted($0.value) }
            for id in taken.keys { state.groups[group.key]?.members[id] = nil }
            if state.groups[group.key]?.members.isEmpty == true { state.groups[group.key] = nil }
            return taken.sorted { $0.key < $1.key }.map { (id: $0.key, member: $0.value) }
        }
    }

    private func members(of group: GroupID) -> [Member] {
        state.withLock { state in
            guard let current = state.groups[group.key], current.id == group.number else { return [] }
            return Array(current.members.values)
        }
    }

    // MARK: The work

    private func run(_ source: SourceTable.Source, group: GroupID, priority: SharedPriority) async {
        do throws(RequestError) {
            try await carryOut(source, group: group, priority: priority)
        } catch {
            for (_, member) in take(group) { member.delivery.fulfill(.failure(error)) }
        }
    }

    private func carryOut(
        _ source: SourceTable.Source, group: GroupID, priority: SharedPriority
    ) async throws(RequestError) {
        var times = Times()
        var begin = ContinuousClock.now
        let queue = priority.queue
        let loadPlace = try await queue.counting { () async throws(RequestError) in
            try await admission.load(host: source.host, priority: priority.value)
        }
        times.wait(since: begin)
        begin = .now
        let held = admission.sources.reservation(host: source.host, queue: queue)
        let original = try await load(source, priority: priority.value, held: held)
        held.correct(to: original.bytes.count)
        times.fetch = ContinuousClock.now - begin
        var header: SourceHeader?
        while header == nil {
            deliverUnchanged(group, original: original, times: times)
            header = try await self.header(of: original, source, group)
            deliverPassedThrough(group, loaded: Loaded(original: original, header: header), times: times)
            if members(of: group).isEmpty { return }
        }
        let loaded = Loaded(original: original, header: header)
        // All share one decode, that of the largest.
        let bytes = members(of: group).reduce(0) { total, member in
            max(total, (try? plan(member.job, loaded))?.estimatedBytes ?? 0)
        }
        begin = .now
        let place = try await queue.counting { () async throws(RequestError) in
            try await admission.render(bytes: bytes, priority: priority.value)
        }
        times.wait(since: begin)
        // The place of the render counts these bytes from now on.
        loadPlace.release()
        held.release()
        deliverUnchanged(group, original: original, times: times)
        deliverPassedThrough(group, loaded: loaded, times: times)
        start(take(group).map(\.member), loaded: loaded, place: place, times: times, priority: priority.value)
    }

    private func load(
        _ source: SourceTable.Source, priority: RequestPriority, held: SourceReservation
    ) async throws(RequestError) -> SourceTable.Original {
        do throws(RequestError) {
            return try await sources.load(source, priority: priority, holding: held)
        } catch {
            didFail(source.key, error, nil)
            throw error
        }
    }

    /// The header, if a job is left that needs it. Answers as they are need none.
    private func header(
        of original: SourceTable.Original, _ source: SourceTable.Source, _ group: GroupID
    ) async throws(RequestError) -> SourceHeader? {
        let needing = members(of: group).filter { !$0.job.options.isRaw || $0.job.kind != .image }
        guard let first = needing.first else { return nil }
        let page = max(1, min(needing.map(\.job.options.page).min() ?? first.job.options.page, 1_000_000))
        let (limits, executor, token) = (limits, executor, CancellationToken())
        // The group's task is cancelled with its last member.
        let result = await withTaskCancellationHandler {
            await executor.run { () -> Result<SourceHeader, RequestError> in
                Result { () throws(RequestError) in
                    try SourceHeader(of: original.bytes, page: page, limits: limits, cancellation: token)
                }
            }
        } onCancel: {
            token.cancel()
        }
        do throws(RequestError) {
            return try result.get()
        } catch {
            // A cancellation says nothing about the source.
            if error != .cancelled, page == 1 || error.isDamage {
                didFail(source.contentKey, error, original.version)
            }
            throw error
        }
    }

    private func deliverUnchanged(_ group: GroupID, original: SourceTable.Original, times: Times) {
        let loaded = Loaded(original: original, header: nil)
        for (_, member) in take(group, where: { $0.storedVersion == original.version }) {
            member.delivery.fulfill(.success((.unchanged(loaded), times)))
        }
    }

    private func deliverPassedThrough(_ group: GroupID, loaded: Loaded, times: Times) {
        for (_, member) in take(group, where: { Self.passesThrough($0.job, loaded.header) }) {
            member.delivery.fulfill(.success((.passThrough(loaded), times)))
        }
    }

    private static func passesThrough(_ job: RenderJob, _ header: SourceHeader?) -> Bool {
        // Nothing is made of a header.
        if job.kind == .header { return header != nil }
        guard job.kind == .image else { return false }
        if job.options.isRaw { return true }
        guard let format = header?.format, job.options.skipProcessing.contains(format) else { return false }
        // Another format is made, whatever is not processed.
        return (job.options.format ?? job.format ?? format) == format
    }

    private func plan(_ job: RenderJob, _ loaded: Loaded) throws(RequestError) -> RenderPlan {
        guard var header = loaded.header else { throw .notAnImage }
        if job.options.sourceRules?.iiif != nil { header = header.ofIIIF }
        let count = loaded.original.bytes.count
        return job.kind == .summary
            ? .summary(job.options, header, sourceBytes: count)
            : try RenderPlan(job.options, header: header, settings: settings, sourceBytes: count)
    }

    /// Starts the renders of all members in one go.
    private func start(
        _ members: [Member], loaded: Loaded, place: Place, times: Times, priority: RequestPriority
    ) {
        let start = AsyncPromise<Void>()
        var deliveries: [(Member, Delivery)] = []
        for member in members {
            do throws(RequestError) {
                let plan = try plan(member.job, loaded)
                let request = request(
                    plan, source: member.job.source, original: loaded.original, start: start, priority: priority)
                let task = pipeline.start(request)
                deliveries.append((member, .success((.render(task, plan, loaded, place), times))))
            } catch {
                deliveries.append((member, .failure(error)))
            }
        }
        // The pipeline has them all in one batch now.
        start.fulfill(())
        for (member, delivery) in deliveries { member.delivery.fulfill(delivery) }
    }

    private func request(
        _ plan: RenderPlan, source: SourceTable.Source, original: SourceTable.Original, start: AsyncPromise<Void>,
        priority: RequestPriority
    ) -> ImageRequest {
        let moment =
            switch plan.moment {
            case .poster: "poster"
            case .second(let second): "second \(second)"
            }
        let identity = source.key.appending(original.version).appending("page \(plan.page)").appending(moment)
        let image = BuiltInSource.bytes(identity: identity, page: plan.page, at: plan.moment) {
            await start.value()
            return original.bytes
        }
        var request = ImageRequest(image, resizing: plan.resizer, processors: plan.processors, priority: priority)
        // Results are kept as files, and the bytes by the cache of sources.
        request.cacheLevels = []
        request.executionPriority = .normal
        return request
    }
}
