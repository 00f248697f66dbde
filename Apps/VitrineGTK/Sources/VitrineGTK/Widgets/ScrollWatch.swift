import CGTK

/// Starts and cancels the loads of widgets that scroll onto and off the screen.
///
/// GTK 4 does not notify a widget that leaves the screen. In lists it can stay bound for thousands of points.
@MainActor
final class ScrollWatch {
    private static let name = "vitrine-scroll-watch"

    private struct Entry { weak var widget: ImageWidget? }

    private var waiting: [ObjectIdentifier: Entry] = [:]
    /// Not retained, because the widget owns the watch.
    private let scroller: Widget
    /// The number of further frames to check.
    private var looks = 0
    /// The last position and its time, in points and microseconds.
    private var last: (offset: Double, time: Int64)?
    /// Whether the widget scrolls so fast that images would leave the screen before they are loaded.
    private var isRacing = false
    /// The speed above which no load starts, in visible heights a second. It leaves 0.15 s to load and view an image.
    private static let racing = 6.0

    /// Adds a widget. Widgets that nothing scrolls need no watch.
    static func watch(_ widget: ImageWidget) {
        guard let ancestor = gtk_widget_get_ancestor(widget.widget, gtk_scrolled_window_get_type()) else { return }
        watch(of: ancestor).waiting[ObjectIdentifier(widget)] = Entry(widget: widget)
    }

    /// Whether loads of new widgets wait until scrolling slows down.
    static func isRacing(above widget: ImageWidget) -> Bool {
        guard let ancestor = gtk_widget_get_ancestor(widget.widget, gtk_scrolled_window_get_type()) else {
            return false
        }
        let known: ScrollWatch? = GTKObject.attached(name, to: UnsafeMutableRawPointer(ancestor))
        return known?.isRacing ?? false
    }

    /// Removes a widget.
    static func forget(_ widget: ImageWidget) {
        guard let ancestor = gtk_widget_get_ancestor(widget.widget, gtk_scrolled_window_get_type()) else { return }
        let known: ScrollWatch? = GTKObject.attached(name, to: UnsafeMutableRawPointer(ancestor))
        known?.waiting[ObjectIdentifier(widget)] = nil
    }

    private static func watch(of ancestor: UnsafeMutablePointer<GtkWidget>) -> ScrollWatch {
        if let known: ScrollWatch = GTKObject.attached(name, to: UnsafeMutableRawPointer(ancestor)) { return known }
        let scroller = Widget(sinking: ancestor)
        let watch = ScrollWatch(scroller)
        scroller.attach(watch, as: name)
        scroller.becomeUnowned()
        return watch
    }

    private init(_ scroller: Widget) {
        self.scroller = scroller
        for adjustment in [
            gtk_scrolled_window_get_vadjustment(scroller.opaque), gtk_scrolled_window_get_hadjustment(scroller.opaque),
        ] {
            guard let adjustment else { continue }
            let object = GTKObject(sinking: adjustment)
            // The position and the visible height.
            for signal in ["value-changed", "changed"] { object.on(signal) { [weak self] in self?.didScroll() } }
        }
    }

    /// Checks the next two frames, because the first one begins with the old positions of the widgets.
    private func didScroll() {
        let isLooking = looks > 0
        looks = 2
        guard !isLooking else { return }
        scroller.onFrame { [weak self] time in self?.look(time) ?? false }
    }

    /// - Returns: Whether to check the next frame as well.
    private func look(_ time: Int64) -> Bool {
        measure(time)
        looks = isRacing ? 2 : looks - 1
        for (key, entry) in waiting {
            guard let widget = entry.widget else {
                waiting[key] = nil
                continue
            }
            widget.viewDidChange()
        }
        return looks > 0
    }

    private func measure(_ time: Int64) {
        let places = [
            gtk_scrolled_window_get_vadjustment(scroller.opaque), gtk_scrolled_window_get_hadjustment(scroller.opaque),
        ]
        let offset = places.reduce(0) { $0 + gtk_adjustment_get_value($1) }
        let page = places.map { gtk_adjustment_get_page_size($0) }.max() ?? 0
        defer { last = (offset, time) }
        guard let last, page > 0, time > last.time else { return }
        // The first step after a pause and a jump give no speed.
        let seconds = max(1.0 / 60, Double(time - last.time) / 1e6)
        isRacing = abs(offset - last.offset) / page / seconds > Self.racing
    }
}
