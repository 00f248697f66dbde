import VitrineCore

/// Where the helper executable is found.
public enum WorkerLocation: Sendable, Hashable {
    /// The first of: the path in the environment variable `VITRINE_WORKER`; `vitrine-worker` beside the running
    /// program; `vitrine-worker` in `PATH`; the running program itself, when its main calls
    /// ``VitrineWorkerMain/runIfRequested()``.
    case automatic
    /// The executable at a path.
    case executable(String)
    /// The running program, whose main must call ``VitrineWorkerMain/runIfRequested()``. Such a worker has the decoders
    /// of this library, not those of libvips.
    case hostProgram

    /// What to start, or nil when there is nothing.
    package func resolve(program: String = "vitrine-worker") -> WorkerCommand? {
        switch self {
        case .executable(let path):
            return HelperProgram.isExecutable(path) ? WorkerCommand(path: path, arguments: [path]) : nil
        case .hostProgram:
            return HelperProgram.running.map { WorkerCommand(path: $0, arguments: [$0, WorkerProtocol.argument]) }
        case .automatic:
            if let path = HelperProgram.path(of: program) {
                return WorkerCommand(path: path, arguments: [path])
            }
            return VitrineWorkerMain.isOffered ? WorkerLocation.hostProgram.resolve() : nil
        }
    }
}
