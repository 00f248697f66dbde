import Foundation
import SwiftUI
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// The SwiftUI view, inspected pass by pass.
@Suite(.serialized)
@MainActor
struct SwiftUITests {
    private let fixture: AdapterFixture

    init() throws {
        fixture = try AdapterFixture()
        StubPass.size = CGSize(width: 100, height: 50)
        StubPass.animations = []
    }

    /// The calls of the placeholder in a pass.
    @MainActor
    private final class Placeholders {
        var errors: [(any Error)?] = []

        func view(_ error: (any Error)?) -> SwiftUI.Color {
            errors.append(error)
            return .gray
        }
    }

    private func view(
        _ request: ImageRequest?, _ placeholders: Placeholders
    ) -> LazyImage<SwiftUI.Color> {
        LazyImage(request, in: fixture.pipeline) { placeholders.view($0) }
    }

    private var shown: VitrineImaging.PixelImage? { StubPass.images.last.flatMap { VitrineImaging.PixelImage($0) } }

    /// Starts the task, as SwiftUI does after a pass.
    private func begin() async { await StubPass.tasks.last?.action() }

    @Test func memoryIsThereAtTheFirstPass() async {
        let geometry = TargetGeometry(width: 100, height: 50, scale: 2, mode: .fill)
        let request = fixture.stored("a", AdapterFixture.image(7), for: geometry)
        let placeholders = Placeholders()
        let view = view(request, placeholders)
        StubPass.look(at: view)
        #expect(shown?[0, 0].red == 7 && placeholders.errors.isEmpty)
        let id = StubPass.tasks.last.map { "\($0.id)" }
        await begin()
        StubPass.look(at: view)
        // The same request does not start again.
        #expect(shown?[0, 0].red == 7 && StubPass.animations.isEmpty)
        #expect(StubPass.tasks.last.map { "\($0.id)" } == id)
    }

    @Test func laterImagesFadeInAfterThePlaceholder() async {
        let (gate, content) = fixture.slow("a", 1)
        let placeholders = Placeholders()
        let view = view(content, placeholders)
        StubPass.look(at: view)
        #expect(StubPass.images.isEmpty && placeholders.errors.count == 1)
        await begin()
        gate.open()
        await wait { !StubPass.animations.isEmpty }
        StubPass.look(at: view)
        #expect(shown?[0, 0].red == 1 && StubPass.animations == [.easeIn(duration: 0.1)])
    }

    @Test func itIsLoadedAtTheSizeOfTheView() async throws {
        let path = fixture.directory.file("picture.png")
        try Data(AdapterFixture.image(5).encoded(as: .png)).write(to: URL(filePath: path))
        let view = view(ImageRequest(.file(path)), Placeholders())
        StubPass.look(at: view)
        await begin()
        await wait { !StubPass.animations.isEmpty }
        StubPass.look(at: view)
        #expect(shown?.size == PixelSize(200))
    }

    @Test func aFailureReachesThePlaceholder() async {
        let (gate, content) = fixture.slow("a", nil)
        let placeholders = Placeholders()
        let view = view(content, placeholders)
        StubPass.look(at: view)
        await begin()
        gate.open()
        await wait {
            StubPass.look(at: view)
            return placeholders.errors.last.map { "\(String(describing: $0))".contains("SourceFailure") } ?? false
        }
        #expect(StubPass.images.isEmpty)
    }

    @Test func aViewThatGoesLoadsNothingMore() async {
        let (gate, content) = fixture.slow("a", 1)
        let view = view(content, Placeholders())
        StubPass.look(at: view)
        await begin()
        for disappear in StubPass.disappearances { disappear() }
        gate.open()
        // Pending jobs of the main actor have run after this one.
        let (other, otherContent) = fixture.slow("b", 2)
        let second = self.view(otherContent, Placeholders())
        StubPass.look(at: second)
        await begin()
        other.open()
        await wait { !StubPass.animations.isEmpty }
        StubPass.look(at: view)
        #expect(StubPass.images.isEmpty)
    }

    @Test func aViewWithoutASizeWaits() async {
        StubPass.size = .zero
        let sizes = Recorder<PixelSize>()
        let source = SlowSource(key: "a") { request in
            sizes.add(request.size)
            return AdapterFixture.image(1)
        }
        source.open()
        let view = view(ImageRequest(source), Placeholders())
        StubPass.look(at: view)
        let id = StubPass.tasks.last.map { "\($0.id)" }
        await begin()
        StubPass.size = CGSize(width: 10, height: 10)
        StubPass.look(at: view)
        #expect(StubPass.tasks.last.map { "\($0.id)" } != id)
        await begin()
        await wait { !StubPass.animations.isEmpty }
        StubPass.look(at: view)
        #expect(shown?[0, 0].red == 1)
        #expect(sizes.all == [PixelSize(20)])
    }
}
