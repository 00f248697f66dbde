#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Starts detached POSIX threads.
package enum Thread {
    /// Stack of every thread, in bytes. Codecs and SQLite need more than musl's default of 128 KiB.
    static let stackSize = 2 << 20

    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts a thread.
    ///
    /// - Returns: Whether there is one; false when the system allows no more threads.
    package static func start(name: String, body: @escaping @Sendable () -> Void) -> Bool {
        var attributes = pthread_attr_t()
        guard pthread_attr_init(&attributes) == 0 else { return false }
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackSize)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let context = Unmanaged.passRetained(Body(name: name, run: body))
        #if canImport(Darwin)
        var handle: pthread_t?
        let status = pthread_create(&handle, &attributes, { Thread.main($0) }, context.toOpaque())
        #else
        var handle = pthread_t()
        let status = pthread_create(&handle, &attributes, { $0.flatMap { Thread.main($0) } }, context.toOpaque())
        #endif
        if status != 0 { context.release() }
        return status == 0
    }

    private static func main(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
        let name = String(decoding: body.name.utf8.prefix(15), as: UTF8.self)
        #if canImport(Darwin)
        pthread_setname_np(name)
        #else
        // pthread_setname_np is a GNU extension that Swift's view of the C library leaves out; this file is the
        // kernel's own way in (proc(5)). A thread without a name works as well.
        let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        if descriptor >= 0 {
            _ = name.withCString { write(descriptor, $0, strlen($0)) }
            close(descriptor)
        }
        #endif
        body.run()
        return nil
    }
}
