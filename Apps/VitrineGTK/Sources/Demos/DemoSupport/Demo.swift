import CGTK
import Foundation
package import VitrineGTK

/// The window of a demo, and the support for `--auto` and `--shot`.
@MainActor
package final class Demo {
    /// The command-line arguments.
    package let arguments: DemoArguments
    /// The window.
    package let window: Window
    /// The meter of the window's frames.
    package let meter: FrameMeter
    /// The header bar, for buttons.
    private let bar: Widget
    /// The time at which the window appeared.
    package private(set) var opened = ContinuousClock.now
    private var status: Int32 = 0

    private init(_ title: String, arguments: DemoArguments, size: (Int, Int)) {
        self.arguments = arguments
        let (width, height) = arguments.size(default: size)
        window = Window(title, width: width, height: height)
        bar = Widget(sinking: gtk_header_bar_new()!)
        meter = FrameMeter()
        gtk_window_set_titlebar(window.pointer, bar.widget)
        window.on("map") { [unowned self] in
            opened = .now
            meter.attach(to: window)
        }
        window.onClose {
            if !arguments.has("--auto") { MainLoop.quit() }
        }
    }

    /// Runs a demo until its window is closed or `--auto` has finished, then exits.
    ///
    /// - Parameters:
    ///   - title: The title of the window.
    ///   - size: The size of the window in points. `--size` overrides it.
    ///   - build: Creates the content of the window.
    ///   - drive: Runs the demo for `--auto`. Returns false after a failure.
    package static func run(
        _ title: String, _ arguments: DemoArguments, size: (Int, Int),
        build: (Demo) -> Void, drive: @escaping @MainActor (Demo) async -> Bool
    ) -> Never {
        guard gtk_init_check() != 0 else { DemoArguments.end("There is no display: run this under xvfb-run.", 3) }
        guard MainLoop.install() else { DemoArguments.end("This is not the first thread of the program.", 3) }
        Self.style()
        let demo = Demo(title, arguments: arguments, size: size)
        build(demo)
        demo.window.present()
        if arguments.has("--auto") {
            Task {
                if await !drive(demo) { demo.status = 1 }
                demo.window.close()
                MainLoop.quit()
            }
        } else if arguments["--shot"] != nil {
            Task {
                await demo.settle(seconds: 2)
                await demo.shoot()
                MainLoop.quit()
            }
        }
        MainLoop.run()
        exit(demo.status)
    }

    /// Adds widgets to the header bar.
    package func addToBar(_ widgets: Widget..., atEnd: Bool = false) {
        for widget in widgets {
            withExtendedLifetime(widget) {
                if atEnd {
                    gtk_header_bar_pack_end(bar.opaque, widget.widget)
                } else {
                    gtk_header_bar_pack_start(bar.opaque, widget.widget)
                }
            }
        }
    }

    /// Calls a closure when a key is pressed in the window, before the focused widget gets it or after that.
    ///
    /// - Parameters:
    ///   - isFirst: Whether the closure gets keys before the focused widget.
    ///   - body: Returns whether it handled the key.
    package func onKey(beforeFocus isFirst: Bool = false, _ body: @escaping @MainActor (Int32) -> Bool) {
        let keys = GTKObject(owning: gtk_event_controller_key_new()!)
        g_object_ref(keys.raw)
        if isFirst { gtk_event_controller_set_propagation_phase(keys.opaque, GTK_PHASE_CAPTURE) }
        gtk_widget_add_controller(window.widget, keys.opaque)
        keys.onKey { body(Int32(bitPattern: $0)) }
    }

    /// Writes the screenshot that `--shot` requests.
    package func shoot() async {
        guard let path = arguments["--shot"] else { return }
        // Between a change and the next frame there is no content to write.
        for _ in 0..<200 {
            if window.writePNG(to: path) { return print("wrote \(path)") }
            await settle(seconds: 0.01)
        }
        print("could not write \(path)")
        status = 1
    }

    /// Waits until a condition is true. Checks it before each frame.
    ///
    /// - Returns: false after a timeout, in seconds.
    package func wait(seconds: Double = 30, until isSo: @escaping @MainActor () -> Bool) async -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while !isSo() {
            guard ContinuousClock.now < end, (try? await Task.sleep(for: .milliseconds(4))) != nil else { return false }
        }
        return true
    }

    /// Waits for a time.
    package func settle(seconds: Double) async { try? await Task.sleep(for: .seconds(seconds)) }

    private static func style() {
        let provider = gtk_css_provider_new()!
        let css = """
            .tile { background: alpha(currentColor, 0.06); }
            .reason { color: @theme_fg_color; font-size: 85%; padding: 6px 8px; background: alpha(@theme_bg_color, 0.85); }
            .problem { color: @error_color; }
            .caption { font-size: 85%; opacity: 0.75; }
            entry.name { background: none; border: none; box-shadow: none; min-height: 24px; padding: 0 2px; }
            .page { background: alpha(currentColor, 0.06); }
            .plain-list row, .plain-list > row { padding: 6px 12px; }
            gridview, listview { background: transparent; }
            gridview > child, listview.strip > row { padding: 6px; border-radius: 8px; }
            """
        gtk_css_provider_load_from_data(provider, css, -1)
        if let display = gdk_display_get_default() {
            gtk_style_context_add_provider_for_display(
                display, OpaquePointer(provider), guint(GTK_STYLE_PROVIDER_PRIORITY_APPLICATION))
        }
        g_object_unref(UnsafeMutableRawPointer(provider))
    }
}
