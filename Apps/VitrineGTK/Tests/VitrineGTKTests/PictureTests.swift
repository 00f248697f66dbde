import CGTK
import Foundation
import Synchronization
import Testing
import VitrineCore
import VitrineGTK
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// A source that answers on demand.
final class Desk: Sendable {
    struct Unwanted: Error, CustomStringConvertible { let description = "there is no such picture" }

    private struct State {
        var boxes: [TargetGeometry?] = []
        var waiting: [(String, CheckedContinuation<Image, any Error>)] = []
        var cancelled: [String] = []
    }

    private let state = Mutex(State())

    var boxes: [TargetGeometry?] { state.withLock { $0.boxes } }
    var cancelled: [String] { state.withLock { $0.cancelled } }

    func content(_ name: String, inMemory image: Image? = nil) -> ImageContent<Image> {
        ImageContent(id: CacheKey(name), inMemory: { _ in image }) { [self] box in
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    state.withLock { state in
                        state.boxes.append(box)
                        state.waiting.append((name, continuation))
                    }
                }
            } onCancel: {
                state.withLock { $0.cancelled.append(name) }
                answer(name, .failure(CancellationError()))
            }
        }
    }

    func answer(_ name: String, _ result: Result<Image, any Error>) {
        let found = state.withLock { state in
            let found = state.waiting.filter { $0.0 == name }
            state.waiting.removeAll { $0.0 == name }
            return found
        }
        for (_, continuation) in found { continuation.resume(with: result) }
    }
}

extension GTKTests {
    @Suite("Pictures") @MainActor struct Pictures {
        private let red = Image.plain(8, 8, Color(red: 255, green: 0, blue: 0))
        private let blue = Image.plain(8, 8, Color(red: 0, green: 0, blue: 255))

        private func shows(_ picture: ImageWidget, _ image: Image?) -> Bool {
            picture.paintable.texture?.pixels === image?.sharedPixels
        }

        @Test func areAskedForWhenTheyAreDrawn_atTheirRealSize() async throws {
            let desk = Desk(), picture = Picture(fit: .cover)
            picture.load(desk.content("a"))
            for _ in 0..<20 { while g_main_context_iteration(nil, 0) != 0 {} }
            #expect(desk.boxes.isEmpty)
            let window = TestWindow(picture, width: 300, height: 200)
            try await wait(for: "a request") { !desk.boxes.isEmpty }
            let scale = Double(picture.scaleFactor)
            #expect(
                desk.boxes == [
                    TargetGeometry(width: 300, height: 200, scale: scale, mode: .crop(.center), allowsUpscaling: false)
                ])
            desk.answer("a", .success(red))
            try await wait(for: "the picture") { shows(picture, red) }
            window.close()
        }

        @Test func inMemoryAreShownAtOnce() {
            let picture = Picture()
            picture.setSizeRequest(64, 64)
            picture.load(Desk().content("a", inMemory: red))
            #expect(shows(picture, red))
        }

        @Test func ofServicesInMemoryAreShownAtOnce() async throws {
            var configuration = ImagePipeline.Configuration(root: NSTemporaryDirectory())
            configuration.usesDiskCache = false
            let service = ImagePipeline(configuration)
            var source = ImageFileSource(red, identifier: "red")
            source.identifier = "red"
            let made = try await service.image(for: ImageRequest(source, size: .fit(4)))
            #expect(made.size == PixelSize(4))
            let box = try #require(TargetGeometry(width: 4, height: 4))
            let content = ImageContent.request(ImageRequest(source), in: service)
            #expect(content.inMemory(for: box)?.sharedPixels === made.sharedPixels)
            #expect(content.inMemory(for: TargetGeometry(width: 5, height: 5)) == nil)
        }

        @Test func thatComeLateAreDropped() async throws {
            let desk = Desk(), picture = Picture()
            picture.setSizeRequest(64, 64)
            picture.load(desk.content("old"), when: .now)
            try await wait(for: "the old request") { desk.boxes.count == 1 }
            picture.load(desk.content("new"), when: .now)
            try await wait(for: "the new request") { desk.boxes.count == 2 }
            #expect(desk.cancelled == ["old"])
            desk.answer("new", .success(blue))
            try await wait(for: "the new picture") { shows(picture, blue) }
        }

        @Test func thatAreNotToBeHadSayWhy() async throws {
            let desk = Desk(), picture = Picture()
            picture.tooltip = "lake.jpg"
            picture.setSizeRequest(64, 64)
            var failures = 0
            picture.load(desk.content("a"), when: .now) { _ in } onFailure: { _ in failures += 1 }
            try await wait(for: "a request") { desk.boxes.count == 1 }
            desk.answer("a", .failure(Desk.Unwanted()))
            try await wait(for: "the failure") { failures == 1 }
            #expect(shows(picture, .failure))
            let tooltip = { gtk_widget_get_tooltip_text(picture.widget).map { String(cString: $0) } }
            #expect(tooltip() == "there is no such picture")
            picture.load(desk.content("b", inMemory: red))
            #expect(shows(picture, red))
            #expect(tooltip() == "lake.jpg")
        }

        @Test func areTriedAgainAsLongAsThatIsWanted() async throws {
            let desk = Desk(), picture = Picture()
            picture.binding.options.placeholder = blue
            var attempts: [Int] = []
            picture.retryDelay = { _, attempt in
                attempts.append(attempt)
                return attempt < 3 ? .milliseconds(1) : nil
            }
            picture.load(desk.content("a"))
            let window = TestWindow(picture)
            for attempt in 1...2 {
                try await wait(for: "request \(attempt)") { desk.boxes.count == attempt }
                desk.answer("a", .failure(Desk.Unwanted()))
                try await wait(for: "attempt \(attempt)") { attempts.count == attempt }
                #expect(shows(picture, blue))
            }
            try await wait(for: "the third request") { desk.boxes.count == 3 }
            desk.answer("a", .success(red))
            try await wait(for: "the picture") { shows(picture, red) }
            #expect(attempts == [1, 2])
            window.close()
        }

        @Test func areGivenUpWhenTheirWindowGoes() async throws {
            let desk = Desk(), picture = Picture()
            picture.load(desk.content("a"))
            let window = TestWindow(picture)
            try await wait(for: "a request") { desk.boxes.count == 1 }
            window.close()
            try await wait(for: "the end of the work") { desk.cancelled == ["a"] }
        }

        @Test func areGivenUpWhenTheyAreScrolledAway_andAskedForWhenTheyComeBack() async throws {
            let desk = Desk(), picture = Picture()
            picture.setSizeRequest(200, 100)
            let rest = Widget(sinking: gtk_label_new("")!)
            rest.setSizeRequest(200, 3000)
            let column = Widget(sinking: gtk_box_new(GTK_ORIENTATION_VERTICAL, 0)!)
            for child in [picture, rest] {
                gtk_box_append(UnsafeMutablePointer<GtkBox>(column.opaque), child.widget)
            }
            let scroller = Widget(sinking: gtk_scrolled_window_new()!)
            gtk_scrolled_window_set_child(scroller.opaque, column.widget)
            picture.load(desk.content("a"))
            let window = TestWindow(scroller)
            try await wait(for: "a request") { desk.boxes.count == 1 }
            let adjustment = gtk_scrolled_window_get_vadjustment(scroller.opaque)
            gtk_adjustment_set_value(adjustment, 2000)
            try await wait(for: "the end of the work") { desk.cancelled == ["a"] }
            gtk_adjustment_set_value(adjustment, 0)
            try await wait(for: "another request") { desk.boxes.count == 2 }
            desk.answer("a", .success(red))
            try await wait(for: "the picture") { shows(picture, red) }
            window.close()
        }

        @Test func areLoadedAgainForALargerPlace() async throws {
            let desk = Desk(), picture = Picture(fit: .contain)
            picture.load(desk.content("a"))
            let window = TestWindow(picture, width: 100, height: 100)
            try await wait(for: "a request") { desk.boxes.count == 1 }
            desk.answer("a", .success(red))
            try await wait(for: "the picture") { shows(picture, red) }
            gtk_window_set_default_size(window.window.pointer, 240, 180)
            try await wait(for: "a request of another size") { desk.boxes.count > 1 }
            #expect((desk.boxes.last ?? nil)?.size.width ?? 0 > 100)
            #expect(shows(picture, red))
            window.close()
        }

        @Test func belongToWidgetsFromAnywhere() {
            let widget = gtk_picture_new()!
            g_object_ref_sink(UnsafeMutableRawPointer(widget))
            weak let first = Picture.of(OpaquePointer(widget), fit: .fill)
            #expect(first != nil && first === Picture.of(OpaquePointer(widget)))
            g_object_unref(UnsafeMutableRawPointer(widget))
        }

        @Test func inButtonsFollowItsState() {
            let button = ImageButton(width: 32, height: 16)
            button.slots[.image(.normal)].set(.image(red))
            button.slots[.image(.disabled)].set(.image(blue))
            button.slots[.background(.normal)].set(.image(blue))
            #expect(button.shownImage?.sharedPixels === red.sharedPixels)
            gtk_widget_set_sensitive(button.widget, 0)
            #expect(button.state == .disabled)
            #expect(button.shownImage?.sharedPixels === blue.sharedPixels)
            #expect(button.shownBackground?.sharedPixels === blue.sharedPixels)
        }

        @Test func ofIconsHaveTheIconsSize() {
            let icon = Icon(side: 24)
            let scale = Double(icon.scaleFactor)
            let box = TargetGeometry(width: 24, height: 24, scale: scale, mode: .aspectFit, allowsUpscaling: false)
            #expect(icon.targetGeometry == box)
        }
    }

    @Suite("Fits") struct Fits {
        @Test(arguments: [
            (ContentFit.contain, 100.0, 50.0), (.cover, 200, 100), (.fill, 100, 100), (.scaleDown, 40, 20),
        ])
        func bringPicturesIntoAPlace(fit: ContentFit, width: Double, height: Double) {
            #expect(fit.size(of: 40, 20, in: 100, 100) == (width, height))
            #expect(ContentFit.scaleDown.size(of: 400, 200, in: 100, 100) == (100, 50))
        }
    }
}
