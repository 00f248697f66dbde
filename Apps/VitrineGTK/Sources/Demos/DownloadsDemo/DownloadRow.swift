import CGTK
import DemoSupport
import Foundation
import VitrineCore
import VitrineDownloads
import VitrineGTK
import VitrinePipeline

/// The row of a download: name, progress, and a button that pauses or resumes it.
@MainActor
final class DownloadRow: ListCell {
    let root: Widget
    private let icon = Picture(fit: .cover)
    private let name = Box.label(), state = Box.paragraph(classes: "caption")
    private let bar = Widget(sinking: gtk_progress_bar_new()!)
    private let button: Widget, removal: Widget
    private let model: DownloadModel
    private let rows: DownloadRows
    private var id: String?
    static var alive = 0

    init(_ model: DownloadModel, _ rows: DownloadRows) {
        (self.model, self.rows) = (model, rows)
        icon.setSizeRequest(72, 48)
        icon.addClass("tile")
        for label in [name, state] { gtk_widget_set_halign(label.widget, GTK_ALIGN_START) }
        let text = Box.column(5, name, bar, state)
        text.expand()
        button = Widget(sinking: gtk_button_new()!)
        let remove = Widget(sinking: gtk_button_new_from_icon_name("edit-delete-symbolic")!)
        gtk_widget_set_tooltip_text(remove.widget, "Remove from the list")
        for button in [button, remove] {
            gtk_widget_set_valign(button.widget, GTK_ALIGN_CENTER)
            button.addClass("flat")
        }
        removal = remove
        root = Box.row(12, icon, text, button, remove)
        root.setMargins(8)
        Self.alive += 1
        button.on("clicked") { [weak self] in self?.perform { await $0.toggle($1) } }
        remove.on("clicked") { [weak self] in self?.perform { await $0.remove($1) } }
    }

    isolated deinit { Self.alive -= 1 }

    var accessibleLabel: String? { "\(name.text): \(state.text)" }

    func bind(_ identifier: String) {
        id = identifier
        rows.set(self, for: identifier)
        if let status = model.statuses[identifier] { show(status) }
    }

    func unbind() {
        if let id { rows.set(nil, for: id) }
        id = nil
        icon.prepareForReuse()
    }

    func show(_ status: DownloadStatus) {
        name.text = String(status.path.split(separator: "/").last ?? "")
        gtk_progress_bar_set_fraction(bar.opaque, status.fraction ?? 0)
        state.text = Self.text(status)
        updateAccessibleLabel()
        bar.setAccessibleLabel("Progress of \(name.text)")
        let (symbol, tooltip) = Self.symbol(status.state)
        gtk_button_set_icon_name(UnsafeMutablePointer<GtkButton>(button.opaque), symbol)
        gtk_widget_set_tooltip_text(button.widget, tooltip)
        button.setAccessibleLabel("\(tooltip): \(name.text)")
        removal.setAccessibleLabel("Remove \(name.text) from the list")
        gtk_widget_set_sensitive(button.widget, status.state == .completed ? 0 : 1)
        // A file that is not an image shows the reason in its tooltip.
        if status.state == .completed, case .empty = icon.binding.state {
            icon.load(ImageRequest(.file(status.path)), in: model.service)
        }
    }

    private func perform(_ body: @escaping @MainActor (DownloadModel, String) async -> Void) {
        guard let id else { return }
        Task { [model] in await body(model, id) }
    }

    private static func symbol(_ state: DownloadStatus.State) -> (String, String) {
        switch state {
        case .waiting, .running, .delayed: ("media-playback-pause-symbolic", "Pause")
        case .paused: ("media-playback-start-symbolic", "Resume")
        case .failed, .cancelled: ("view-refresh-symbolic", "Try again")
        case .completed: ("object-select-symbolic", "Done")
        }
    }

    private static func text(_ status: DownloadStatus) -> String {
        let there = ByteCount(status.received).description
        let amount = status.total.map { "\(there) of \(ByteCount($0))" } ?? there
        switch status.state {
        case .waiting: return "waiting"
        case .running:
            let speed = status.speed.map { ", \(ByteCount(Int($0))) a second" } ?? ""
            return amount + speed
        case .delayed: return "\(amount), retrying: \(status.error?.description ?? "")"
        case .paused: return "\(amount), paused"
        case .completed: return "\(ByteCount(status.received)), done"
        case .failed: return status.error?.description ?? "failed"
        case .cancelled: return "cancelled"
        }
    }
}
