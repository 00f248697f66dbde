import CGTK
import DemoSupport
import Foundation
import VitrineGTK
import VitrineImaging

/// Drops images onto the window, renames one, deletes one, and checks the results.
@MainActor
final class ShelfDrive {
    private let demo: Demo
    private var view: ShelfView?
    private let shelf: Shelf
    private let files: [String]

    /// - Parameter files: The files to drop. Default: generated images.
    init(_ demo: Demo, view: ShelfView, files: [String]) {
        (self.demo, self.view, self.files) = (demo, view, files)
        shelf = view.shelf
    }

    /// - Returns: false after a failure.
    func run() async -> Bool {
        let directory = path(NSTemporaryDirectory(), "vitrine-drop-\(UUID().uuidString)")
        defer {
            try? FileManager.default.removeItem(atPath: directory)
            shelf.cleanUp()
        }
        guard let dropped = try? files.isEmpty ? Self.paint(in: directory) : files, dropped.count > 2,
            await demo.wait(until: { [self] in demo.window.size.width > 0 })
        else { return fail("there are no files to drop") }
        demo.meter.reset()
        let clock = ContinuousClock.now
        guard drop(dropped), await demo.wait(until: { [self] in shelf.names.count == dropped.count }) else {
            return fail("\(shelf.names.count) of \(dropped.count) are stored")
        }
        guard await allShown() else { return fail("not all are shown") }
        let took = (ContinuousClock.now - clock).milliseconds.text
        print("dropped \(dropped.count) images; stored and shown after \(took) ms")
        guard await rename(), await delete(), await refuse(in: directory), await allShown() else { return false }
        print("frames: \(demo.meter.report)")
        await demo.settle(seconds: 0.4)
        await demo.shoot()
        demo.window.close()
        view = nil
        guard await demo.wait(seconds: 10, until: { ShelfCell.alive == 0 }) else {
            return fail("\(ShelfCell.alive) cells outlive their window")
        }
        print("closed: no cell is left")
        return true
    }

    private func allShown() async -> Bool {
        await demo.wait { [self] in
            let shown = shelf.names.compactMap { ShelfCell.showing($0) }
            return !shown.isEmpty && shown.allSatisfy(\.isShown)
        }
    }

    private func rename() async -> Bool {
        guard let name = shelf.names.first, let cell = ShelfCell.showing(name) else { return fail("no image is shown") }
        cell.edit("A new name.jpg")
        let isRenamed = await demo.wait { [self] in
            shelf.names.contains("A new name.jpg") && !shelf.names.contains(name)
        }
        guard isRenamed else { return fail("\(name) is not renamed: \(view?.problemText ?? "")") }
        print("renamed \(name)")
        // An existing name is refused, and both images stay.
        guard let other = await another() else { return fail("no other image is shown") }
        ShelfCell.showing(other)?.edit("A new name.jpg")
        guard await demo.wait(until: { [self] in view?.problemText.isEmpty == false }), shelf.names.contains(other)
        else { return fail("an existing name is not refused") }
        print("refused: \(view?.problemText ?? "")")
        return true
    }

    private func delete() async -> Bool {
        guard let name = await another() else { return fail("no image is shown") }
        ShelfCell.showing(name)?.delete()
        guard await demo.wait(until: { [self] in !shelf.names.contains(name) }) else {
            return fail("\(name) is not deleted")
        }
        print("deleted \(name)")
        return true
    }

    /// Returns an image on screen that was not renamed.
    private func another() async -> String? {
        let isShown = { [shelf] in shelf.names.first { $0 != "A new name.jpg" && ShelfCell.showing($0) != nil } }
        _ = await demo.wait { isShown() != nil }
        return isShown()
    }

    /// Drops two files that are not images.
    private func refuse(in directory: String) async -> Bool {
        let files = ["letter.jpg", "list.png"].map { path(directory, $0) }, names = shelf.names
        try? FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let areWritten = files.allSatisfy {
            FileManager.default.createFile(atPath: $0, contents: Data("Dear all,".utf8))
        }
        guard areWritten, drop(files) else { return fail("the files were not dropped") }
        let areNamed = await demo.wait { [self] in
            ["letter.jpg", "list.png"].allSatisfy { view?.problemText.contains($0) == true }
        }
        guard areNamed else { return fail("a refused file has no message: \(view?.problemText ?? "")") }
        print("refused: \(view?.problemText.replacing("\n", with: " ") ?? "")")
        return shelf.names == names ? true : fail("a refused file is stored")
    }

    // MARK: Dropping

    /// Emits the signal of the window's drop target for dropped files.
    private func drop(_ files: [String]) -> Bool {
        guard let target = view?.drop else { return false }
        var pointers: [OpaquePointer?] = files.map { g_file_new_for_path($0) }
        let list = gdk_file_list_new_from_array(&pointers, gsize(pointers.count))
        for pointer in pointers { g_object_unref(UnsafeMutableRawPointer(pointer)) }
        var value = GValue()
        g_value_init(&value, gdk_file_list_get_type())
        g_value_take_boxed(&value, UnsafeRawPointer(list))
        var parameters = [GValue(), GValue(), GValue(), GValue()]
        g_value_init(&parameters[0], gtk_drop_target_get_type())
        g_value_set_object(&parameters[0], target.raw)
        g_value_init(&parameters[1], g_value_get_type())
        g_value_set_boxed(&parameters[1], &value)
        for index in 2...3 { g_value_init(&parameters[index], GType(15 << 2)) }  // G_TYPE_DOUBLE: gtype.h
        var answer = GValue()
        g_value_init(&answer, GType(5 << 2))  // G_TYPE_BOOLEAN
        defer {
            for index in parameters.indices { g_value_unset(&parameters[index]) }
            g_value_unset(&value)
            g_value_unset(&answer)
        }
        g_signal_emitv(parameters, g_signal_lookup("drop", gtk_drop_target_get_type()), 0, &answer)
        return g_value_get_boolean(&answer) != 0
    }

    private static func paint(in directory: String) throws -> [String] {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        return try (1...9).map { number in
            let file = path(directory, "valley-\(number).jpg")
            let (width, height) = number % 3 == 0 ? (600, 800) : (960, 640)
            let bytes = try PaintedPicture.landscape(200 + number, width: width, height: height).encoded(
                as: .jpeg(quality: 0.85))
            try Data(bytes).write(to: URL(filePath: file))
            return file
        }
    }

    private func fail(_ reason: String) -> Bool {
        print("FAILED: \(reason)")
        return false
    }
}
