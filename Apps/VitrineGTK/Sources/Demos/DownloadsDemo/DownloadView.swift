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
    private let problem = Box.label(classes: "caption")

    init(_ model: DownloadModel, _ demo: Demo) {
        (self.model, self.demo) = (model, demo)
        let rows = DownloadRows()
        list = ItemList(.list, of: ListItems()) { DownloadRow(model, rows) }
        gtk_entry_set_placeholder_text(UnsafeMutablePointer<GtkEntry>(entry.opaque), "URL to download")
        entry.expand()
        let add = Box.button(icon: "list-add-symbolic", tooltip: "Download") { [weak self] in self?.add() }
        entry.on("activate") { [weak self] in self?.add() }
        let line = Box.row(6, entry, add)
        line.setMargins(10)
        demo.window.setContent(Box.column(0, line, list.scroller, problem))
        model.onList = { [weak self] in self?.showList() }
        model.onStatus = { rows.show($0) }
        model.onProblem = { [weak self] in self?.problem.text = $0 }
        Task { await model.open() }
    }

    private func add() {
        guard let text = gtk_editable_get_text(entry.opaque).map({ String(cString: $0) }), !text.isEmpty else { return }
        gtk_editable_set_text(entry.opaque, "")
        Task { await model.add(text) }
    }

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
