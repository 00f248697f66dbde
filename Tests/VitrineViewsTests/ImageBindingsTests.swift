import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// Several images in one target, each loaded independently.
@MainActor
struct ImageBindingsTests {
    private final class Button: MultiImageTarget {
        enum Slot: Hashable, Sendable {
            case image(Int), background(Int)
        }

        var shown: [Slot: [String?]] = [:]

        func show(_ image: PixelImage?, in slot: Slot, transition: ImageTransition) {
            shown[slot, default: []].append(image?.text)
        }

        func targetGeometry(of slot: Slot) -> TargetGeometry? {
            if case .background = slot { TargetGeometry(width: 90, height: 30, mode: .stretch) } else { nil }
        }
    }

    private let fixture: ViewFixture
    private let button = Button()

    init() throws { fixture = try ViewFixture() }

    @Test func slotsDoNotTouchEachOther() async {
        let slots = ImageBindings(button)
        let (first, firstContent) = fixture.slow("a", "one"), (second, secondContent) = fixture.slow("b", "two")
        let (third, thirdContent) = fixture.slow("c", "three")
        slots[.image(0)].set(firstContent, in: fixture.pipeline)
        slots[.image(1)].set(secondContent, in: fixture.pipeline)
        slots[.background(0)].options.placeholder = .named("ground")
        slots[.background(0)].set(thirdContent, in: fixture.pipeline)
        #expect(button.shown == [.background(0): ["ground"]])
        slots[.image(1)].cancel()
        for gate in [first, second, third] { gate.open() }
        await wait { button.shown.count == 2 && button.shown[.background(0)]?.count == 2 }
        #expect(button.shown == [.image(0): ["one"], .background(0): ["ground", "three"]])
        #expect(slots[.image(0)].target?.targetGeometry == nil)
        #expect(slots[.background(3)].target?.targetGeometry?.size.width == 90)
    }

    @Test func allSlotsCanBeCancelledAtOnce() async {
        let slots = ImageBindings(button)
        let (first, firstContent) = fixture.slow("a", "one"), (second, secondContent) = fixture.slow("b", "two")
        slots[.image(0)].set(firstContent, in: fixture.pipeline)
        slots[.background(0)].set(secondContent, in: fixture.pipeline)
        slots.cancel()
        for gate in [first, second] { gate.open() }
        await fixture.pipeline.waitUntilIdle()
        #expect(button.shown.isEmpty)
    }

    @Test func theButtonIsHeldWeakly() async {
        var button: Button? = Button()
        weak let gone = button
        guard let slots = button.map({ ImageBindings($0) }) else { return }
        let (gate, content) = fixture.slow("a", "one")
        slots[.image(0)].set(content, in: fixture.pipeline)
        button = nil
        #expect(gone == nil && slots.target == nil)
        gate.open()
        await fixture.pipeline.waitUntilIdle()
    }
}
