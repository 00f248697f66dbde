import VitrineWorkers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Lets a program serve as its own worker for the formats that this library has decoders for.
///
/// ```swift
/// @main struct MyProgram {
///     static func main() async {
///         VitrineWorkerMain.runIfRequested()
///         // …
///     }
/// }
/// ```
public enum VitrineWorkerMain {
    /// Serves as a worker and never returns if a pool has started this program as a worker; otherwise returns at once.
    ///
    /// Call it first in main, before the program starts threads or opens files. Such a worker has the decoders of this
    /// module, without those of libvips.
    public static func runIfRequested() {
        WorkerProtocol.isOffered.store(true, ordering: .releasing)
        guard CommandLine.arguments.dropFirst().first == WorkerProtocol.argument else { return }
        let server = WorkerServer(codecs: .standard, files: InputReader())
        exit(server.run().rawValue)
    }
}
