import Synchronization
import VitrineCore

/// Bounds the bytes of sources that are held in memory, from the first byte of a source until its render begins.
///
/// A source of known length waits until its bytes fit, before its body is read. A longer one than the whole budget
/// waits until it is alone. A source of unknown length may have to wait in the middle. So that such sources never wait
/// for each other, one of them at a time may exceed the budget.
package final class SourceBudget: Sendable {
    private typealias Outcome = Result<Void, RequestError>

    private struct Waiter {
        let id: Int
        let holder: Int
        let host: String?
        /// The bytes that the holder wants in all.
        let bytes: Int
        let outcome = AsyncPromise<Outcome>()
    }

    private struct State {
        var used = 0
        var held: [Int: Int] = [:]
        var hosts: [String: Int] = [:]
        var waiters: [Waiter] = []
        /// The holder that may exceed the budget.
        var exceeding: Int?
        var refused = 0
        var nextID = 0
    }

    private let capacity: Int
    private let perHost: Int
    private let deadline: Duration
    private let state = Mutex(State())

    init(_ limits: Admission.Limits) {
        capacity = max(1, limits.sourceBytes.bytes)
        // A slow host with large sources leaves room for the others.
        perHost = max(1, capacity / 2)
        deadline = limits.queueDeadline
    }

    /// The sources that wait, those that hold bytes, and these bytes.
    package var counts: Admission.Counts {
        state.withLock { state in
            Admission.Counts(
                waiting: state.waiters.count, running: state.held.count, cost: state.used, refused: state.refused)
        }
    }

    /// Returns a reservation of no bytes.
    ///
    /// - Parameters:
    ///   - host: The host of the source; nil for sources without a network.
    ///   - queue: Counts the time that the reservation waits.
    package func reservation(host: String?, queue: QueueTime = QueueTime()) -> SourceReservation {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return SourceReservation(self, id: id, host: host, queue: queue)
    }

    // MARK: Reservations

    fileprivate func reserveNow(_ bytes: Int, holder: Int, host: String?) -> Bool {
        state.withLock { state in
            // Those that wait already go first, unless bytes are held already.
            guard state.held[holder] != nil || !state.waiters.contains(where: { $0.host == nil || $0.host == host })
            else { return false }
            return take(bytes, holder: holder, host: host, state: &state)
        }
    }

    fileprivate func reserve(_ bytes: Int, holder: Int, host: String?) async throws(RequestError) {
        if Task.isCancelled { throw .cancelled }
        let (waiter, admitted) = state.withLock { state in
            state.nextID += 1
            let waiter = Waiter(id: state.nextID, holder: holder, host: host, bytes: bytes)
            state.waiters.append(waiter)
            return (waiter, admit(&state))
        }
        resume(admitted)
        let timer = Task {
            try await Task.sleep(for: deadline)
            end(waiter.id, .overloaded(retryAfter: Self.retryAfter), isRefusal: true)
        }
        defer { timer.cancel() }
        let outcome = await withTaskCancellationHandler {
            await waiter.outcome.value()
        } onCancel: {
            end(waiter.id, .cancelled, isRefusal: false)
        }
        try outcome.get()
    }

    /// Sets the bytes of a holder, whether they fit or not.
    fileprivate func set(_ bytes: Int, holder: Int, host: String?) {
        let admitted = state.withLock { state in
            change(to: bytes, holder: holder, host: host, state: &state)
            return admit(&state)
        }
        resume(admitted)
    }

    /// The seconds after which a refused client may try again. How long sources take is unknown.
    private static let retryAfter = 2

    // MARK: Waiters

    private func end(_ id: Int, _ error: RequestError, isRefusal: Bool) {
        let (waiter, admitted) = state.withLock { state -> (Waiter?, [Waiter]) in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return (nil, []) }
            if isRefusal { state.refused += 1 }
            // The next one may fit.
            return (state.waiters.remove(at: index), admit(&state))
        }
        waiter?.outcome.fulfill(.failure(error))
        resume(admitted)
    }

    /// Takes all waiters out whose bytes fit now: first those that hold bytes already, then the others in their order.
    private func admit(_ state: inout State) -> [Waiter] {
        var admitted: [Waiter] = []
        func take(_ wanted: (Waiter) -> Bool) {
            var index = 0
            while index < state.waiters.count {
                let waiter = state.waiters[index]
                if wanted(waiter) {
                    if self.take(waiter.bytes, holder: waiter.holder, host: waiter.host, state: &state) {
                        admitted.append(state.waiters.remove(at: index))
                        continue
                    }
                    // A busy host is no reason for others to wait, and neither is one that may not exceed the budget.
                    let isBehindItsHost = state.used + waiter.bytes <= capacity
                    if state.held[waiter.holder] == nil, !isBehindItsHost { return }
                }
                index += 1
            }
        }
        take { state.held[$0.holder] != nil }
        take { state.held[$0.holder] == nil }
        return admitted
    }

    private func resume(_ waiters: [Waiter]) {
        for waiter in waiters { waiter.outcome.fulfill(.success(())) }
    }

    private func take(_ bytes: Int, holder: Int, host: String?, state: inout State) -> Bool {
        let held = state.held[holder]
        let more = bytes - (held ?? 0)
        let ofHost = host.map { state.hosts[$0] ?? 0 } ?? 0
        let fits = state.used + more <= capacity && (host == nil || ofHost + more <= perHost)
        // One that is larger than its share runs alone.
        let isAlone = state.used == 0 || ofHost == 0 && host != nil && state.used + more <= capacity
        if more > 0, !fits, held == nil ? !isAlone : state.exceeding != nil && state.exceeding != holder {
            return false
        }
        if more > 0, !fits, held != nil { state.exceeding = holder }
        change(to: max(bytes, held ?? 0), holder: holder, host: host, state: &state)
        return true
    }

    private func change(to bytes: Int, holder: Int, host: String?, state: inout State) {
        let more = bytes - (state.held[holder] ?? 0)
        state.held[holder] = bytes > 0 ? bytes : nil
        if bytes == 0, state.exceeding == holder { state.exceeding = nil }
        state.used += more
        guard let host else { return }
        let ofHost = (state.hosts[host] ?? 0) + more
        state.hosts[host] = ofHost > 0 ? ofHost : nil
    }
}

/// The bytes of one source, which are given back at the deinitialization, if not before.
package final class SourceReservation: Sendable {
    private let budget: SourceBudget
    private let id: Int
    private let host: String?
    private let queue: QueueTime
    private let refusal = Mutex<RequestError?>(nil)

    fileprivate init(_ budget: SourceBudget, id: Int, host: String?, queue: QueueTime) {
        (self.budget, self.id, self.host, self.queue) = (budget, id, host, queue)
    }

    deinit { release() }

    /// The error of ``reserve(_:)``; nil if there was none.
    var error: RequestError? { refusal.withLock { $0 } }
    /// The time that it has waited.
    var waited: Duration { queue.total() }

    /// Reserves a number of bytes in all, if they fit now.
    package func reserveNow(_ bytes: Int) -> Bool { budget.reserveNow(bytes, holder: id, host: host) }

    /// Returns as soon as a number of bytes in all is reserved.
    ///
    /// - Throws: ``RequestError`` 503 `overloaded` if that takes too long.
    package func reserve(_ bytes: Int) async throws(RequestError) {
        if reserveNow(bytes) { return }
        queue.begin()
        defer { queue.end() }
        do throws(RequestError) {
            try await budget.reserve(bytes, holder: id, host: host)
        } catch {
            refusal.withLock { $0 = error }
            throw error
        }
    }

    /// Corrects the bytes in all to those that are really held.
    package func correct(to bytes: Int) { budget.set(bytes, holder: id, host: host) }

    /// Gives the bytes back.
    package func release() { budget.set(0, holder: id, host: host) }
}

/// The time that work waits for a place in this server, rather than for its source or its render.
package final class QueueTime: Sendable {
    private struct State {
        /// The times in queues until now, in their order.
        var waits: [Range<ContinuousClock.Instant>] = []
        var began: ContinuousClock.Instant?
        var followed: QueueTime?
    }

    private let state = Mutex(State())

    package init() {}

    package func begin() { state.withLock { $0.began = $0.began ?? .now } }

    package func end() {
        state.withLock { state in
            guard let began = state.began else { return }
            state.waits.append(began..<max(began, .now))
            state.began = nil
        }
    }

    /// Counts the time of other work as its own.
    func follow(_ other: QueueTime) { state.withLock { $0.followed = other } }

    var isWaiting: Bool {
        let (isWaiting, followed) = state.withLock { ($0.began != nil, $0.followed) }
        return isWaiting || followed?.isWaiting == true
    }

    /// The time so far, or that since a caller began to wait for the work.
    package func total(since start: ContinuousClock.Instant? = nil) -> Duration {
        let (waits, followed) = state.withLock { state in
            (state.waits + (state.began.map { [$0..<max($0, .now)] } ?? []), state.followed)
        }
        return waits.reduce(followed?.total(since: start) ?? .zero) { total, wait in
            let begin = max(wait.lowerBound, start ?? wait.lowerBound)
            return total + max(.zero, wait.upperBound - begin)
        }
    }

    /// Whether a queue is why work has not ended: it waits in one, or did so for at least half of the time since a
    /// caller began to wait for it.
    func isReason(since start: ContinuousClock.Instant) -> Bool {
        isWaiting || total(since: start) * 2 >= ContinuousClock.now - start
    }
}

extension QueueTime {
    /// Counts the time of an operation.
    func counting<Value: Sendable>(
        _ wait: () async throws(RequestError) -> Value
    ) async throws(RequestError) -> Value {
        begin()
        defer { end() }
        return try await wait()
    }
}
