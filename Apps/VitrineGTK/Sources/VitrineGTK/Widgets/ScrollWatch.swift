import CGTK

/// Knows what is to be loaded within a widget that scrolls: gives up what has left the screen, and begins what comes.
///
/// GTK 4 tells no widget that it went out of sight; in lists it may stay bound for thousands of points.
@MainActor
final class ScrollWatch {
    private static let name = "vitrine-scroll-watch"

    private struct Entry { weak var widget: ImageWidget? }

    private var waiting: [ObjectIdentifier: Entry] = [:]
    /// Not owned: the watch lives with it.
    private let scroller: Widget
    /// How many more frames to look in; none while nothing is to be done.
    private var looks = 0
    /// Where it stood, and when, in points and microseconds.
    private var last: (offset: Double, time: Int64)?
    /// Whether it moves so fast that what comes has left before it could be shown.
    private var isRacing = false
    /// Faster than this, in heights of the place a second, nothing new is begun: there are 0.15 s to load and to look.
    private static let racing = 6.0

    /// Watches a widget until it is forgotten. One that nothing scrolls need not be.
    static func watch(_ widget: ImageWidget) {
        guard let ancestor = gtk_widget_get_ancestor(widget.widget, gtk_scrolled_window_get_type()) else { return }
        watch(of: ancestor).waiting[ObjectIdentifier(widget)] = Entry(widget: widget)
    }

    /// Whether what comes into view is to wait until it moves more slowly.
    static func isRacing(above widget: ImageWidget) -> Bool {
        guard let ancestor = gtk_widget_get_ancestor(widget.widget, gtk_scrolled_window_get_type()) else {
            return false
        }
        let known: ScrollWatch? = GTKObject.attached(name, to: UnsafeMutableRawPointer(ancestor))
        return known?.isRacing ?? false
    }

    /// Watches a widget no more.
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
            // Where it stands, and how large the place is.
            for signal in ["value-changed", "changed"] { object.on(signal) { [weak self] in self?.didScroll() } }
        }
    }

    /// Looks in the next two frames: the first begins with widgets where they were.
    private func didScroll() {
        let isLooking = looks > 0
        looks = 2
        guard !isLooking else { return }
        scroller.onFrame { [weak self] time in self?.look(time) ?? false }
    }

    /// - Returns: Whether to look again in the next frame.
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
        // After a pause the first step says nothing about speed, nor does a jump.
        let seconds = max(1.0 / 60, Double(time - last.time) / 1e6)
        isRacing = abs(offset - last.offset) / page / seconds > Self.racing
    }
}
