extension WorkerFailure {
    /// A reply that breaks the protocol.
    static let misbehaviour = WorkerFailure(kind: .workerFailed, reason: "the worker's answer breaks the protocol")
}

extension WorkerProcess.Failure {
    /// What the caller is told.
    func imageError(input: String, format: ImageFormat?, isCancelled: Bool) -> ImageError {
        switch self {
        case .refused(let failure): return failure.error(input: input, format: format)
        case .unprepared(let error): return error
        case .timedOut: return .timedOut(input: input)
        case .interrupted: return .cancelled(input: input)
        case .misbehaved: return WorkerFailure.misbehaviour.error(input: input, format: format)
        case .system(let error): return .workerFailed(input: input, reason: error.description)
        case .ended(let exit, let hadTaken):
            if isCancelled { return .cancelled(input: input) }
            // The worker's own fence, a little behind the deadline.
            if exit.signal == 24 { return .timedOut(input: input) }
            let when = hadTaken ? "while it read the picture" : "before it took the request"
            return .workerFailed(input: input, reason: "the worker \(exit.description) \(when)")
        }
    }
}

extension WorkerProcess.Exit: CustomStringConvertible {
    /// For example "was ended by SIGABRT".
    package var description: String {
        guard signal == 0 else { return "was ended by \(Self.names[signal] ?? "signal \(signal)")" }
        switch WorkerExit(rawValue: code) {
        case .notSandboxed: return "could not lock itself in (VITRINE_WORKER_SANDBOX=off runs it without) and ended"
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
