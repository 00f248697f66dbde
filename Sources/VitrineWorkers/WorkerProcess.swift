import CVitrineSandbox
import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A running helper process. It is ended and reaped when the object is released.
package final class WorkerProcess: Sendable {
    /// The reason why an exchange gave no result.
    package enum Failure: Error {
        /// The process ended. `hadTaken`: after it had begun with the request.
        case ended(Exit, hadTaken: Bool)
        /// ``interrupt(_:)`` ended the process.
        case interrupted
        /// No reply came before the deadline, neither in its processor time nor in a multiple of it.
        case timedOut
        /// The reply is malformed, or belongs to another request.
        case misbehaved
        /// The reply is an error.
        case refused(WorkerFailure)
        /// The input could not be read, and nothing was sent.
        case unprepared(ImageError)
        /// A system call failed.
        case system(SystemCallError)
        /// The system lacks a library that the program links.
        case unloadable(library: String)
        /// A part of the sandbox is missing, and ``WorkerPool/requiresCompleteSandbox`` is set.
        case unconfined(missing: String)
    }

    /// The end of a process.
    package struct Exit: Sendable, Hashable {
        /// The signal that ended the process, or 0.
        package var signal: Int32
        /// The exit status.
        package var code: Int32

        /// Whether a defect ended the process: a failed check or damaged memory. `SIGSYS` too, as a library that finds
        /// its memory damaged tells it by calls that the sandbox forbids.
        package var isCrash: Bool { Self.crashes.contains(signal) }

        /// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV and SIGSYS of Linux, where workers run (signal(7)).
        private static let crashes: Set<Int32> = [4, 5, 6, 7, 8, 11, 31]
    }

    private struct State {
        var serving: UInt64?
        var isInterrupted = false
        var isGreeted = false
        var document: UInt64?
        var served = 0
        /// Milliseconds of the socket's time limit for a packet.
        var patience: Int32?
        var exit: Exit?
        /// The limits in force.
        var limits = csandbox_limits()
    }

    /// Seconds for a helper to load its codecs.
    private static let startDeadline = 30.0

    package let memory: SharedMemory
    private let socket: Int32
    private let process: csandbox_process
    private let program: String
    /// The memory of the process, until it has been reaped.
    private let reservation: HelperMemory.Reservation
    private let owner = getpid()
    private let state = Locked(State())

    /// The most memory of the process.
    package var share: HelperMemory.Share { reservation.share }

    /// The process number.
    package var identifier: Int32 { process.pid }
    /// The last document, which the process may still have open.
    package var document: UInt64? {
        get { state.withLock { $0.document } }
        set { state.withLock { $0.document = newValue } }
    }
    /// The number of requests answered.
    package var served: Int { state.withLock { $0.served } }
    /// Whether the process can take another request.
    package var isUsable: Bool {
        // Between requests the socket becomes readable only when the other side has closed it.
        !state.withLock(\.isInterrupted) && csandbox_wait_readable(socket, 0) == ETIMEDOUT
    }

    /// Starts `command`. The first request waits for its greeting.
    package init(_ command: WorkerCommand, _ reservation: HelperMemory.Reservation) throws(SystemCallError) {
        let memory = try SharedMemory(size: reservation.share.sharedBytes)
        var ends: [Int32] = [-1, -1]
        var code = csandbox_socket_pair(&ends)
        guard code == 0 else { throw SystemCallError(call: "socketpair", code: code) }
        var process = csandbox_process(pid: -1, pidfd: -1)
        code = withCStrings(command.arguments) { arguments in
            withCStrings(WorkerCommand.environment()) { environment in
                PathText.withSystemPath(command.path, failure: EINVAL) {
                    csandbox_spawn($0, arguments, environment, ends[1], memory.descriptor, &process)
                }
            }
        }
        close(ends[1])
        guard code == 0 else {
            close(ends[0])
            throw SystemCallError(call: "starting \(command.path)", code: code)
        }
        self.memory = memory
        self.process = process
        program = command.path
        self.reservation = reservation
        socket = ends[0]
    }

    deinit {
        close(socket)
        // A copy of this object in a forked child closes its descriptors and leaves the parent's worker alone.
        if owner == getpid() { _ = end() }
        csandbox_forget(process)
    }

    /// Kills the process if it works on request `id`. Can be called from any thread.
    package func interrupt(_ id: UInt64) {
        state.withLock { state in
            guard state.serving == id, state.exit == nil else { return }
            state.isInterrupted = true
            csandbox_kill(process)
        }
    }

    /// Sends a request and waits for its reply. Kills the process after `seconds` of its processor time, or after
    /// ``Deadline/wallFactor`` times as many seconds.
    ///
    /// The shared memory must hold the input of the request.
    package func exchange(
        _ request: some WorkerMessage, input: Int32, seconds: Double
    ) throws(Failure) -> WorkerReply {
        try greet()
        try limit(request.limits)
        // A worker that dies before it takes the request leaves the previous number here.
        let code = request.encoded().withUnsafeBytes { csandbox_send(socket, $0.baseAddress, $0.count, input) }
        guard code == 0 else {
            if code == EPIPE || code == ECONNRESET { throw ended(request.id) }
            throw .system(SystemCallError(call: "sendmsg", code: code))
        }
        let packet = try receive(request.id, seconds: seconds)
        guard let reply = WorkerReply(packet), reply.id == request.id else { throw .misbehaved }
        state.withLock { $0.served += 1 }
        return reply
    }

    /// Marks the process as working on request `id`, so that ``interrupt(_:)`` may end it.
    package func begin(_ id: UInt64) { state.withLock { $0.serving = id } }

    /// Marks the process as idle. Afterwards, interruptions of earlier requests have no effect.
    package func finish() { state.withLock { $0.serving = nil } }

    private func greet() throws(Failure) {
        guard !state.withLock(\.isGreeted) else { return }
        let packet: [UInt8]
        do throws(Failure) {
            packet = try receive(0, seconds: Self.startDeadline)
        } catch {
            if case .ended(let exit, _) = error, exit.signal == 0, WorkerExit(rawValue: exit.code) == .notSandboxed {
                Self.report(
                    "\(program) ends, as the kernel or the container forbids seccomp", of: program,
                    setting: "VITRINE_WORKER_SANDBOX=off decodes without it")
            }
            throw error
        }
        guard let greeting = WorkerReply(packet), case .pong(let sandbox) = greeting.outcome else { throw .misbehaved }
        if let missing = sandbox.missing {
            Self.report(
                "\(program) runs without \(missing), which the kernel or the container forbids", of: program,
                setting: "VITRINE_WORKER_SANDBOX=required refuses to decode without it")
            guard !WorkerPool.requiresCompleteSandbox else {
                csandbox_kill(process)
                throw .unconfined(missing: missing)
            }
        }
        state.withLock { $0.isGreeted = true }
    }

    private static let reported = Locked<Set<String>>([])

    /// Logs a missing part of the sandbox, once for each program, with the setting that changes its consequence.
    private static func report(_ message: String, of program: String, setting: String) {
        guard reported.withLock({ $0.insert(program).inserted }) else { return }
        Log.logger("worker").warning("\(message)", metadata: ["setting": "\(setting)"])
    }

    /// Bytes of address space for programs and libraries where the private memory is cut down to less.
    private static let codeSpace = 1 << 30

    /// Bounds memory and processor time for the next request.
    private func limit(_ limits: ImageLimits) throws(Failure) {
        func bounds(privateBytes: Int) -> csandbox_limits {
            let data = UInt64(clamping: privateBytes - Int(CSANDBOX_STACK))
            // The bound is on private memory. The address space also holds the shared memory and mapped files.
            let space = UInt64(clamping: max(privateBytes, Self.codeSpace)) + UInt64(clamping: share.sharedBytes)
            // Beyond the deadline: a second bound, for codecs with several threads.
            return csandbox_limits(
                address_space: space, data: data, cpu_seconds: UInt64(max(1, min(limits.deadline * 2, 86_400))))
        }
        let wanted = bounds(privateBytes: min(max(limits.maximumWorkerMemory, 64 << 20), share.privateBytes))
        let most = bounds(privateBytes: share.privateBytes)
        let code = state.withLock { csandbox_limit(process, most, wanted, &$0.limits) }
        // A process that has ended has no limits: the exchange reports its end.
        guard code == 0 || code == ESRCH else { throw .system(SystemCallError(call: "prlimit", code: code)) }
    }

    /// Seconds of processor time that the process has used; nil when it has ended.
    package var processorTime: Double? {
        let nanoseconds = csandbox_processor_time(process)
        return nanoseconds < 0 ? nil : Double(nanoseconds) / 1e9
    }

    private func receive(_ id: UInt64, seconds: Double) throws(Failure) -> [UInt8] {
        let (begun, worked) = (ContinuousClock.now, processorTime)
        var patience = seconds
        while true {
            if let packet = try receive(id, milliseconds: Self.milliseconds(patience)) { return packet }
            let left = seconds - ((processorTime ?? 0) - (worked ?? 0))
            let wait = seconds * Deadline.wallFactor - (ContinuousClock.now - begun) / .seconds(1)
            guard left > 0, wait > 0 else {
                csandbox_kill(process)
                throw .timedOut
            }
            // Others had the processor.
            patience = max(min(left, wait), 0.01)
        }
    }

    /// Returns a time for `poll`; at least 1 ms, at most a day.
    private static func milliseconds(_ seconds: Double) -> Int32 {
        guard seconds > 0 else { return 1 }
        return Int32(max(1, min(seconds * 1_000, 86_400_000)))
    }

    /// Returns the next packet; nil when none has come.
    private func receive(_ id: UInt64, milliseconds: Int32) throws(Failure) -> [UInt8]? {
        let code: Int32 = state.withLock { state in
            if state.patience == milliseconds { return 0 }
            defer { state.patience = milliseconds }
            return csandbox_set_patience(socket, milliseconds)
        }
        guard code == 0 else { throw .system(SystemCallError(call: "setsockopt", code: code)) }
        var descriptor: Int32 = -1
        var result: Int32 = 0
        let packet = [UInt8](unsafeUninitializedCapacity: WorkerProtocol.maximumPacket) { buffer, count in
            count = 0
            result = csandbox_receive(socket, milliseconds, buffer.baseAddress, buffer.count, &count, &descriptor)
        }
        if result == ETIMEDOUT { return nil }
        // Clients never take descriptors.
        if descriptor >= 0 { close(descriptor) }
        guard result == 0, descriptor < 0 else { throw .misbehaved }
        guard !packet.isEmpty else { throw ended(id) }
        return packet
    }

    private func ended(_ id: UInt64) -> Failure {
        if state.withLock(\.isInterrupted) { return .interrupted }
        let exit = end(), hadTaken = id != 0 && memory.takenRequest == id
        // The status of a loader that cannot start a program.
        if exit.signal == 0, exit.code == 127, !hadTaken, let library = missingLibrary {
            return .unloadable(library: library)
        }
        return .ended(exit, hadTaken: hadTaken)
    }

    /// The name of a library that the program links and the system does not have; nil if there is none.
    private var missingLibrary: String? {
        var lines = WorkerCommand.environment()
        lines.append("LD_TRACE_LOADED_OBJECTS=1")
        return withCStrings(lines) { environment in
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { name in
                guard let start = name.baseAddress else { return nil }
                let isMissing = PathText.withSystemPath(program, failure: false) {
                    csandbox_find_missing_library($0, environment, start, name.count)
                }
                return isMissing ? String(cString: start) : nil
            }
        }
    }

    /// Kills and reaps the process, once. A process that is already ending keeps its own reason.
    private func end() -> Exit {
        state.withLock { state in
            if let exit = state.exit { return exit }
            csandbox_kill(process)
            var exit = Exit(signal: 0, code: 0)
            _ = csandbox_reap(process, true, &exit.signal, &exit.code)
            state.exit = exit
            return exit
        }
    }
}

/// Calls `body` with a null-terminated array of C strings.
func withCStrings<R>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
) -> R {
    var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { body($0.baseAddress!) }
}

extension WorkerFailure {
    /// A reply that violates the protocol.
    static let misbehaviour = WorkerFailure(kind: .workerFailed, reason: "the worker's reply violates the protocol")
}

extension WorkerProcess.Failure {
    /// Returns the error for the caller.
    func imageError(input: String, format: ImageFormat?, isCancelled: Bool) -> ImageError {
        switch self {
        case .refused(let failure): return failure.error(input: input, format: format)
        case .unprepared(let error): return error
        case .timedOut: return .timedOut(input: input)
        case .interrupted: return .cancelled(input: input)
        case .misbehaved: return WorkerFailure.misbehaviour.error(input: input, format: format)
        case .system(let error): return .workerFailed(input: input, reason: error.description)
        case .unloadable(let library):
            return .workerFailed(
                input: input,
                reason: "the worker needs \(library), which is not installed: it was built for another version of that library")
        case .unconfined(let missing):
            return .workerFailed(
                input: input, reason: "the worker runs without \(missing), and a complete sandbox is required")
        case .ended(let exit, let hadTaken):
            if isCancelled { return .cancelled(input: input) }
            // The worker's processor time limit, a little behind the deadline.
            if exit.signal == 24 { return .timedOut(input: input) }
            if exit.isCrash {
                Log.logger("worker").notice(
                    "a worker crashed", metadata: ["signal": "\(exit.name)", "input": "\(input)"])
                return .workerFailed(
                    input: input,
                    reason: hadTaken ? "the decoder crashed" : "the worker crashed before it took the request")
            }
            let when = hadTaken ? "while it read the image" : "before it took the request"
            return .workerFailed(input: input, reason: "the worker \(exit.description) \(when)")
        }
    }
}

extension WorkerProcess.Exit: CustomStringConvertible {
    /// The name of the signal.
    fileprivate var name: String { Self.names[signal] ?? "signal \(signal)" }

    /// For example "was ended by SIGKILL".
    package var description: String {
        guard signal == 0 else { return "was ended by \(name)" }
        switch WorkerExit(rawValue: code) {
        case .notSandboxed: return "could not enter its sandbox and ended (VITRINE_WORKER_SANDBOX=off runs it without one)"
        case .noMemory: return "could not map its memory and ended"
        case .misused: return "was started without its descriptors and ended"
        case .idle, nil: return "ended with status \(code)"
        }
    }

    /// Numbers of Linux, where workers run (signal(7)).
    private static let names: [Int32: String] = [
        4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM",
        24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
    ]
}
