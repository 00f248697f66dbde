import CGTK
import DemoSupport
import Foundation
import VitrineGTK
import VitrineImaging

/// The grid, its cells, and the photo that a click or Return opens.
@MainActor
final class PhotoGrid {
    let library: PhotoLibrary
    let list: ItemList
    let board = PhotoBoard()
    let viewer: PhotoViewer
    private let demo: Demo
    private let stack = Widget(sinking: gtk_stack_new()!)
    private var buttons: [Widget] = []

    init(_ library: PhotoLibrary, columns: Int, _ demo: Demo) {
        (self.library, self.demo) = (library, demo)
        viewer = PhotoViewer(library)
        list = ItemList(.grid(columns: columns), of: ListItems(library.identifiers), selection: .single) { [board] in
            PhotoCell(library, board)
        }
        board.onFirstScreen = {
            // All processors load the first screen. After that, one is reserved for drawing.
            library.service.concurrency = ProcessInfo.processInfo.activeProcessorCount - 1
        }
        list.activatesOnSingleClick = true
        list.onActivation { [weak self] in self?.open($0) }
        list.setAccessibleLabel("Photos")
        viewer.onChange = { [weak self] in self?.showTitle() }
        gtk_stack_add_named(stack.opaque, list.scroller.widget, "grid")
        gtk_stack_add_named(stack.opaque, viewer.root.widget, "photo")
        demo.window.setContent(stack)
        addButtons()
        demo.onKey(beforeFocus: true) { [weak self] in self?.take($0) ?? false }
        gtk_widget_grab_focus(list.view.widget)
    }

    /// Whether one photo fills the window.
    var isOpen: Bool { viewer.index != nil }

    /// Opens a photo.
    func open(_ index: Int) {
        viewer.show(index)
        guard isOpen else { return }
        gtk_stack_set_visible_child_name(stack.opaque, "photo")
        gtk_widget_grab_focus(viewer.root.widget)
        for button in buttons { button.isShown = true }
    }

    /// Returns to the grid, at the place of the photo.
    func closePhoto() {
        guard let index = viewer.index else { return }
        viewer.clear()
        for button in buttons { button.isShown = false }
        gtk_stack_set_visible_child_name(stack.opaque, "grid")
        showTitle()
        list.selectedIndex = index
        gtk_widget_grab_focus(list.view.widget)
        // The grid has no size before its next layout, and the cell of a far photo comes with the one after that.
        var frames = 0
        list.view.onFrame { [weak self] _ in
            guard let self else { return false }
            frames += 1
            if frames == 2 { list.scroll(to: index) }
            guard frames == 4 else { return true }
            // The list still has the focus on the photo that was opened first.
            board.cells.first { $0.identifier == library.identifiers[index] }?.grabFocus()
            return false
        }
    }

    private func addButtons() {
        let back = Box.button(icon: "go-up-symbolic", tooltip: "Back to the grid") { [weak self] in self?.closePhoto() }
        let previous = Box.button(icon: "go-previous-symbolic", tooltip: "Previous photo") { [weak self] in
            self?.viewer.turn(-1)
        }
        let next = Box.button(icon: "go-next-symbolic", tooltip: "Next photo") { [weak self] in self?.viewer.turn(1) }
        let larger = Box.button(icon: "zoom-in-symbolic", tooltip: "Larger") { [weak self] in self?.viewer.zoom(by: 1) }
        let smaller = Box.button(icon: "zoom-out-symbolic", tooltip: "Smaller") { [weak self] in
            self?.viewer.zoom(by: -1)
        }
        demo.addToBar(back, previous, next)
        demo.addToBar(larger, smaller, atEnd: true)
        buttons = [back, previous, next, larger, smaller]
        for button in buttons { button.isShown = false }
    }

    private func showTitle() {
        let count = library.identifiers.count
        let title = viewer.index.map { "\(viewer.name) (\($0 + 1) of \(count))" } ?? "\(count) images"
        gtk_window_set_title(demo.window.pointer, title)
    }

    /// Handles the keys of the open photo. The grid handles its own.
    private func take(_ key: Int32) -> Bool {
        guard isOpen else { return false }
        switch key {
        case GDK_KEY_Escape, GDK_KEY_BackSpace: closePhoto()
        case GDK_KEY_plus, GDK_KEY_equal, GDK_KEY_KP_Add: viewer.zoom(by: 1)
        case GDK_KEY_minus, GDK_KEY_KP_Subtract: viewer.zoom(by: -1)
        case GDK_KEY_0, GDK_KEY_KP_0: viewer.resetZoom()
        case GDK_KEY_Page_Down: viewer.turn(1)
        case GDK_KEY_Page_Up: viewer.turn(-1)
        case GDK_KEY_Right: if !viewer.pan(right: 1, down: 0) { viewer.turn(1) }
        case GDK_KEY_Left: if !viewer.pan(right: -1, down: 0) { viewer.turn(-1) }
        case GDK_KEY_Down: return viewer.pan(right: 0, down: 1)
        case GDK_KEY_Up: return viewer.pan(right: 0, down: -1)
        default: return false
        }
        return true
    }
}

/// The living cells, and the number of images that they have shown.
@MainActor
final class PhotoBoard {
    private struct Entry { weak var cell: PhotoCell? }

    private var entries: [Entry] = []
    /// The size of the images, which all cells share.
    let hint = SizeHint()
    /// The number of images shown, and of images that failed.
    private(set) var shown = 0, failed = 0

    func add(_ cell: PhotoCell) { entries.append(Entry(cell: cell)) }
    /// Called once, when all loads of cells on screen have ended.
    var onFirstScreen: (() -> Void)?

    func didShow() {
        shown += 1
        look()
    }

    func didFail() {
        failed += 1
        look()
    }

    private func look() {
        guard onFirstScreen != nil else { return }
        // Later, when the reporting cell has settled as well.
        Task {
            guard visible.allSatisfy(\.isSettled) else { return }
            onFirstScreen?()
            onFirstScreen = nil
        }
    }

    /// The living cells.
    var cells: [PhotoCell] { entries.compactMap(\.cell) }

    /// The cells on screen.
    var visible: [PhotoCell] { cells.filter { $0.identifier != nil && $0.picture.isInView } }
}

/// A cell that its image fills.
@MainActor
final class PhotoCell: ListCell {
    private let photo = ExplainedPicture(fit: .cover)
    var picture: Picture { photo.picture }
    private(set) var identifier: String?
    private let library: PhotoLibrary
    private let board: PhotoBoard

    init(_ library: PhotoLibrary, _ board: PhotoBoard) {
        (self.library, self.board) = (library, board)
        picture.setSizeRequest(140, 105)
        picture.addClass("tile")
        picture.sizeHint = board.hint
        picture.retryDelay = PhotoLibrary.retryDelay
        board.add(self)
    }

    var root: Widget { photo.root }

    var accessibleLabel: String? {
        identifier.map { name in PhotoLibrary.name(name) + (photo.reason.map { ": \($0)" } ?? "") }
    }

    /// Whether the load has ended.
    var isSettled: Bool {
        switch picture.binding.state {
        case .shown, .failed: true
        case .empty, .loading: false
        }
    }

    /// Whether the load has failed.
    var isFailed: Bool {
        if case .failed = picture.binding.state { true } else { false }
    }

    /// Whether the image is loading.
    var isLoading: Bool {
        if case .loading = picture.binding.state { true } else { false }
    }

    func bind(_ identifier: String) {
        self.identifier = identifier
        picture.tooltip = PhotoLibrary.name(identifier)
        picture.load(library.request(identifier), in: library.service) { [weak self, board] _ in
            self?.explain(nil)
            board.didShow()
        } onFailure: { [weak self, board] error in
            self?.explain(error)
            board.didFail()
        }
    }

    private func explain(_ error: (any Error)?) {
        guard error != nil || photo.reason != nil else { return }
        photo.explain(error)
        updateAccessibleLabel()
    }

    func unbind() {
        identifier = nil
        photo.explain(nil)
        picture.prepareForReuse()
    }
}
