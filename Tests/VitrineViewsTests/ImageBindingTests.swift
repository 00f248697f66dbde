import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// The images that a target shows, and when.
@MainActor
struct ImageBindingTests {
    private let fixture: ViewFixture
    private let target = HeadlessTarget()
    private let binding: ImageBinding<HeadlessTarget>

    init() throws {
        fixture = try ViewFixture()
        binding = ImageBinding(target)
    }

    private var isLoading: Bool { if case .loading = binding.state { true } else { false } }
    private var isShown: Bool { if case .shown = binding.state { true } else { false } }
    private var isEmpty: Bool { if case .empty = binding.state { true } else { false } }
    private var hasFailed: Bool { if case .failed = binding.state { true } else { false } }

    // MARK: Memory and later

    @Test func whatIsInMemoryIsShownAtOnceWithoutTransition() {
        binding.options.placeholder = .named("placeholder")
        var told: [String?] = []
        binding.set(fixture.stored("a", "one"), in: fixture.pipeline) { told.append($0.text) }
        #expect(target.texts == ["one"])
        #expect(target.transition == ImageTransition.none)
        #expect(told == ["one"])
        #expect(isShown)
    }

    @Test func whatComesLaterFadesInForATenthOfASecond() async {
        let (gate, content) = fixture.slow("a", "one")
        var told: [String?] = []
        binding.set(content, in: fixture.pipeline) { told.append($0.text) }
        #expect(target.shown.isEmpty && told.isEmpty && isLoading)
        gate.open()
        await wait { isShown }
        #expect(target.texts == ["one"])
        #expect(target.transition == .crossFade(.milliseconds(100)))
        // Being told of it does not take it away from the target.
        #expect(told == ["one"])
    }

    @Test func anImageOfAKeyIsMadeOnce() async {
        let calls = Locked(0)
        func set() {
            binding.set(key: "chart", in: fixture.pipeline) {
                calls.withLock { $0 += 1 }
                return .named("one")
            }
        }
        set()
        #expect(target.texts.isEmpty && isLoading)
        await wait { isShown }
        #expect(target.texts == ["one"])
        binding.cancel()
        set()
        #expect(isShown && calls.withLock { $0 } == 1)
    }

    @Test func theTransitionCanBeChosen() async {
        binding.options.transition = .crossFade(.milliseconds(250))
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content, in: fixture.pipeline)
        gate.open()
        await wait { isShown }
        #expect(target.transition == .crossFade(.milliseconds(250)))
    }

    @Test func aMissKeepsTheOldImageUnlessThereIsAPlaceholder() async {
        binding.set(fixture.stored("old", "old"), in: fixture.pipeline)
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content, in: fixture.pipeline)
        #expect(target.texts == ["old"])
        let (other, otherContent) = fixture.slow("b", "two")
        binding.options.placeholder = .named("placeholder")
        binding.set(otherContent, in: fixture.pipeline)
        #expect(target.texts == ["old", "placeholder"])
        #expect(target.transition == ImageTransition.none)
        gate.open()
        other.open()
        await wait { isShown }
        #expect(target.texts == ["old", "placeholder", "two"])
    }

    @Test func aMissCanClearTheTarget() async {
        binding.options.keepsPreviousImage = false
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content, in: fixture.pipeline)
        #expect(target.texts == [nil])
        gate.open()
        await wait { isShown }
        #expect(target.texts == [nil, "one"])
    }

    @Test func noContentShowsThePlaceholderOrNothing() {
        binding.set(fixture.stored("a", "one"), in: fixture.pipeline)
        binding.set(nil)
        #expect(target.texts == ["one", nil])
        #expect(isEmpty)
        binding.options.placeholder = .named("placeholder")
        binding.set(nil)
        #expect(target.text == "placeholder")
    }

    // MARK: Failures

    @Test func aFailureIsToldAndLeavesWhatIsShown() async {
        binding.options.placeholder = .named("placeholder")
        let (gate, failing) = fixture.slow("a", nil)
        var failures = 0, successes = 0
        binding.set(failing, in: fixture.pipeline) { _ in
            successes += 1
        } onFailure: { error in
            if case ImagePipelineError.underlying(_, let underlying) = error, underlying is SourceFailure { failures += 1 }
        }
        gate.open()
        await wait { hasFailed }
        #expect((failures, successes) == (1, 0))
        #expect(target.texts == ["placeholder"])
        // Setting it again tries again.
        let (again, content) = fixture.slow("a", "one")
        binding.set(content, in: fixture.pipeline)
        #expect(isLoading)
        again.open()
        await wait { isShown }
        #expect(target.text == "one")
    }

    @Test func aFailureImageSaysThatThereIsNone() async {
        binding.options.failureImage = .named("broken")
        let (gate, content) = fixture.slow("nowhere", nil)
        gate.open()
        binding.set(content, in: fixture.pipeline)
        await wait { hasFailed }
        #expect(target.texts == ["broken"])
    }

    // MARK: The latest wins

    @Test func theLatestWinsWhateverComesLater() async {
        let (first, firstContent) = fixture.slow("a", "one"), (second, secondContent) = fixture.slow("b", "two")
        var told: [String?] = []
        binding.set(firstContent, in: fixture.pipeline) { told.append($0.text) } onFailure: { told.append("\($0)") }
        binding.set(secondContent, in: fixture.pipeline) { told.append($0.text) }
        // The first is not wanted by anybody any more.
        #expect(fixture.priority(of: firstContent) == nil)
        second.open()
        await wait { isShown }
        first.open()
        await fixture.pipeline.waitUntilIdle()
        #expect(target.texts == ["two"])
        #expect(told == ["two"])
    }

    @Test func cancellingLeavesTheTargetAndCallsNobody() async {
        binding.set(fixture.stored("old", "old"), in: fixture.pipeline)
        let (gate, content) = fixture.slow("a", "one")
        var told = 0
        binding.set(content, in: fixture.pipeline) { _ in told += 1 } onFailure: { _ in told += 1 }
        binding.cancel()
        binding.cancel()
        gate.open()
        await fixture.pipeline.waitUntilIdle()
        #expect(target.texts == ["old"])
        #expect(told == 0 && isEmpty)
    }

    @Test func theSameContentIsNotLoadedTwice() async {
        let (gate, content) = fixture.slow("a", "one")
        var told: [String?] = []
        binding.set(content, in: fixture.pipeline) { told.append("first \($0.text ?? "")") }
        binding.set(content, in: fixture.pipeline) { told.append("second \($0.text ?? "")") }
        gate.open()
        await wait { isShown }
        #expect(fixture.pipeline.statistics.calls == 1)
        #expect(target.texts == ["one"])
        #expect(told == ["second one"])
        // Memory has let go of it, the target has not.
        fixture.pipeline.cache.clearMemory()
        binding.set(content, in: fixture.pipeline) { told.append("third \($0.text ?? "")") }
        #expect(target.texts == ["one"])
        #expect(told == ["second one", "third one"] && isShown)
    }

    @Test func whatAClosureSetsTakesOver() {
        let second = fixture.stored("b", "two")
        binding.set(fixture.stored("a", "one"), in: fixture.pipeline) { [binding, fixture] _ in
            binding.set(second, in: fixture.pipeline)
        }
        #expect(target.texts == ["one", "two"])
        #expect(isShown)
    }

    // MARK: Reuse and visibility

    @Test func aReusedTargetIsEmptyAndWantsNothing() async {
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content, in: fixture.pipeline)
        #expect(fixture.priority(of: content) != nil)
        binding.prepareForReuse()
        #expect(target.texts == [nil])
        #expect(fixture.priority(of: content) == nil)
        gate.open()
        await fixture.pipeline.waitUntilIdle()
        #expect(target.texts == [nil])
    }

    @Test func whatCannotBeSeenGivesWay() async {
        let (gate, content) = fixture.slow("a", "one")
        binding.options.priority = .high
        binding.set(content, in: fixture.pipeline)
        #expect(fixture.priority(of: content) == .high)
        binding.isVisible = false
        #expect(fixture.priority(of: content) == .low)
        binding.isVisible = true
        #expect(fixture.priority(of: content) == .high)
        gate.open()
        await wait { isShown }
    }

    @Test func theTargetIsHeldWeakly() async {
        var target: HeadlessTarget? = HeadlessTarget()
        weak let gone = target
        guard let binding = target.map({ ImageBinding($0) }) else { return }
        let (gate, content) = fixture.slow("a", "one")
        var told = 0
        binding.set(content, in: fixture.pipeline) { _ in told += 1 }
        #expect(fixture.priority(of: content) != nil)
        target = nil
        #expect(gone == nil && binding.target == nil)
        gate.open()
        await wait { if case .empty = binding.state { true } else { false } }
        #expect(told == 0)
    }

    @Test func aBindingThatGoesTakesItsLoadAlong() async {
        let (gate, content) = fixture.slow("a", "one")
        var binding: ImageBinding? = ImageBinding(target)
        binding?.set(content, in: fixture.pipeline)
        #expect(fixture.priority(of: content) != nil)
        binding = nil
        #expect(fixture.priority(of: content) == nil)
        gate.open()
        await fixture.pipeline.waitUntilIdle()
        #expect(target.shown.isEmpty)
    }
}
