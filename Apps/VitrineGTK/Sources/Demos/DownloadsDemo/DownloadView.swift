import CGTK
import DemoSupport
import VitrineDownloads
import VitrineGTK

/// The list of downloads, and an entry to add a download.
@MainActor
final class DownloadView {
    let model: DownloadModel
    let list: ItemList
    private let demo: Demo
    private let entry = Widget(sinking: gtk_entry_new()!)
    /// The address that the entry had when its download was refused is still there.
    private let problem = Box.paragraph(classes: "problem")
    private let folder = Box.label(classes: "caption")

    init(_ model: DownloadModel, _ demo: Demo) {
        (self.model, self.demo) = (model, demo)
        let rows = DownloadRows()
        list = ItemList(.list, of: ListItems()) { DownloadRow(model, rows) }
        gtk_entry_set_placeholder_text(UnsafeMutablePointer<GtkEntry>(entry.opaque), "URL to download")
        entry.setAccessibleLabel("URL to download")
        entry.expand()
        let add = Box.button(icon: "list-add-symbolic", tooltip: "Download") { [weak self] in self?.add() }
        entry.on("activate") { [weak self] in self?.add() }
        let line = Box.row(6, entry, add)
        let change = Widget(sinking: gtk_button_new_with_label("Change…")!)
        change.setAccessibleLabel("Change the folder for downloads")
        change.on("clicked") { [weak self] in self?.chooseFolder() }
        gtk_label_set_xalign(folder.opaque, 0)
        folder.expand()
        list.setAccessibleLabel("Downloads")
        problem.isShown = false
        let top = Box.column(6, line, problem, Box.row(6, folder, change))
        top.setMargins(10)
        demo.window.setContent(Box.column(0, top, list.scroller))
        showFolder()
        model.onList = { [weak self] in self?.showList() }
        model.onStatus = { rows.show($0) }
        model.onProblem = { [weak self] in self?.report($0) }
        Task { await model.open() }
    }

    private func add() {
        let text = text
        guard !text.isEmpty else { return }
        report("")
        Task {
            // A refused address stays, and so does what was typed in the meantime.
            guard await model.add(text), self.text == text else { return }
            gtk_editable_set_text(entry.opaque, "")
        }
    }

    /// Adds a download like a user: enters an address and presses Return.
    func enter(_ address: String) {
        gtk_editable_set_text(entry.opaque, address)
        add()
    }

    /// The text of the entry.
    var text: String { gtk_editable_get_text(entry.opaque).map { String(cString: $0) } ?? "" }

    /// The last error message.
    var problemText: String { problem.text }

    private func report(_ message: String) {
        problem.text = message
        problem.isShown = !message.isEmpty
    }

    private func chooseFolder() {
        FileChooser.chooseFolder("Folder for Downloads", in: demo.window) { [weak self] chosen in
            self?.model.directory = chosen
            self?.showFolder()
        }
    }

    private func showFolder() { folder.text = "Downloads go to \(model.directory)" }

    private func showList() { list.items.replace(with: model.downloads.map(\.id)) }
}

/// The rows by download.
@MainActor
final class DownloadRows {
    private struct Entry { weak var row: DownloadRow? }

    private var rows: [String: Entry] = [:]

    func set(_ row: DownloadRow?, for id: String) { rows[id] = row.map { Entry(row: $0) } }
    func show(_ status: DownloadStatus) { rows[status.id]?.row?.show(status) }
}
