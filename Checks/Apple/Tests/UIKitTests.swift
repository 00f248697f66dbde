import Foundation
import ObjectiveC
import Testing
import UIKit
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// UIKit views as targets.
@MainActor
struct UIKitTests {
    private let fixture: AdapterFixture
    private let view = UIImageView()

    init() throws {
        fixture = try AdapterFixture()
        view.frame = CGRect(x: 5, y: 5, width: 100, height: 50.5)
        view.contentMode = .scaleToFill
    }

    private var shown: VitrineImaging.PixelImage? { view.image.flatMap { VitrineImaging.PixelImage($0) } }
    private var red: UInt8? { shown?[0, 0].red }

    @Test func memoryIsShownAtOnceAtTheSizeOfTheViewInPixels() {
        view.window = UIWindow()
        let image = AdapterFixture.image(8, size: PixelSize(width: 200, height: 101))
        var request = fixture.stored("a", image, for: view.targetGeometry)
        request.resizing = .none
        view.imageBinding.set(request, in: fixture.pipeline)
        #expect(red == 8 && shown?.size == PixelSize(width: 200, height: 101))
        #expect(view.image?.scale == 2 && view.stubTransitions.isEmpty)
    }

    private nonisolated static let modes: [(UIView.ContentMode, ImageResizer.Mode?)] = [
        (.scaleToFill, .stretch), (.scaleAspectFit, .fit), (.scaleAspectFill, .fill), (.center, nil),
        (.redraw, nil),
    ]

    @Test(arguments: modes)
    func theBoxFollowsTheContentMode(_ mode: UIView.ContentMode, _ resizing: ImageResizer.Mode?) {
        view.contentMode = mode
        #expect(view.targetGeometry == resizing.flatMap { TargetGeometry(width: 100, height: 50.5, scale: 2, mode: $0) })
        view.traitCollection = UITraitCollection(displayScale: 0)
        #expect(view.targetGeometry?.size == resizing.map { _ in PixelSize(width: 100, height: 51) })
    }

    @Test func aViewWithoutASizeHasNoBox() {
        view.frame = .zero
        #expect(view.targetGeometry == nil)
    }

    @Test func laterImagesFadeInOnlyInAWindow() async {
        let (gate, content) = fixture.slow("a", 1)
        view.imageBinding.options.placeholder = AdapterFixture.image(99)
        view.imageBinding.set(content, in: fixture.pipeline)
        #expect(red == 99)
        gate.open()
        await wait { red == 1 }
        #expect(view.stubTransitions.isEmpty)
        view.window = UIWindow()
        let (other, otherContent) = fixture.slow("b", 2)
        view.imageBinding.set(otherContent, in: fixture.pipeline)
        other.open()
        await wait { red == 2 }
        #expect(view.stubTransitions.map(\.duration) == [0.1])
        #expect(view.stubTransitions[0].options.contains(.transitionCrossDissolve))
    }

    @Test func animationsPlayUnlessMotionIsReduced() async throws {
        view.imageBinding.set(try AdapterFixture.blinking(), in: fixture.pipeline)
        var reds: Set<Bool> = []
        await wait {
            if let red { reds.insert(red > 50) }
            return reds.count == 2
        }
        UIAccessibility.stubReducesMotion = true
        defer { UIAccessibility.stubReducesMotion = false }
        await wait { !view.imageBinding.isPlaying }
        #expect(view.prefersReducedMotion && UIButton().prefersReducedMotion)
    }

    @Test func aCellThatIsUsedAgainShowsNothingOfBefore() async {
        let (old, oldContent) = fixture.slow("old", 1), (new, newContent) = fixture.slow("new", 2)
        var told: [String] = []
        view.imageBinding.set(oldContent, in: fixture.pipeline) { _ in told.append("old") }
        view.imageBinding.prepareForReuse()
        view.imageBinding.set(newContent, in: fixture.pipeline) { _ in told.append("new") }
        old.open()
        new.open()
        await wait { red != nil }
        #expect(red == 2 && told == ["new"])
    }

    @Test func theBindingIsTheViewsAndGoesWithIt() async {
        let first = view.imageBinding
        #expect(view.imageBinding === first)
        var other: UIImageView? = UIImageView()
        weak let gone = other
        weak let binding = other?.imageBinding
        #expect(gone != nil && binding != nil && binding !== first)
        other = nil
        stubSweepAssociatedObjects()
        #expect(gone == nil && binding == nil)
    }

    @Test func aViewThatIsLaidOutAnewLoadsItsSize() async throws {
        let path = fixture.directory.file("picture.png")
        try Data(AdapterFixture.image(5).encoded(as: .png)).write(to: URL(filePath: path))
        view.imageBinding.set(ImageRequest(.file(path)), in: fixture.pipeline)
        await wait { shown?.size == PixelSize(width: 200, height: 101) }
        view.frame = CGRect(x: 0, y: 0, width: 20, height: 10)
        view.imageBinding.targetSizeDidChange()
        await wait { shown?.size == PixelSize(width: 40, height: 20) }
    }

    // MARK: Buttons

    @Test func statesAndBackgroundsOfAButtonAreApart() async {
        let button = UIButton()
        button.frame = CGRect(x: 0, y: 0, width: 44, height: 24)
        let (normal, normalContent) = fixture.slow("n", 1), (high, highContent) = fixture.slow("h", 2)
        let (back, backContent) = fixture.slow("b", 3)
        button.imageSlots[.image()].set(normalContent, in: fixture.pipeline)
        button.imageSlots[.image(.highlighted)].set(highContent, in: fixture.pipeline)
        button.imageSlots[.background()].set(backContent, in: fixture.pipeline)
        button.imageSlots[.image()].cancel()
        for gate in [normal, high, back] { gate.open() }
        await wait { button.image(for: .highlighted) != nil && button.backgroundImage(for: .normal) != nil }
        #expect(button.image(for: .normal) == nil)
        #expect(button.image(for: .highlighted).flatMap { VitrineImaging.PixelImage($0) }?[0, 0].red == 2)
        #expect(button.backgroundImage(for: .normal).flatMap { VitrineImaging.PixelImage($0) }?[0, 0].red == 3)
    }

    @Test func aButtonsPlacesFollowItsGeometry() {
        let button = UIButton()
        button.frame = CGRect(x: 0, y: 0, width: 44, height: 24)
        let fitting = TargetGeometry(width: 40, height: 20, scale: 2, mode: .fit, allowsUpscaling: false)
        #expect(button.targetGeometry(of: .image()) == fitting)
        #expect(button.targetGeometry(of: .background(.selected)) == TargetGeometry(width: 44, height: 24, scale: 2, mode: .stretch))
        button.contentHorizontalAlignment = .fill
        #expect(button.targetGeometry(of: .image()) == fitting)
        button.contentVerticalAlignment = .fill
        #expect(button.targetGeometry(of: .image()) == TargetGeometry(width: 40, height: 20, scale: 2, mode: .stretch))
    }
}
