import AppKit
import Foundation
import Testing
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// AppKit's image view as a target.
@MainActor
struct AppKitTests {
    private let fixture: AdapterFixture
    private let view = NSImageView()

    init() throws {
        fixture = try AdapterFixture()
        view.frame = CGRect(x: 0, y: 0, width: 100, height: 50)
    }

    @Test func memoryIsShownAtOnceInPointsOfTheWindow() {
        view.window = NSWindow()
        let request = fixture.stored("a", AdapterFixture.image(7), for: view.targetGeometry)
        view.imageBinding.set(request, in: fixture.pipeline)
        #expect(view.image?.size == NSSize(width: 200, height: 200))
        #expect(view.image.flatMap { VitrineImaging.PixelImage($0) }?[0, 0].red == 7)
        #expect(view.layer == nil)
    }

    @Test func laterImagesFadeInOnlyInAWindow() async {
        let (gate, content) = fixture.slow("a", 1)
        view.imageBinding.set(content, in: fixture.pipeline)
        gate.open()
        await wait { view.image != nil }
        #expect(view.layer == nil)
        view.window = NSWindow()
        let (other, otherContent) = fixture.slow("b", 2)
        view.imageBinding.set(otherContent, in: fixture.pipeline)
        other.open()
        await wait { view.layer != nil }
        #expect(view.layer?.stubAnimations.map(\.duration) == [0.1])
        #expect(view.image.flatMap { VitrineImaging.PixelImage($0) }?[0, 0].red == 2)
    }

    @Test func theBoxFollowsTheScaling() {
        #expect(
            view.targetGeometry == TargetGeometry(width: 100, height: 50, scale: 1, mode: .fit, allowsUpscaling: false))
        view.window = NSWindow()
        view.imageScaling = .scaleAxesIndependently
        #expect(view.targetGeometry == TargetGeometry(width: 100, height: 50, scale: 2, mode: .stretch))
        view.imageScaling = .scaleProportionallyUpOrDown
        #expect(view.targetGeometry == TargetGeometry(width: 100, height: 50, scale: 2, mode: .fit))
        view.imageScaling = .scaleNone
        #expect(view.targetGeometry == nil)
    }

    @Test func theBindingIsTheViewsOwn() {
        #expect(view.imageBinding === view.imageBinding && view.imageBinding !== NSImageView().imageBinding)
    }
}
