import CGTK
import Testing
import VitrineGTK
import VitrineImaging

/// Whether there is a display. All tests need one; `Scripts/check` provides it.
@MainActor
enum Display {
    static let isThere = gtk_init_check() != 0
}

/// All tests that use GTK. They share one display, so they run serially.
@Suite(.serialized, .enabled("there is no display") { await Display.isThere })
@MainActor
struct GTKTests {}

/// Runs GLib's loop and other tasks until a condition is true.
@MainActor
func wait(
    for event: String, sourceLocation: SourceLocation = #_sourceLocation, until isSo: () -> Bool
) async throws {
    // The main actor of the tests is not on the first thread, which alone can run the loop, so the test iterates it.
    for _ in 0..<6000 {
        while g_main_context_iteration(nil, 0) != 0 {}
        if isSo() { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    Issue.record("timeout while waiting for \(event)", sourceLocation: sourceLocation)
    throw CancellationError()
}

/// A window for one test.
@MainActor
final class TestWindow {
    let window: Window

    /// - Parameter content: The content of the window.
    init(_ content: Widget, width: Int = 300, height: Int = 200) {
        window = Window("Test", width: width, height: height)
        gtk_window_set_decorated(window.pointer, 0)
        window.setContent(content)
        window.present()
    }

    func close() { window.close() }
}

extension PixelImage {
    /// Returns an image of one colour.
    static func plain(_ width: Int, _ height: Int, _ color: PixelColor) -> PixelImage {
        PixelImage(size: PixelSize(width: width, height: height), color: color)
    }
}
