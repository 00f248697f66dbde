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
    var page: Picture { sheet.picture }
    private let sheet = ExplainedPicture(fit: .contain)
    private(set) var strip: ItemList?
    /// The reason why the document did not open.
    private(set) var error: (any Error)?
    /// The current page, from 1.
    private(set) var current = 0
    private let demo: Demo
    private let position = Box.label("Opening…")
    private let progress = Box.label(classes: "caption")
    private let side = Box.column(0)
    /// The page, or the message about a document that did not open.
    private let stack = Widget(sinking: gtk_stack_new()!)
    private let message = Box.paragraph()
    private let password = Widget(sinking: gtk_password_entry_new()!)
    private let unlock = Widget(sinking: gtk_button_new_with_label("Open")!)

    init(_ document: Document, _ demo: Demo) {
        (self.document, self.demo) = (document, demo)
        gtk_widget_set_vexpand(stack.widget, 1)
        stack.expand()
        page.setMargins(12)
        gtk_stack_add_named(stack.opaque, sheet.root.widget, "page")
        let messages = messagePage()
        withExtendedLifetime(messages) { _ = gtk_stack_add_named(stack.opaque, messages.widget, "message") }
        gtk_widget_set_size_request(side.widget, Int32(Self.stripPage.width + 48), -1)
        demo.addToBar(
            Box.button(icon: "go-previous-symbolic", tooltip: "Previous page") { [weak self] in self?.turn(-1) },
            Box.button(icon: "go-next-symbolic", tooltip: "Next page") { [weak self] in self?.turn(1) })
        demo.addToBar(position, progress, atEnd: true)
        demo.window.setContent(Box.row(0, side, stack))
        demo.onKey { [weak self] in self?.take($0) ?? false }
        let flags = GTK_EVENT_CONTROLLER_SCROLL_VERTICAL.rawValue | GTK_EVENT_CONTROLLER_SCROLL_DISCRETE.rawValue
        let wheel = GTKObject(owning: gtk_event_controller_scroll_new(GtkEventControllerScrollFlags(flags))!)
        g_object_ref(wheel.raw)
        gtk_widget_add_controller(sheet.root.widget, wheel.opaque)
        wheel.onScroll { [weak self] _, down in
            guard let self, down != 0 else { return false }
            turn(down > 0 ? 1 : -1)
            return true
        }
        open()
    }

    /// The message in the place of the page; nil for none.
    var messageText: String? { error == nil ? nil : message.text }

    /// Opens the document with a password, like a user: enters it and presses Return.
    func enterPassword(_ text: String) {
        gtk_editable_set_text(password.opaque, text)
        openWithPassword()
    }

    private func open() {
        Task { [weak self, document] in
            do { try await document.open() } catch {
                self?.fail(error)
                return
            }
            self?.didOpen()
        }
    }

    private func openWithPassword() {
        guard let text = gtk_editable_get_text(password.opaque).map({ String(cString: $0) }), !text.isEmpty else {
            return
        }
        gtk_widget_set_sensitive(unlock.widget, 0)
        document.setPassword(text)
        open()
    }

    private func messagePage() -> Widget {
        gtk_label_set_max_width_chars(message.opaque, 50)
        gtk_password_entry_set_show_peek_icon(password.opaque, 1)
        password.setAccessibleLabel("Password")
        password.expand()
        password.on("activate") { [weak self] in self?.openWithPassword() }
        unlock.on("clicked") { [weak self] in self?.openWithPassword() }
        let column = Box.column(12, message, Box.row(6, password, unlock))
        gtk_widget_set_halign(column.widget, GTK_ALIGN_CENTER)
        gtk_widget_set_valign(column.widget, GTK_ALIGN_CENTER)
        column.setMargins(24)
        return column
    }

    /// Turns pages forward or back.
    func turn(_ step: Int) { read(current + step) }

    /// Shows a page. Ignores numbers without a page.
    func read(_ number: Int) {
        guard (1...max(1, document.pageCount)).contains(number), number != current else { return }
        current = number
        position.text = "\(number) of \(document.pageCount)"
        page.setAccessibleLabel("Page \(number) of \(document.pageCount)")
        sheet.explain(nil)
        if strip?.selectedIndex != number - 1 {
            strip?.selectedIndex = number - 1
            strip?.scroll(to: number - 1)
        }
        // The small page at once, the sharp one in its place.
        page.binding.options.placeholder = stripBox.flatMap { box in
            document.service.cachedImage(for: document.request(number, box))
        }
        page.load(document.request(number), in: document.service) { [weak self] _ in
            self?.didShow(number)
        } onFailure: { [weak self] error in
            self?.sheet.explain(error)
        }
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
        error = nil
        gtk_editable_set_text(password.opaque, "")
        gtk_stack_set_visible_child_name(stack.opaque, "page")
        let pages = ListItems((1...max(1, document.pageCount)).map(String.init))
        let strip = ItemList(.list, of: pages, selection: .single) { PageCell(document) }
        strip.view.addClass("strip")
        strip.setAccessibleLabel("Pages")
        strip.onSelection { [weak self] in
            if let index = self?.strip?.selectedIndex { self?.read(index + 1) }
        }
        side.append(strip.scroller)
        self.strip = strip
        gtk_widget_grab_focus(strip.view.widget)
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
        position.text = ""
        gtk_widget_set_sensitive(unlock.widget, 1)
        let name = document.path.split(separator: "/").last.map(String.init) ?? document.path
        var asks = true
        switch error as? ImagePipelineError {
        case .encrypted: message.text = "\(name) is encrypted. Enter its password to open it."
        case .wrongPassword: message.text = "This password does not open \(name). Enter another one."
        default:
            message.text = "\(name) cannot be opened. \(failureText(error))"
            asks = false
        }
        for widget in [password, unlock] { widget.isShown = asks }
        gtk_stack_set_visible_child_name(stack.opaque, "message")
        if asks { gtk_widget_grab_focus(password.widget) }
    }

    private func take(_ key: Int32) -> Bool {
        switch key {
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
    var accessibleLabel: String? { "Page \(number.text)" }
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
