import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Lets a program be its own worker where no `vitrine-worker` is installed.
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
    private static let offered = Atomic<Bool>(false)

    /// Whether this program's main has called ``runIfRequested()``, so that it can be started as a worker.
    static var isOffered: Bool { offered.load(ordering: .acquiring) }

    /// Serves as a worker and never returns, when a pool started this program for that; else returns at once.
    ///
    /// Call it first in main, before threads, files or sockets. Such a worker has this library's own decoders that can
    /// run without libvips.
    public static func runIfRequested() {
        offered.store(true, ordering: .releasing)
        guard CommandLine.arguments.dropFirst().first == WorkerProtocol.argument else { return }
        exit(WorkerServer(decoders: DecoderRegistry.standard.decoders).run().rawValue)
    }
}
