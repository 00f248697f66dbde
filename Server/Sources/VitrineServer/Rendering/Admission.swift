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
    private let host: String?
    private let began = ContinuousClock.now
    private let held: Mutex<(cost: Int, isCounted: Bool)?>

    fileprivate init(_ queue: PlaceQueue, cost: Int, host: String?) {
        self.queue = queue
        self.host = host
        held = Mutex((cost, true))
    }

    deinit { release() }

    /// Gives the place back.
    package func release() {
        let held = held.withLock { held in
            defer { held = nil }
            return held
        }
        guard let held else { return }
        queue.release(cost: held.cost, host: host, isCounted: held.isCounted, after: ContinuousClock.now - began)
    }

    /// Gives the place itself back and keeps a part of its bytes, for work in the background.
    package func keep(cost: Int) {
        let freed = held.withLock { held -> Int? in
            guard let current = held, current.isCounted else { return nil }
            let kept = min(current.cost, max(0, cost))
            held = (kept, false)
            return current.cost - kept
        }
        guard let freed else { return }
        queue.release(cost: freed, host: host, isCounted: true, after: ContinuousClock.now - began)
    }
}

/// A queue for places, of which each has a cost. The most urgent request is first, and of equally urgent ones the
/// oldest.
final class PlaceQueue: Sendable {
    private typealias Outcome = Result<Place, RequestError>

    private struct Waiter {
        let id: Int
        let cost: Int
        let host: String?
        let priority: RequestPriority
        let continuation: CheckedContinuation<Outcome, Never>
    }

    private struct State {
        var waiters: [Waiter] = []
        var hosts: [String: Int] = [:]
        var running = 0
        var cost = 0
        var refused = 0
        var nextID = 0
        /// Requests that ended before they could be added.
        var ended: Set<Int> = []
        /// The mean time that a place is held, in seconds, the latest the most.
        var meanTime = 0.5
    }

    private let places: Int
    private let capacity: Int
    private let perHost: Int
    private let length: Int
    private let deadline: Duration
    private let state = Mutex(State())

    init(places: Int, capacity: Int, perHost: Int, _ limits: Admission.Limits) {
        self.places = max(1, places)
        self.capacity = max(1, capacity)
        self.perHost = max(1, perHost)
        length = max(0, limits.queueLength)
        deadline = limits.queueDeadline
    }

    var counts: Admission.Counts {
        state.withLock { state in
            Admission.Counts(
                waiting: state.waiters.count, running: state.running, cost: state.cost, refused: state.refused)
        }
    }

    func place(cost: Int, host: String?, _ priority: RequestPriority) async throws(RequestError) -> Place {
        let (id, immediate) = state.withLock { state -> (Int, Outcome?) in
            state.nextID += 1
            if state.waiters.isEmpty || host != nil, fits(cost, host: host, state: state),
                !isBehind(priority, host: host, state: state)
            {
                take(cost, host: host, state: &state)
                return (state.nextID, .success(Place(self, cost: cost, host: host)))
            }
            guard state.waiters.count < length else {
                state.refused += 1
                return (state.nextID, .failure(overloaded(state)))
            }
            return (state.nextID, nil)
        }
        if let immediate { return try immediate.get() }
        let timer = Task {
            try await Task.sleep(for: deadline)
            end(id, isRefusal: true)
        }
        defer { timer.cancel() }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
                add(Waiter(id: id, cost: cost, host: host, priority: priority, continuation: continuation))
            }
        } onCancel: {
            end(id, isRefusal: false)
        }
        state.withLock { _ = $0.ended.remove(id) }
        return try outcome.get()
    }

    fileprivate func release(cost: Int, host: String?, isCounted: Bool, after time: Duration) {
        let admitted = state.withLock { state in
            state.cost -= cost
            if isCounted {
                state.running -= 1
                let seconds = Double(time.components.seconds) + Double(time.components.attoseconds) * 1e-18
                state.meanTime += 0.2 * (seconds - state.meanTime)
                if let host {
                    let count = (state.hosts[host] ?? 1) - 1
                    state.hosts[host] = count > 0 ? count : nil
                }
            }
            return admit(&state)
        }
        resume(admitted)
    }

    // MARK: Waiters

    private func add(_ waiter: Waiter) {
        let (hasEnded, admitted) = state.withLock { state -> (Bool, [Waiter]) in
            if state.ended.remove(waiter.id) != nil { return (true, []) }
            let index = state.waiters.firstIndex { $0.priority < waiter.priority } ?? state.waiters.count
            state.waiters.insert(waiter, at: index)
            // A place may have become free meanwhile.
            return (false, admit(&state))
        }
        if hasEnded { waiter.continuation.resume(returning: .failure(.cancelled)) }
        resume(admitted)
    }

    private func end(_ id: Int, isRefusal: Bool) {
        let (waiter, error, admitted) = state.withLock { state -> (Waiter?, RequestError, [Waiter]) in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                if !isRefusal { state.ended.insert(id) }
                return (nil, .cancelled, [])
            }
            let waiter = state.waiters.remove(at: index)
            if isRefusal { state.refused += 1 }
            // The next one may fit.
            return (waiter, isRefusal ? overloaded(state) : .cancelled, admit(&state))
        }
        waiter?.continuation.resume(returning: .failure(error))
        resume(admitted)
    }

    /// Takes all waiters out that have a place now.
    private func admit(_ state: inout State) -> [Waiter] {
        var admitted: [Waiter] = []
        var index = 0
        while index < state.waiters.count {
            let waiter = state.waiters[index]
            if fits(waiter.cost, host: waiter.host, state: state) {
                take(waiter.cost, host: waiter.host, state: &state)
                admitted.append(state.waiters.remove(at: index))
            } else if waiter.host != nil, state.running < places {
                // Its host is busy, which is no reason for others to wait.
                index += 1
            } else {
                break
            }
        }
        return admitted
    }

    private func resume(_ waiters: [Waiter]) {
        for waiter in waiters {
            waiter.continuation.resume(returning: .success(Place(self, cost: waiter.cost, host: waiter.host)))
        }
    }

    private func take(_ cost: Int, host: String?, state: inout State) {
        state.running += 1
        state.cost += cost
        if let host { state.hosts[host, default: 0] += 1 }
    }

    private func fits(_ cost: Int, host: String?, state: State) -> Bool {
        guard state.running < places else { return false }
        // One that is larger than all places runs alone.
        guard state.cost <= capacity - min(cost, capacity) || state.running == 0 else { return false }
        return host.map { state.hosts[$0] ?? 0 < perHost } ?? true
    }

    /// Whether waiters go before a new request: those of other hosts that are busy do not.
    private func isBehind(_ priority: RequestPriority, host: String?, state: State) -> Bool {
        state.waiters.contains { $0.priority >= priority && fits($0.cost, host: $0.host, state: state) }
    }

    var overloaded: RequestError { state.withLock { overloaded($0) } }

    private func overloaded(_ state: State) -> RequestError {
        let seconds = Double(state.waiters.count + 1) * state.meanTime / Double(places)
        return .overloaded(retryAfter: max(1, min(30, Int(seconds.rounded(.up)))))
    }
}
