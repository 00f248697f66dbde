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

/// The place of the helper executable.
package enum WorkerLocation: Sendable, Hashable {
    /// The first of: the path in the environment variable `VITRINE_WORKER`; `vitrine-worker` beside the running
    /// program; `vitrine-worker` in `PATH`.
    case automatic
    /// The executable at a path.
    case executable(String)
    /// The running program, whose main must call ``VitrineWorkerMain/runIfRequested()``. Such a worker has the decoders
    /// of this library, not those of libvips.
    case hostProgram

    /// Returns the program to start, or nil when none is installed.
    package func resolve(program: String = "vitrine-worker") -> WorkerCommand? {
        switch self {
        case .executable(let path):
            return HelperProgram.isExecutable(path) ? WorkerCommand(path: path, arguments: [path]) : nil
        case .hostProgram:
            return HelperProgram.running.map { WorkerCommand(path: $0, arguments: [$0, WorkerProtocol.argument]) }
        case .automatic:
            return HelperProgram.path(of: program).map { WorkerCommand(path: $0, arguments: [$0]) }
        }
    }
}

/// A program and its arguments, the program's own name first.
package struct WorkerCommand: Sendable, Hashable {
    package let path: String
    package let arguments: [String]

    package init(path: String, arguments: [String]) {
        self.path = path
        self.arguments = arguments
    }

    /// Returns the variables that a worker inherits. It gets no others: a host's environment often holds secrets.
    package static func environment() -> [String] {
        let inherited = [
            "PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
            "XDG_DATA_DIRS", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "VITRINE_WORKER_SANDBOX",
            // Fills memory that was not written, for tests (mallopt(3)).
            "MALLOC_PERTURB_",
        ]
        var variables: [String] = inherited.compactMap { name in
            getenv(name).map { "\(name)=\(PathText.text(cString: $0))" }
        }
        // Pages of 2 MB for large blocks: most of the time that a small AVIF of many pixels takes is the system's, for
        // one page after the other (glibc manual, Memory Allocation Tunables).
        variables += ["MALLOC_ARENA_MAX=1", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"]
        return variables
    }
}
