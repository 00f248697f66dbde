import Synchronization
package import VitrineCore

/// Bounds the renders and the loads of sources that are under way, and the queues for both.
///
/// Loads hold no place of a render, so that a slow origin stops no other request. A load keeps its own place until its
/// render has one: bytes that wait for a render are bounded as well.
package final class Admission: Sendable {
    /// The limits.
    package struct Limits: Sendable, Hashable {
        /// The bytes that all renders under way may need together, by the estimate from their headers. A single render
        /// that needs more runs alone. Default: 250 MB.
        package var renderBytes: ByteCount = .megabytes(250)
        /// The renders under way at once. Default: twice the processors, at least 4.
        package var renders: Int
        /// The bytes of sources that are held at once, from the first byte of each to its render. A single source that
        /// has more is held alone, and one host has at most half of them. Default: 128 MB.
        package var sourceBytes: ByteCount = .megabytes(128)
        /// The loads of sources under way at once. Default: 64.
        package var loads = 64
        /// The loads from one host at once. Default: 16.
        package var loadsPerHost = 16
        /// The waiting requests in each of both queues; more are refused at once. Default: 500.
        package var queueLength = 500
        /// How long a request may wait in a queue. Default: 10 seconds.
        package var queueDeadline: Duration = .seconds(10)

        /// Creates the defaults.
        package init() { renders = max(4, 2 * Renderer.processors) }
    }

    /// How many wait and run.
    package struct Counts: Sendable, Hashable {
        /// Requests that wait.
        package var waiting = 0
        /// Requests that have a place.
        package var running = 0
        /// Their bytes by estimate; for loads their number.
        package var cost = 0
        /// Requests refused since the start, as the queue was full or their time was up.
        package var refused = 0

        package init(waiting: Int = 0, running: Int = 0, cost: Int = 0, refused: Int = 0) {
            (self.waiting, self.running, self.cost, self.refused) = (waiting, running, cost, refused)
        }
    }

    /// The limits.
    package let limits: Limits
    private let renderQueue: PlaceQueue
    private let loadQueue: PlaceQueue
    /// The bytes of sources that are held.
    package let sources: SourceBudget

    /// Creates the queues.
    package init(_ limits: Limits = Limits()) {
        self.limits = limits
        renderQueue = PlaceQueue(
            places: limits.renders, capacity: limits.renderBytes.bytes, perHost: .max, limits)
        loadQueue = PlaceQueue(places: limits.loads, capacity: .max, perHost: limits.loadsPerHost, limits)
        sources = SourceBudget(limits)
    }

    /// Renders that wait and run.
    package var renders: Counts { renderQueue.counts }
    /// Loads that wait and run.
    package var loads: Counts { loadQueue.counts }

    /// The refusal of a request whose time has passed in a queue.
    var overloaded: RequestError {
        let seconds = [renderQueue.overloaded, loadQueue.overloaded].compactMap(\.retryAfter).max()
        return .overloaded(retryAfter: seconds ?? 1)
    }

    /// Returns a place for a render of an estimated number of bytes.
    ///
    /// - Throws: ``RequestError`` 503 `overloaded` if the queue is full or the wait takes too long.
    package func render(bytes: Int, priority: RequestPriority) async throws(RequestError) -> Place {
        try await renderQueue.place(cost: max(0, bytes), host: nil, priority)
    }

    /// Returns a place for a load; `host` is nil for sources without a network.
    package func load(host: String?, priority: RequestPriority) async throws(RequestError) -> Place {
        try await loadQueue.place(cost: 1, host: host, priority)
    }
}

/// A place that is given back at its deinitialization, if not before.
package final class Place: Sendable {
    private let queue: PlaceQueue
    private let item: WorkItem
    private let began = ContinuousClock.now

    fileprivate init(_ item: WorkItem, of queue: PlaceQueue) { (self.item, self.queue) = (item, queue) }

    deinit { release() }

    /// Gives the place back.
    package func release() {
        noteEnd()
        item.finish()
    }

    /// Gives the place itself back and keeps a part of its bytes, for work in the background.
    package func keep(cost: Int) {
        noteEnd()
        item.keep(cost: cost)
    }

    private func noteEnd() {
        if item.isRunning { queue.note(ContinuousClock.now - began) }
    }
}

/// A queue for places, of which each has a cost, with the errors of requests.
private final class PlaceQueue: Sendable {
    private struct Statistics {
        var refused = 0
        /// The mean time that a place is held, in seconds, the latest the most.
        var meanTime = 0.5
    }

    private let places: Int
    private let deadline: Duration
    private let queue: WorkQueue
    private let statistics = Mutex(Statistics())

    init(places: Int, capacity: Int, perHost: Int, _ limits: Admission.Limits) {
        self.places = max(1, places)
        deadline = limits.queueDeadline
        queue = WorkQueue(
            limit: places,
            bounds: .init(capacity: capacity, perGroup: perHost, queued: limits.queueLength))
    }

    var counts: Admission.Counts {
        let counts = queue.counts
        return Admission.Counts(
            waiting: counts.queued, running: counts.running, cost: counts.cost,
            refused: statistics.withLock { $0.refused })
    }

    func place(cost: Int, host: String?, _ priority: RequestPriority) async throws(RequestError) -> Place {
        do {
            let item = try await queue.slot(priority: priority, cost: cost, group: host, deadline: .now + deadline)
            return Place(item, of: self)
        } catch is WorkQueueError {
            statistics.withLock { $0.refused += 1 }
            throw overloaded
        } catch {
            throw .cancelled
        }
    }

    func note(_ time: Duration) {
        let seconds = Double(time.components.seconds) + Double(time.components.attoseconds) * 1e-18
        statistics.withLock { $0.meanTime += 0.2 * (seconds - $0.meanTime) }
    }

    var overloaded: RequestError {
        let seconds = Double(queue.counts.queued + 1) * statistics.withLock { $0.meanTime } / Double(places)
        return .overloaded(retryAfter: max(1, min(30, Int(seconds.rounded(.up)))))
    }
}
