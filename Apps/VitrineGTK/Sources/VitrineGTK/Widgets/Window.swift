import CGTK

/// A `GtkWindow`. GTK retains it until it is closed. After that only ``isClosed`` is valid.
///
/// ```swift
/// let window = Window("Images", width: 1000, height: 720)
/// window.setContent(list.scroller)
/// window.onClose { MainLoop.quit() }
/// window.present()
/// ```
@MainActor
public final class Window: Widget {
    /// Whether the user or ``close()`` closed the window.
    public private(set) var isClosed = false
    private var closers: [@MainActor () -> Void] = []

    /// Creates a window.
    ///
    /// - Parameters:
    ///   - title: The title.
    ///   - width: The width, in points.
    ///   - height: The height, in points.
    public init(_ title: String, width: Int, height: Int) {
        super.init(sinking: gtk_window_new()!)
        gtk_window_set_title(pointer, title)
        gtk_window_set_default_size(pointer, Int32(width), Int32(height))
        on("destroy") { [weak self] in self?.didClose() }
        // GTK owns its windows. A strong reference would prevent their destruction.
        becomeUnowned()
    }

    /// The window, for calls of GTK.
    public var pointer: UnsafeMutablePointer<GtkWindow> { raw.assumingMemoryBound(to: GtkWindow.self) }

    /// Sets the content of the window.
    public func setContent(_ content: Widget) {
        withExtendedLifetime(content) { gtk_window_set_child(pointer, content.widget) }
    }

    /// Shows the window.
    public func present() { gtk_window_present(pointer) }

    /// Closes the window and cancels its loads.
    public func close() {
        if !isClosed { gtk_window_destroy(pointer) }
    }

    /// Calls a closure when the window is closed.
    public func onClose(_ body: @escaping @MainActor () -> Void) { closers.append(body) }

    private func didClose() {
        isClosed = true
        let closers = closers
        self.closers = []
        for closer in closers { closer() }
    }
}
