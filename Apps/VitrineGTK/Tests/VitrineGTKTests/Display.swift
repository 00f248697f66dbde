import CGTK
import Testing
import VitrineGTK
import VitrineImaging

/// Whether there is a display; without one nothing here can run (`Scripts/check` brings one).
@MainActor
enum Display {
    static let isThere = gtk_init_check() != 0
}

/// All tests that touch GTK: they share one display, so they run one after the other.
@Suite(.serialized, .enabled("there is no display") { await Display.isThere })
@MainActor
struct GTKTests {}

/// Lets GLib and everybody else work until something is so.
@MainActor
func wait(
    for what: String, sourceLocation: SourceLocation = #_sourceLocation, until isSo: () -> Bool
) async throws {
    // The tests' main actor is not the first thread, which alone could run the loop: it is turned by hand.
    for _ in 0..<6000 {
        while g_main_context_iteration(nil, 0) != 0 {}
        if isSo() { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    Issue.record("waited in vain for \(what)", sourceLocation: sourceLocation)
    throw CancellationError()
}

/// A window for one test.
@MainActor
final class TestWindow {
    let window: Window

    /// - Parameter content: What fills it.
    init(_ content: Widget, width: Int = 300, height: Int = 200) {
        window = Window("Test", width: width, height: height)
        gtk_window_set_decorated(window.pointer, 0)
        window.setContent(content)
        window.present()
    }

    func close() { window.close() }
}

extension Image {
    /// One of one colour.
    static func plain(_ width: Int, _ height: Int, _ color: Color) -> Image {
        Image(size: PixelSize(width: width, height: height), color: color)
    }
}
