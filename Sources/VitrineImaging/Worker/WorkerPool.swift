import Synchronization
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A few helper processes that decode what is foreign, cannot be cancelled, or is known to abort.
///
/// Workers start when they are first needed, one for each processor at most, and end after 30 idle seconds. One that
/// has served 10,000 pictures or holds more than 300 MB is replaced. Cancelling a decode, or reaching
/// ``ImageLimits/deadline``, kills its worker; a codec that crashes takes only its worker along.
///
/// Calls block, in order of arrival, until a worker is free: make them from a thread that may block. An ended idle
/// worker stays a zombie until the pool is used again or released.
///
/// A forked child may keep using the pool: it starts workers of its own. The pool ends its workers when it is released.
public final class WorkerPool: Sendable {
    private struct State {
        var idle: [WorkerProcess] = []
        /// Workers handed out, and vacancies given to callers that are starting one.
        var busy = 0
        var waiting: [WorkerTicket] = []
        var owner = getpid()
        var nextRequest: UInt64 = 0
    }

    private let location: WorkerLocation
    private let program: String
    private let maximumWorkers: Int
    let recycling: WorkerRecycling
    private let isFound = Atomic<Bool>(false)
    private let state = Locked(State())

    /// A pool with one worker for each processor.
    public static let shared = WorkerPool()

    /// A pool.
    ///
    /// - Parameters:
    ///   - location: Where the helper is found, looked up whenever one is started.
    ///   - maximumWorkers: At least 1; nil for the number of processors.
    public convenience init(location: WorkerLocation = .automatic, maximumWorkers: Int? = nil) {
        self.init(program: "vitrine-worker", location: location, maximumWorkers: maximumWorkers)
    }

    /// A pool of another helper that speaks the same protocol.
    package init(
        program: String, location: WorkerLocation = .automatic, maximumWorkers: Int? = nil,
        recycling: WorkerRecycling = WorkerRecycling()
    ) {
        self.program = program
        self.location = location
        self.recycling = recycling
        self.maximumWorkers = max(1, maximumWorkers ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    }

    /// Whether there is a helper to start. Looks at the file system until it has found one.
    public var isAvailable: Bool {
        if isFound.load(ordering: .relaxed) { return true }
        guard location.resolve(program: program) != nil else { return false }
        isFound.store(true, ordering: .relaxed)
        return true
    }

    /// Process numbers of the idle workers, for tests.
    package var idleIdentifiers: [Int32] { state.withLock { $0.idle.map(\.identifier) } }

    /// Workers handed out and callers that wait, for tests.
    package var busyCount: Int { state.withLock(\.busy) }
    package var waitingCount: Int { state.withLock(\.waiting.count) }

    /// Ends the idle workers. Later calls start new ones.
    public func endIdleWorkers() {
        let ended = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        _ = ended
    }

    /// The number of the next request; never 0.
    func nextRequest() -> UInt64 {
        state.withLock { state in
            state.nextRequest += 1
            return state.nextRequest
        }
    }

    /// A worker for one request, marked as busy with it; give it back with ``release(_:isReusable:)``.
    func acquire(
        input: String, document: UInt64? = nil, cancellation: CancellationToken
    ) throws(ImageError) -> WorkerProcess {
        forgetAfterFork()
        while true {
            switch turn(document, cancellation) {
            case .worker(let worker):
                if worker.isUsable { return worker }
                release(worker, isReusable: false)
            case .vacancy:
                do throws(ImageError) {
                    return try start(input: input)
                } catch {
                    passOn()
                    throw error
                }
            case .cancelled:
                throw .cancelled(input: input)
            }
        }
    }

    /// Gives a worker back. Whether it still lives is asked when it is handed out again.
    func release(_ worker: WorkerProcess, isReusable: Bool) {
        guard isReusable, worker.served < recycling.maximumServed else { return passOn() }
        while true {
            let next: WorkerTicket? = state.withLock { state in
                if state.waiting.isEmpty {
                    state.busy -= 1
                    state.idle.append(worker)
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let next else { return }
            if next.resolve(.worker(worker)) { return }
        }
    }

    /// A worker is gone, or was not started: somebody else may start one.
    private func passOn() {
        while true {
            let next: WorkerTicket? = state.withLock { state in
                if state.waiting.isEmpty {
                    state.busy -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let next else { return }
            if next.resolve(.vacancy) { return }
        }
    }

    private func turn(_ document: UInt64?, _ cancellation: CancellationToken) -> WorkerTicket.Turn {
        if let now = state.withLock({ Self.turn(at: &$0, document, most: maximumWorkers) }) { return now }
        let ticket = WorkerTicket()
        let now: WorkerTicket.Turn? = state.withLock { state in
            if let now = Self.turn(at: &state, document, most: maximumWorkers) { return now }
            state.waiting.append(ticket)
            return nil
        }
        if let now { return now }
        let registration = cancellation.onCancel { [weak self] in
            self?.forget(ticket)
            _ = ticket.resolve(.cancelled)
        }
        defer { cancellation.remove(registration) }
        return ticket.wait()
    }

    /// What can be had without waiting.
    private static func turn(at state: inout State, _ document: UInt64?, most: Int) -> WorkerTicket.Turn? {
        if let document, let index = state.idle.lastIndex(where: { $0.document == document }) {
            state.busy += 1
            return .worker(state.idle.remove(at: index))
        }
        if let worker = state.idle.popLast() {
            state.busy += 1
            return .worker(worker)
        }
        guard state.busy < most else { return nil }
        state.busy += 1
        return .vacancy
    }

    private func forget(_ ticket: WorkerTicket) {
        state.withLock { $0.waiting.removeAll { $0 === ticket } }
    }

    private func start(input: String) throws(ImageError) -> WorkerProcess {
        guard let command = location.resolve(program: program) else {
            throw .workerFailed(
                input: input,
                reason: "\(program) was not found: \(HelperProgram.advice(for: program))")
        }
        do {
            return try WorkerProcess(command)
        } catch {
            throw .workerFailed(input: input, reason: error.description)
        }
    }

    /// After a fork the workers, and those who wait for them, are the parent's.
    private func forgetAfterFork() {
        let process = getpid()
        let inherited: [WorkerProcess] = state.withLock { state in
            guard state.owner != process else { return [] }
            defer { state = State() }
            return state.idle
        }
        _ = inherited
    }
}
