import CVitrineSandbox
import Dispatch
import Synchronization
import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The helper processes that decode untrusted input, and formats whose codecs cannot be cancelled or may abort.
///
/// Workers start when they are first needed, at most one for each processor, and end after 30 idle seconds. A worker
/// that has served 10,000 images or holds more than 300 MB is replaced. Cancelling a decode, or reaching
/// ``ImageLimits/deadline``, kills its worker. A crash of a codec ends only its worker. The image at hand is tried
/// once more in a new worker, unless this one was new: an earlier image may have damaged its memory.
///
/// All pools of a process share ``maximumTotalMemory``. When it is used up, requests wait, and idle workers of other
/// pools end.
///
/// A forked child can use the pool: it starts workers of its own. The pool ends its workers when it is released and
/// when the process exits (`exit(3)`, or a return from main). Where a signal may end the process, see
/// ``endHelpersOnSignals()``.
public final class WorkerPool: Sendable {
    private struct State {
        var idle: [WorkerProcess] = []
        /// Workers handed out, and vacancies given to callers that are starting one.
        var busy = 0
        var waiting: [WorkerTicket] = []
        var owner = getpid()
        var nextRequest: UInt64 = 0
        /// Whether a sweep of idle workers that may have ended is scheduled.
        var isSweepDue = false
    }

    /// The memory that a pool waits for.
    enum Want: Int {
        case nothing
        /// Memory for one worker more.
        case more
        /// Memory for a worker, as it has none.
        case first
    }

    private let location: WorkerLocation
    /// The name of the helper program.
    package let program: String
    private let arguments: [String]
    private let maximumWorkers: Int
    let recycling: WorkerRecycling
    private let memory: HelperMemory
    private let isFound = Atomic<Bool>(false)
    private let wantCode = Atomic<Int>(Want.nothing.rawValue)
    private let state = Locked(State())

    /// The pool of this process, with one worker for each processor.
    package static let shared = WorkerPool()
    /// The running program as a worker, with the decoders of this library, whose start takes a tenth of the time of one
    /// with libvips; nil if its main does not offer that, or if `VITRINE_WORKER` names the worker to use.
    package static var own: WorkerPool? {
        WorkerProtocol.isOffered.load(ordering: .acquiring) && getenv("VITRINE_WORKER") == nil ? running : nil
    }
    private static let running = WorkerPool(location: .hostProgram)

    /// The bytes of memory of all helper processes together: workers, helpers for PDF documents and videos, and
    /// browsers for web pages. Default: half the memory of the machine, or of the control group if that is less.
    ///
    /// Before a helper starts, it reserves ``ImageLimits/maximumWorkerMemory`` and its shared memory: 2 GB with the
    /// default limits. The total therefore bounds the number of helpers, and further requests wait. A total below one
    /// reservation reduces this reservation and lets one helper run at a time. The minimum is 512 MB.
    ///
    /// Set it before the first helper starts: running helpers keep their reservations.
    public static var maximumTotalMemory: Int {
        get { HelperMemory.shared.total }
        set { HelperMemory.shared.total = newValue }
    }

    private static let isSandboxRequired = Atomic(
        getenv("VITRINE_WORKER_SANDBOX").map { String(cString: $0) } == "required")

    /// Whether helper processes with an incomplete sandbox are refused.
    ///
    /// A helper filters its system calls with seccomp, and restricts the files that it can open with Landlock (Linux
    /// 5.13). Kernels and containers can forbid either:
    ///
    /// - Without seccomp, a helper ends and decoding fails, unless `VITRINE_WORKER_SANDBOX` is `off`.
    /// - Without Landlock, a helper opens no files. Fonts that it has not loaded at its start are missing.
    ///
    /// A missing part is logged once for each helper program. If this property is true, decoding then fails with
    /// ``ImageError/workerFailed(input:reason:)``. Default: whether `VITRINE_WORKER_SANDBOX` is `required`. Set it
    /// before the first helper starts.
    public static var requiresCompleteSandbox: Bool {
        get { isSandboxRequired.load(ordering: .relaxed) }
        set { isSandboxRequired.store(newValue, ordering: .relaxed) }
    }

    /// Makes `SIGHUP`, `SIGINT`, `SIGQUIT`, `SIGPIPE` and `SIGTERM` end and reap the helper processes before they end
    /// this process. Signals that this process handles or ignores do not change.
    ///
    /// Helpers always end with this process, but process 1 of some containers does not reap orphans. Call the method at
    /// the start of a program without handlers for these signals. A program with handlers calls `exit` at the end of
    /// its shutdown, which ends the helpers as well.
    public static func endHelpersOnSignals() { _ = csandbox_end_helpers_on_signals() }

    /// Creates a pool.
    ///
    /// - Parameters:
    ///   - location: The place of the helper, looked up for each start.
    ///   - maximumWorkers: At least 1; nil for the number of processors.
    package convenience init(location: WorkerLocation = .automatic, maximumWorkers: Int? = nil) {
        self.init(program: "vitrine-worker", location: location, maximumWorkers: maximumWorkers)
    }

    /// A pool of another helper that speaks the same protocol, or of one that is started with arguments.
    package init(
        program: String, arguments: [String] = [], location: WorkerLocation = .automatic, maximumWorkers: Int? = nil,
        recycling: WorkerRecycling = WorkerRecycling(), memory: HelperMemory = .shared
    ) {
        self.program = program
        self.arguments = arguments
        self.memory = memory
        self.location = location
        self.recycling = recycling
        self.maximumWorkers = max(1, maximumWorkers ?? Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        memory.add(self)
    }

    /// Whether a helper is installed. Searches the file system until it finds one.
    package var isAvailable: Bool {
        if isFound.load(ordering: .relaxed) { return true }
        guard command != nil else { return false }
        isFound.store(true, ordering: .relaxed)
        return true
    }

    /// The helper with its arguments. The running program takes none beside its own.
    private var command: WorkerCommand? {
        guard let found = location.resolve(program: program) else { return nil }
        if arguments.isEmpty { return found }
        return found.arguments.count == 1
            ? WorkerCommand(path: found.path, arguments: found.arguments + arguments) : nil
    }

    /// Process numbers of the idle workers, for tests.
    package var idleIdentifiers: [Int32] { state.withLock { $0.idle.map(\.identifier) } }

    /// Workers handed out and callers that wait, for tests.
    package var busyCount: Int { state.withLock(\.busy) }
    package var waitingCount: Int { state.withLock(\.waiting.count) }

    /// Ends the idle workers. Later calls start new ones.
    package func endIdleWorkers() {
        let ended = withState { state in
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

    /// Returns a worker for one request. Give it back by ``release(_:isReusable:)``.
    ///
    /// - Parameter isFresh: Whether it must be one that has served nothing yet.
    func acquire(
        input: String, limits: ImageLimits, document: UInt64? = nil, isFresh: Bool = false,
        cancellation: CancellationToken
    ) throws(ImageError) -> WorkerProcess {
        forgetAfterFork()
        let share = memory.share(for: limits)
        while true {
            switch waitForSlot(share, document: document, cancellation: cancellation) {
            case .worker(let worker):
                if worker.share.covers(share), worker.isUsable, !isFresh || worker.served == 0 { return worker }
                release(worker, isReusable: false)
            case .vacancy(let reservation):
                do throws(ImageError) {
                    return try start(reservation, input: input)
                } catch {
                    passOn()
                    throw error
                }
            case .cancelled:
                throw .cancelled(input: input)
            }
        }
    }

    /// Gives a worker back. The next ``acquire(input:limits:document:isFresh:cancellation:)`` checks whether it still
    /// runs.
    func release(_ worker: WorkerProcess, isReusable: Bool) {
        guard isReusable, worker.served < recycling.maximumServed, !memory.isDenied(besides: self) else {
            return passOn()
        }
        while true {
            let next: WorkerTicket? = withState { state in
                if state.waiting.isEmpty {
                    state.busy -= 1
                    state.idle.append(worker)
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let next else { break }
            if next.resolve(.worker(worker)) { return }
        }
        // Checked after the worker is idle: another pool looks for idle workers after it has published its want.
        if memory.isWanted(besides: self) { _ = endIdleWorker() }
        scheduleSweep()
    }

    /// Lets a waiting request start a worker, after one has ended or was not started.
    private func passOn() {
        withState { $0.busy -= 1 }
        offerVacancies()
    }

    /// Lets waiting requests start workers, as far as memory suffices. Must not be called under a lock.
    func offerVacancies() {
        while true {
            let next: (WorkerTicket, HelperMemory.Reservation)? = withState { state in
                guard let first = state.waiting.first, state.busy < maximumWorkers,
                    let reservation = memory.reserve(first.share)
                else { return nil }
                state.waiting.removeFirst()
                state.busy += 1
                return (first, reservation)
            }
            guard let (ticket, reservation) = next else { return }
            if !ticket.resolve(.vacancy(reservation)) { withState { $0.busy -= 1 } }
        }
    }

    /// Ends one idle worker.
    ///
    /// - Returns: False when no worker is idle.
    func endIdleWorker() -> Bool { withState { $0.idle.isEmpty ? nil : $0.idle.removeFirst() } != nil }

    /// The memory that this pool waits for.
    var want: Want { Want(rawValue: wantCode.load(ordering: .sequentiallyConsistent)) ?? .nothing }

    /// Changes the state, and publishes the resulting want.
    private func withState<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state)
            let want: Want =
                state.waiting.isEmpty || state.busy >= maximumWorkers
                ? .nothing : state.busy == 0 && state.idle.isEmpty ? .first : .more
            wantCode.store(want.rawValue, ordering: .sequentiallyConsistent)
            return result
        }
    }

    private func waitForSlot(
        _ share: HelperMemory.Share, document: UInt64?, cancellation: CancellationToken
    ) -> WorkerTicket.QueueSlot {
        if let now = withState({ freeSlot(in: &$0, share: share, document: document) }) { return now }
        let ticket = WorkerTicket(share: share)
        let now: WorkerTicket.QueueSlot? = withState { state in
            if let now = freeSlot(in: &state, share: share, document: document) { return now }
            state.waiting.append(ticket)
            return nil
        }
        if let now { return now }
        if want != .nothing {
            memory.endIdleWorkers(for: share, besides: self)
            // Memory may have been released before this pool published its want.
            offerVacancies()
        }
        let registration = cancellation.register { [weak self] in
            self?.forget(ticket)
            _ = ticket.resolve(.cancelled)
        }
        defer { cancellation.remove(registration) }
        return ticket.wait()
    }

    /// Returns a worker, or the right to start one, if no wait is necessary.
    private func freeSlot(
        in state: inout State, share: HelperMemory.Share, document: UInt64?
    ) -> WorkerTicket.QueueSlot? {
        if let document, let index = state.idle.lastIndex(where: { $0.document == document }) {
            state.busy += 1
            return .worker(state.idle.remove(at: index))
        }
        if let worker = state.idle.popLast() {
            state.busy += 1
            return .worker(worker)
        }
        guard state.waiting.isEmpty, state.busy < maximumWorkers, let reservation = memory.reserve(share) else {
            return nil
        }
        state.busy += 1
        return .vacancy(reservation)
    }

    private func forget(_ ticket: WorkerTicket) {
        withState { $0.waiting.removeAll { $0 === ticket } }
        // The next request may need less.
        offerVacancies()
    }

    private func start(_ reservation: HelperMemory.Reservation, input: String) throws(ImageError) -> WorkerProcess {
        guard let command else {
            throw .workerFailed(
                input: input,
                reason: "\(program) was not found: \(HelperProgram.advice(for: program))")
        }
        do {
            return try WorkerProcess(command, reservation)
        } catch {
            throw .workerFailed(input: input, reason: error.description)
        }
    }

    // MARK: Idle workers that end

    /// Schedules the reaping of workers that end while idle.
    private func scheduleSweep() {
        let isDue = withState { state in
            defer { state.isSweepDue = true }
            return !state.isSweepDue
        }
        guard isDue else { return }
        let delay = Double(WorkerServer.idleTimeout) + 1
        DispatchQueue.global().asyncAfter(deadline: .now() + delay) { [weak self] in self?.sweep() }
    }

    private func sweep() {
        let (ended, remain) = withState { state in
            state.isSweepDue = false
            guard state.owner == getpid() else { return ([WorkerProcess](), false) }
            let ended = state.idle.filter { !$0.isUsable }
            state.idle.removeAll { worker in ended.contains { $0 === worker } }
            return (ended, !state.idle.isEmpty)
        }
        _ = ended
        if remain { scheduleSweep() }
    }

    /// Forgets workers and waiting requests of the parent process after a fork.
    private func forgetAfterFork() {
        let process = getpid()
        let inherited: [WorkerProcess] = withState { state in
            guard state.owner != process else { return [] }
            defer { state = State() }
            return state.idle
        }
        _ = inherited
    }
}

/// The conditions for replacing a worker.
package struct WorkerRecycling: Sendable, Hashable {
    /// The requests after which a worker is replaced, against slow leaks below ``maximumMemory``. Default 10,000: a
    /// start takes 70 ms of processor time, less than 1 % of 10,000 small images.
    package var maximumServed = 10_000
    /// The bytes of private memory above which a worker is replaced. Default 300 MB. Checked after every fourth
    /// request.
    package var maximumMemory = 300 << 20

    package init() {}
}

/// A place in the queue for a worker.
final class WorkerTicket: Sendable {
    /// The end of a wait.
    enum QueueSlot: Sendable {
        /// An idle worker.
        case worker(WorkerProcess)
        /// The right to start one, with the memory for it.
        case vacancy(HelperMemory.Reservation)
        case cancelled
    }

    /// The memory of a worker for the request.
    let share: HelperMemory.Share
    private let slot = Locked<QueueSlot?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    init(share: HelperMemory.Share) { self.share = share }

    /// Ends the wait.
    ///
    /// - Returns: False when it has already ended: the offer must go to another request.
    func resolve(_ offer: QueueSlot) -> Bool {
        let isFirst = slot.withLock { slot in
            guard slot == nil else { return false }
            slot = offer
            return true
        }
        if isFirst { semaphore.signal() }
        return isFirst
    }

    /// Blocks until ``resolve(_:)``.
    func wait() -> QueueSlot {
        semaphore.wait()
        return slot.withLock { $0 ?? .cancelled }
    }
}
