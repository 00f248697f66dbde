#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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
            return Self.isExecutable(path) ? WorkerCommand(path: path, arguments: [path]) : nil
        case .hostProgram:
            return Self.runningProgram().map { WorkerCommand(path: $0, arguments: [$0, WorkerProtocol.argument]) }
        case .automatic:
            if let path = Self.candidates(program).first(where: Self.isExecutable) {
                return WorkerCommand(path: path, arguments: [path])
            }
            return VitrineWorkerMain.isOffered ? WorkerLocation.hostProgram.resolve() : nil
        }
    }

    /// The environment variable that names a helper: `vitrine-worker` has `VITRINE_WORKER`.
    package static func variable(for program: String) -> String {
        String(program.uppercased().map { $0 == "-" ? "_" : $0 })
    }

    private static func candidates(_ program: String) -> [String] {
        var paths: [String] = []
        if let named = getenv(variable(for: program)) {
            let path = String(cString: named)
            if !path.isEmpty { return [path] }
        }
        if let running = runningProgram(), let slash = running.lastIndex(of: "/") {
            paths.append(running[...slash] + program)
        }
        return paths + inSearchPath(program)
    }

    /// Where a program could be according to `PATH`.
    package static func inSearchPath(_ program: String) -> [String] {
        guard let search = getenv("PATH") else { return [] }
        // Relative entries would depend on where the program was started.
        return String(cString: search).split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/\(program)" }
    }

    /// Whether there is a file that this process may start.
    package static func isExecutable(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }

    private static func runningProgram() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = buffer.withUnsafeMutableBytes { bytes in
            readlink("/proc/self/exe", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        guard count > 0, count < buffer.count else { return nil }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
}
