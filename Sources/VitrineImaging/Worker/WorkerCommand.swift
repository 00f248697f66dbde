import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A program and its arguments, the program's own name first.
package struct WorkerCommand: Sendable, Hashable {
    package let path: String
    package let arguments: [String]

    package init(path: String, arguments: [String]) {
        self.path = path
        self.arguments = arguments
    }

    /// The variables a worker inherits. Nothing else crosses: a host's environment often holds secrets.
    package static func environment() -> [String] {
        let inherited = [
            "PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
            "XDG_DATA_DIRS", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "VITRINE_WORKER_SANDBOX",
        ]
        var variables: [String] = inherited.compactMap { name in
            getenv(name).map { "\(name)=\(PathText.text(cString: $0))" }
        }
        variables.append("MALLOC_ARENA_MAX=1")
        return variables
    }
}
