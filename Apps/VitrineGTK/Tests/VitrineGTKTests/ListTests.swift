import CGTK
import Testing
import VitrineGTK
import VitrineImaging

extension GTKTests {
    @Suite("Lists") @MainActor struct Lists {
        @MainActor
        final class Cell: ListCell {
            static var alive = 0
            let picture = Picture()
            let desk: Desk
            var root: Widget { picture }

            init(_ desk: Desk) {
                self.desk = desk
                picture.setSizeRequest(100, 80)
                Self.alive += 1
            }

            isolated deinit { Self.alive -= 1 }

            /// The cells by their items.
            static var cells: [String: Weak] = [:]

            struct Weak { weak var cell: Cell? }

            func bind(_ identifier: String) {
                Self.cells[identifier] = Weak(cell: self)
                picture.load(desk.request(identifier), in: desk.pipeline)
            }

            func unbind() { picture.prepareForReuse() }
        }

        @Test func loadOnlyWhatIsOnScreen_andKeepNothingInTheEnd() async throws {
            let desk = Desk()
            var list: ItemList? = ItemList(.grid(columns: 4), of: ListItems((0..<2000).map(String.init))) { Cell(desk) }
            let window = try TestWindow(#require(list?.scroller), width: 500, height: 400)
            try await wait(for: "requests") { desk.boxes.count >= 12 }
            for _ in 0..<40 {
                while g_main_context_iteration(nil, 0) != 0 {}
                try await Task.sleep(for: .milliseconds(5))
            }
            try await wait(for: "cells") { (list?.factory.cellsMade ?? 0) > 100 }
            #expect(desk.boxes.count <= 30)
            window.close()
            list = nil
            try await wait(for: "the cells to go") { Cell.alive == 0 }
            try await wait(for: "the end of the work") { desk.cancelled.count == desk.boxes.count }
        }

        @Test func moveTheFocusToACell() async throws {
            let desk = Desk()
            let list = ItemList(.grid(columns: 4), of: ListItems((0..<12).map { "focus-\($0)" })) { Cell(desk) }
            let window = TestWindow(list.scroller, width: 500, height: 400)
            defer { window.close() }
            try await wait(for: "the cell") { Cell.cells["focus-5"]?.cell?.picture.isInView == true }
            let cell = try #require(Cell.cells["focus-5"]?.cell)
            cell.grabFocus()
            #expect(gtk_window_get_focus(window.window.pointer) == gtk_widget_get_parent(cell.picture.widget))
        }

        @Test func changeOnlyWhatHasChanged() {
            let items = ListItems(["a", "b", "c", "d"])
            var changes: [(Int, Int, Int)] = []
            let body: @convention(c) (OpaquePointer?, guint, guint, guint, UnsafeMutableRawPointer?) -> Void = {
                let seen = Unmanaged<Seen>.fromOpaque($4!).takeUnretainedValue()
                seen.changes.append((Int($1), Int($2), Int($3)))
            }
            let seen = Seen()
            g_signal_connect_data(
                items.raw, "items-changed", unsafeBitCast(body, to: GCallback.self),
                Unmanaged.passUnretained(seen).toOpaque(), nil, GConnectFlags(rawValue: 0))
            for next in [["a", "x", "c", "d"], ["a", "c", "d"], ["a", "c", "d"], ["a", "c", "d", "e"], []] {
                items.replace(with: next)
                #expect(items.identifiers == next && items.count == Int(g_list_model_get_n_items(items.opaque)))
            }
            changes = seen.changes
            #expect(changes.map { [$0.0, $0.1, $0.2] } == [[1, 1, 1], [1, 1, 0], [3, 0, 1], [0, 4, 0]])
        }

        private final class Seen { var changes: [(Int, Int, Int)] = [] }
    }
}
