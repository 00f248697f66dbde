import CGTK

/// A `GtkWindow`. GTK keeps it until it is closed; after that nothing but ``isClosed`` may be asked.
///
/// ```swift
/// let window = Window("Pictures", width: 1000, height: 720)
/// window.setContent(list.scroller)
/// window.onClose { MainLoop.quit() }
/// window.present()
/// ```
@MainActor
public final class Window: Widget {
    /// Whether it was closed, by its user or by ``close()``.
    public private(set) var isClosed = false
    private var closers: [@MainActor () -> Void] = []

    /// - Parameters:
    ///   - title: What the bar at its top says.
    ///   - width: In points.
    ///   - height: In points.
    public init(_ title: String, width: Int, height: Int) {
        super.init(sinking: gtk_window_new()!)
        gtk_window_set_title(pointer, title)
        gtk_window_set_default_size(pointer, Int32(width), Int32(height))
        on("destroy") { [weak self] in self?.didClose() }
        // GTK owns its windows: one that we kept would never be taken apart.
        becomeUnowned()
    }

    /// The window, for GTK's own calls.
    public var pointer: UnsafeMutablePointer<GtkWindow> { raw.assumingMemoryBound(to: GtkWindow.self) }

    /// Shows a widget in it.
    public func setContent(_ content: Widget) {
        withExtendedLifetime(content) { gtk_window_set_child(pointer, content.widget) }
    }

    /// Shows it.
    public func present() { gtk_window_present(pointer) }

    /// Closes it, and all that is loaded for it is given up.
    public func close() {
        if !isClosed { gtk_window_destroy(pointer) }
    }

    /// Calls a closure when it has been closed.
    public func onClose(_ body: @escaping @MainActor () -> Void) { closers.append(body) }

    private func didClose() {
        isClosed = true
        let closers = closers
        self.closers = []
        for closer in closers { closer() }
    }
}
