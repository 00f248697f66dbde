import CGTK
import Foundation
import Synchronization
import Testing
import VitrineCore
import VitrineGTK
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// A pipeline whose sources wait until the test answers.
final class Desk: Sendable {
    struct Unwanted: Error, CustomStringConvertible { let description = "there is no such picture" }

    /// One call of a source.
    private final class Call: Sendable {
        let name: String
        private let result = Mutex<Result<PixelImage, any Error>?>(nil)
        private let isOver = DispatchSemaphore(value: 0)

        init(_ name: String) { self.name = name }

        func end(_ new: Result<PixelImage, any Error>) {
            result.withLock { $0 = $0 ?? new }
            isOver.signal()
        }

        func wait() throws -> PixelImage {
            isOver.wait()
            guard let result = result.withLock({ $0 }) else { throw Unwanted() }
            return try result.get()
        }
    }

    private struct Source: BlockingImageSource {
        let name: String
        let desk: Desk
        var knownIdentity: CacheKey? { CacheKey(name) }
        func identity() -> CacheKey { CacheKey(name) }
        func image(_ request: RenderRequest) throws -> PixelImage { try desk.image(name, request) }
    }

    private struct State {
        var boxes: [TargetGeometry?] = []
        var stored: [String: PixelImage] = [:]
        var waiting: [Call] = []
        var cancelled: [String] = []
    }

    private let state = Mutex(State())
    let pipeline: ImagePipeline

    init() {
        var configuration = ImagePipeline.Configuration(root: NSTemporaryDirectory(), concurrency: 64)
        configuration.usesDiskCache = false
        configuration.memoryPressure = nil
        pipeline = ImagePipeline(configuration)
    }

    /// The sizes that sources were called for.
    var boxes: [TargetGeometry?] { state.withLock { $0.boxes } }
    var cancelled: [String] { state.withLock { $0.cancelled } }

    func request(_ name: String) -> ImageRequest { ImageRequest(Source(name: name, desk: self)) }

    /// A request whose image is in memory at the size of a widget.
    @MainActor
    func stored(_ name: String, _ image: PixelImage, for widget: ImageWidget) async throws -> ImageRequest {
        state.withLock { $0.stored[name] = image }
        var sized = request(name)
        if let geometry = widget.targetGeometry { sized.resizing = geometry.resizer }
        _ = try await pipeline.image(for: sized)
        return request(name)
    }

    private func image(_ name: String, _ request: RenderRequest) throws -> PixelImage {
        if let image = state.withLock({ $0.stored[name] }) { return image }
        let call = Call(name)
        let box = TargetGeometry(
            width: Double(request.size.width), height: Double(request.size.height), mode: request.mode,
            allowsUpscaling: request.allowsUpscaling)
        state.withLock { state in
            state.boxes.append(box)
            state.waiting.append(call)
        }
        request.cancellation.onCancel { [self] in
            state.withLock { state in
                state.cancelled.append(name)
                state.waiting.removeAll { $0 === call }
            }
            call.end(.failure(CancellationError()))
        }
        return try call.wait()
    }

    func answer(_ name: String, _ result: Result<PixelImage, any Error>) {
        let found = state.withLock { state in
            let found = state.waiting.filter { $0.name == name }
            state.waiting.removeAll { $0.name == name }
            return found
        }
        for call in found { call.end(result) }
    }
}

extension GTKTests {
    @Suite("Pictures") @MainActor struct Pictures {
        private let red = PixelImage.plain(8, 8, PixelColor(red: 255, green: 0, blue: 0))
        private let blue = PixelImage.plain(8, 8, PixelColor(red: 0, green: 0, blue: 255))

        private func shows(_ picture: ImageWidget, _ image: PixelImage?) -> Bool {
            picture.paintable.texture?.pixels === image?.sharedPixels
        }

        @Test func areAskedForWhenTheyAreDrawn_atTheirRealSize() async throws {
            let desk = Desk(), picture = Picture(fit: .cover)
            picture.load(desk.request("a"), in: desk.pipeline)
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

        @Test func animationsPlayWhileTheyAreOnTheScreen() async throws {
            let encoder = try AnimationEncoder(as: .webp(), isOpaque: true)
            for image in [red, blue] { try encoder.add(image, seconds: 0.02) }
            let request = ImageRequest(.bytes(try encoder.finish(), name: "blink"))
            let picture = Picture(), desk = Desk()
            var pictures: Set<ObjectIdentifier> = []
            func note() { if let pixels = picture.paintable.texture?.pixels { pictures.insert(ObjectIdentifier(pixels)) } }
            picture.load(request, in: desk.pipeline)
            let window = TestWindow(picture)
            try await wait(for: "both frames") {
                note()
                return pictures.count >= 2
            }
            window.close()
            while g_main_context_iteration(nil, 0) != 0 {}
            #expect(!picture.binding.isVisible)
            let last = picture.paintable.texture?.pixels
            for _ in 0..<30 {
                while g_main_context_iteration(nil, 0) != 0 {}
                try await Task.sleep(for: .milliseconds(2))
            }
            #expect(picture.paintable.texture?.pixels === last)
        }

        @Test func inMemoryAreShownAtOnce() async throws {
            let picture = Picture(), desk = Desk()
            picture.setSizeRequest(64, 64)
            picture.load(try await desk.stored("a", red, for: picture), in: desk.pipeline)
            #expect(shows(picture, red))
        }

        @Test func ofServicesInMemoryAreShownAtOnce() async throws {
            var configuration = ImagePipeline.Configuration(root: NSTemporaryDirectory())
            configuration.usesDiskCache = false
            let service = ImagePipeline(configuration)
            let source = BuiltInSource.image(red, identity: "red").identified(by: "red")
            let made = try await service.image(for: ImageRequest(source, resizing: .fit(4)))
            #expect(made.size == PixelSize(4))
            let box = try #require(TargetGeometry(width: 4, height: 4))
            #expect(service.cachedImage(for: ImageRequest(source, resizing: box.resizer))?.sharedPixels === made.sharedPixels)
            #expect(service.cachedImage(for: ImageRequest(source, resizing: .fit(5))) == nil)
        }

        @Test func thatComeLateAreDropped() async throws {
            let desk = Desk(), picture = Picture()
            picture.setSizeRequest(64, 64)
            picture.load(desk.request("old"), in: desk.pipeline, when: .now)
            try await wait(for: "the old request") { desk.boxes.count == 1 }
            picture.load(desk.request("new"), in: desk.pipeline, when: .now)
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
            picture.load(desk.request("a"), in: desk.pipeline, when: .now) { _ in } onFailure: { _ in failures += 1 }
            try await wait(for: "a request") { desk.boxes.count == 1 }
            desk.answer("a", .failure(Desk.Unwanted()))
            try await wait(for: "the failure") { failures == 1 }
            #expect(shows(picture, .failure))
            let tooltip = { gtk_widget_get_tooltip_text(picture.widget).map { String(cString: $0) } }
            #expect(tooltip()?.contains("there is no such picture") == true)
            picture.load(try await desk.stored("b", red, for: picture), in: desk.pipeline)
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
            picture.load(desk.request("a"), in: desk.pipeline)
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
            picture.load(desk.request("a"), in: desk.pipeline)
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
            picture.load(desk.request("a"), in: desk.pipeline)
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
            picture.load(desk.request("a"), in: desk.pipeline)
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
            button.slots[.image(.normal)].show(red)
            button.slots[.image(.disabled)].show(blue)
            button.slots[.background(.normal)].show(blue)
            #expect(button.shownImage?.sharedPixels === red.sharedPixels)
            gtk_widget_set_sensitive(button.widget, 0)
            #expect(button.state == .disabled)
            #expect(button.shownImage?.sharedPixels === blue.sharedPixels)
            #expect(button.shownBackground?.sharedPixels === blue.sharedPixels)
        }

        @Test func ofIconsHaveTheIconsSize() {
            let icon = Icon(side: 24)
            let scale = Double(icon.scaleFactor)
            let box = TargetGeometry(width: 24, height: 24, scale: scale, mode: .fit, allowsUpscaling: false)
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
