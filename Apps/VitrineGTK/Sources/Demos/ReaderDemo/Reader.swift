import CGTK
import DemoSupport
import VitrineGTK
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// The strip of pages, the current page, and the buttons that turn it.
@MainActor
final class Reader {
    /// The size of the pages in the strip, in points.
    static let stripPage = (width: 120, height: 160)

    let document: Document
    let page = Picture(fit: .contain)
    private(set) var strip: ItemList?
    /// The reason why the document did not open.
    private(set) var error: (any Error)?
    /// The current page, from 1.
    private(set) var current = 0
    private let demo: Demo
    private let position = Box.label("Opening…")
    private let progress = Box.label(classes: "caption")
    private let side = Box.column(0)

    init(_ document: Document, _ demo: Demo) {
        (self.document, self.demo) = (document, demo)
        gtk_widget_set_vexpand(page.widget, 1)
        page.expand()
        page.setMargins(12)
        gtk_widget_set_size_request(side.widget, Int32(Self.stripPage.width + 48), -1)
        demo.addToBar(
            Box.button(icon: "go-previous-symbolic", tooltip: "Previous page") { [weak self] in self?.turn(-1) },
            Box.button(icon: "go-next-symbolic", tooltip: "Next page") { [weak self] in self?.turn(1) })
        demo.addToBar(position, progress, atEnd: true)
        demo.window.setContent(Box.row(0, side, page))
        let keys = GTKObject(owning: gtk_event_controller_key_new()!)
        g_object_ref(keys.raw)
        gtk_widget_add_controller(demo.window.widget, keys.opaque)
        keys.onKey { [weak self] key in self?.take(key) ?? false }
        Task { [weak self] in
            do { try await document.open() } catch {
                self?.fail(error)
                return
            }
            self?.didOpen()
        }
    }

    /// Turns pages forward or back.
    func turn(_ step: Int) { read(current + step) }

    /// Shows a page. Ignores numbers without a page.
    func read(_ number: Int) {
        guard (1...max(1, document.pageCount)).contains(number), number != current else { return }
        current = number
        position.text = "\(number) of \(document.pageCount)"
        if strip?.selectedIndex != number - 1 {
            strip?.selectedIndex = number - 1
            strip?.scroll(to: number - 1)
        }
        // The small page at once, the sharp one in its place.
        page.binding.options.placeholder = stripBox.flatMap { box in
            document.service.cachedImage(for: ImageRequest(document.page(number), resizing: box.resizer))
        }
        page.load(document.request(number), in: document.service) { [weak self] _ in self?.didShow(number) }
    }

    private func didShow(_ number: Int) {
        guard let box = page.targetGeometry, number == current else { return }
        document.prepare([number + 1, number - 1], box)
    }

    private var stripBox: TargetGeometry? {
        TargetGeometry(
            width: Double(Self.stripPage.width), height: Double(Self.stripPage.height),
            scale: Double(page.scaleFactor), mode: .fit, allowsUpscaling: false)
    }

    private func didOpen() {
        let document = document
        let pages = ListItems((1...max(1, document.pageCount)).map(String.init))
        let strip = ItemList(.list, of: pages, selection: .single) { PageCell(document) }
        strip.view.addClass("strip")
        strip.onSelection { [weak self] in
            if let index = self?.strip?.selectedIndex { self?.read(index + 1) }
        }
        side.append(strip.scroller)
        self.strip = strip
        read(1)
        if let stripBox { document.precache(stripBox) }
        Task { [weak self] in
            guard let precaching = document.precaching else { return }
            for await now in precaching.progress {
                let isDone = now.completed == now.total
                self?.progress.text = isDone ? "" : "\(now.completed) of \(now.total) pages prepared"
            }
        }
    }

    private func fail(_ error: any Error) {
        self.error = error
        position.text = "The document cannot be opened."
        // Fails the same way, and shows the failure.
        page.load(document.request(1), when: .now)
    }

    private func take(_ key: UInt32) -> Bool {
        switch Int32(key) {
        case GDK_KEY_Right, GDK_KEY_Page_Down, GDK_KEY_space: turn(1)
        case GDK_KEY_Left, GDK_KEY_Page_Up: turn(-1)
        case GDK_KEY_Home: read(1)
        case GDK_KEY_End: read(document.pageCount)
        default: return false
        }
        return true
    }
}

/// A cell of the strip: a page and its number.
@MainActor
final class PageCell: ListCell {
    let root: Widget
    let picture = Picture(fit: .contain)
    private let number = Box.label(classes: "caption")
    private let document: Document
    static var alive = 0

    init(_ document: Document) {
        self.document = document
        picture.setSizeRequest(Reader.stripPage.width, Reader.stripPage.height)
        gtk_widget_set_halign(picture.widget, GTK_ALIGN_CENTER)
        root = Box.column(4, picture, number)
        root.setMargins(6)
        Self.alive += 1
    }

    isolated deinit { Self.alive -= 1 }

    func bind(_ identifier: String) {
        number.text = identifier
        picture.load(document.request(Int(identifier) ?? 0), in: document.service)
    }

    func unbind() { picture.prepareForReuse() }
}
