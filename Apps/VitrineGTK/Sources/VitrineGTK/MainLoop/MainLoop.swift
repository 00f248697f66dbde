import CGTK
import CMainQueue
import Glibc

/// GLib's main loop as the executor of Swift's main actor.
///
/// ```swift
/// static func main() {                 // not async, which would give up the first thread
///     guard gtk_init_check() != 0, MainLoop.install() else { return }
///     …                                // create and present a window
///     MainLoop.run()
/// }
/// ```
///
/// Without it, jobs of the main actor and of `DispatchQueue.main` never run while GLib's loop runs. libdispatch signals
/// work of its main queue through a file descriptor. GLib polls that descriptor as a source of its default context.
/// `RunLoop.main` and `Timer` do not work.
///
/// Keep jobs on the main actor short: all waiting jobs run before the next frame is painted.
public enum MainLoop {
    /// The priority after input (0) and before layout and painting (110, 120), so jobs never wait for painting.
    public static let defaultPriority: Int32 = 100

    @MainActor private static var source: UnsafeMutablePointer<GSource>?
    @MainActor private static var loops: [OpaquePointer] = []

    /// Adds the main actor's jobs to GLib's default context, and names the program after its file unless it has a name.
    ///
    /// - Parameter priority: A GLib priority. Smaller numbers run first. Default ``defaultPriority``.
    /// - Returns: false on any thread other than the first thread of the program.
    @discardableResult
    public static func install(priority: Int32 = defaultPriority) -> Bool {
        guard isFirstThread else { return false }
        return MainActor.assumeIsolated { connect(priority) }
    }

    /// Whether this is the first thread of the program, which runs GTK and the main actor.
    public static var isFirstThread: Bool { vitrine_is_first_thread() != 0 }

    @MainActor private static func connect(_ priority: Int32) -> Bool {
        guard source == nil else { return true }
        // Screen readers speak it. A program in C passes its arguments to GTK; without a name it is "Unnamed".
        if g_get_prgname() == nil, let path = CommandLine.arguments.first {
            g_set_prgname(path.split(separator: "/").last.map(String.init) ?? path)
        }
        let descriptor = _dispatch_get_main_queue_port_4CF()
        guard descriptor >= 0, let new = g_unix_fd_source_new(descriptor, G_IO_IN) else { return false }
        g_source_set_priority(new, priority)
        g_source_set_name(new, "Swift main actor")
        let drain: GUnixFDSourceFunc = { descriptor, _, _ in
            // Reset first: work that is enqueued while the queue is drained sets it again.
            var count: UInt64 = 0
            while read(descriptor, &count, MemoryLayout<UInt64>.size) == -1 && errno == EINTR {}
            _dispatch_main_queue_callback_4CF(nil)
            return gboolean(1)
        }
        g_source_set_callback(new, unsafeBitCast(drain, to: GSourceFunc.self), nil, nil)
        g_source_attach(new, nil)
        source = new
        return true
    }

    /// Runs the loop until ``quit()``.
    @MainActor public static func run() {
        guard let loop = g_main_loop_new(nil, 0) else { return }
        loops.append(loop)
        g_main_loop_run(loop)
        g_main_loop_unref(loop)
    }

    /// Ends the most recent ``run()``.
    @MainActor public static func quit() {
        if let loop = loops.popLast() { g_main_loop_quit(loop) }
    }
}
