import CGTK
import CMainQueue
import Glibc

/// GLib's main loop, serving Swift's main actor.
///
/// ```swift
/// static func main() {                 // not async: that would give the first thread away
///     guard gtk_init_check() != 0, MainLoop.install() else { return }
///     …                                // make and present a window
///     MainLoop.run()
/// }
/// ```
///
/// Without this every `await` of the main actor, `Task { @MainActor in … }` and `DispatchQueue.main.async` waits for
/// ever while GLib's loop runs. libdispatch tells run loops of others through a descriptor that its main queue has
/// work; GLib polls that as one more source of its default context. `RunLoop.main` and `Timer` are not served.
///
/// Keep jobs on the main actor small: all that wait are run before the next frame is painted.
public enum MainLoop {
    /// After input (0), before layout and painting (110, 120), so that jobs never wait behind painting.
    public static let defaultPriority: Int32 = 100

    @MainActor private static var source: UnsafeMutablePointer<GSource>?
    @MainActor private static var loops: [OpaquePointer] = []

    /// Lets GLib's default context serve the main actor from now on.
    ///
    /// - Parameter priority: GLib's: less is sooner. Default ``defaultPriority``.
    /// - Returns: false on any thread but the program's first, which alone may serve it.
    @discardableResult
    public static func install(priority: Int32 = defaultPriority) -> Bool {
        guard isFirstThread else { return false }
        return MainActor.assumeIsolated { connect(priority) }
    }

    /// Whether this is the program's first thread, on which GTK and the main actor are.
    public static var isFirstThread: Bool { vitrine_is_first_thread() != 0 }

    @MainActor private static func connect(_ priority: Int32) -> Bool {
        guard source == nil else { return true }
        let descriptor = _dispatch_get_main_queue_port_4CF()
        guard descriptor >= 0, let new = g_unix_fd_source_new(descriptor, G_IO_IN) else { return false }
        g_source_set_priority(new, priority)
        g_source_set_name(new, "Swift main actor")
        let drain: GUnixFDSourceFunc = { descriptor, _, _ in
            // Emptied first: work that is enqueued while the queue is drained sets it again.
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

    /// Ends the ``run()`` that was begun last.
    @MainActor public static func quit() {
        if let loop = loops.popLast() { g_main_loop_quit(loop) }
    }
}
