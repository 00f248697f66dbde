import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineViews

/// What a target shows at which time (R139–R142, R146).
@MainActor
struct ImageBindingTests {
    private let fixture: ViewFixture<String>
    private let target = HeadlessTarget<String>()
    private let binding: ImageBinding<HeadlessTarget<String>>

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
        fixture.cache["a"] = "one"
        binding.options.placeholder = "placeholder"
        var told: [String] = []
        binding.set(.key("a", in: fixture.cache, format: .original)) { told.append($0) }
        #expect(target.texts == ["one"])
        #expect(target.transition == ImageTransition.none)
        #expect(told == ["one"])
        #expect(isShown)
    }

    @Test func whatComesLaterFadesInForATenthOfASecond() async {
        let (gate, content) = fixture.slow("a", "one")
        var told: [String] = []
        binding.set(content) { told.append($0) }
        #expect(target.shown.isEmpty && told.isEmpty && isLoading)
        gate.open()
        await wait { isShown }
        #expect(target.texts == ["one"])
        #expect(target.transition == .crossFade(.milliseconds(100)))
        // Being told of it does not take it away from the target.
        #expect(told == ["one"])
    }

    @Test func theTransitionCanBeChosen() async {
        binding.options.transition = .slow
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content)
        gate.open()
        await wait { isShown }
        #expect(target.transition == .crossFade(.milliseconds(250)))
    }

    @Test func aMissKeepsTheOldImageUnlessThereIsAPlaceholder() async {
        fixture.cache["old"] = "old"
        binding.set(.key("old", in: fixture.cache, format: .original))
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content)
        #expect(target.texts == ["old"])
        let (other, otherContent) = fixture.slow("b", "two")
        binding.options.placeholder = "placeholder"
        binding.set(otherContent)
        #expect(target.texts == ["old", "placeholder"])
        #expect(target.transition == ImageTransition.none)
        gate.open()
        other.open()
        await wait { isShown }
        #expect(target.texts == ["old", "placeholder", "two"])
    }

    @Test func aMissCanClearTheTarget() async {
        binding.options.missBehavior = .clear
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content)
        #expect(target.texts == [nil])
        gate.open()
        await wait { isShown }
        #expect(target.texts == [nil, "one"])
    }

    @Test func noContentShowsThePlaceholderOrNothing() {
        fixture.cache["a"] = "one"
        binding.set(.key("a", in: fixture.cache, format: .original))
        binding.set(nil)
        #expect(target.texts == ["one", nil])
        #expect(isEmpty)
        binding.options.placeholder = "placeholder"
        binding.set(nil)
        #expect(target.value == "placeholder")
    }

    // MARK: Failures

    @Test func aFailureIsToldAndLeavesWhatIsShown() async {
        binding.options.placeholder = "placeholder"
        let gate = Gate()
        var failures = 0, successes = 0
        binding.set(.fetcher(SlowFetcher(key: "a", gate: gate, text: nil), in: fixture.cache, format: .original)) { _ in
            successes += 1
        } onFailure: { error in
            if case CacheError.source(_, let underlying) = error, underlying is SourceFailure { failures += 1 }
        }
        gate.open()
        await wait { hasFailed }
        #expect((failures, successes) == (1, 0))
        #expect(target.texts == ["placeholder"])
        // Setting it again tries again.
        let (again, content) = fixture.slow("a", "one")
        binding.set(content)
        #expect(isLoading)
        again.open()
        await wait { isShown }
        #expect(target.value == "one")
    }

    @Test func aFailureImageSaysThatThereIsNone() async {
        binding.options.failureImage = "broken"
        binding.set(.key("nowhere", in: fixture.cache, format: .original))
        await wait { hasFailed }
        #expect(target.texts == ["broken"])
    }

    // MARK: The latest wins

    @Test func theLatestWinsWhateverComesLater() async {
        let (first, firstContent) = fixture.slow("a", "one"), (second, secondContent) = fixture.slow("b", "two")
        var told: [String] = []
        binding.set(firstContent) { told.append($0) } onFailure: { told.append("\($0)") }
        binding.set(secondContent) { told.append($0) }
        // The first is not wanted by anybody any more.
        await wait { fixture.cache.waiters(for: "a") == 0 }
        second.open()
        await wait { isShown }
        first.open()
        await wait { fixture.cache.runningLoads == 0 }
        #expect(target.texts == ["two"])
        #expect(told == ["two"])
    }

    @Test func cancellingLeavesTheTargetAndCallsNobody() async {
        fixture.cache["old"] = "old"
        binding.set(.key("old", in: fixture.cache, format: .original))
        let (gate, content) = fixture.slow("a", "one")
        var told = 0
        binding.set(content) { _ in told += 1 } onFailure: { _ in told += 1 }
        binding.cancel()
        binding.cancel()
        gate.open()
        await wait { fixture.cache.waiters(for: "a") == 0 && fixture.cache.runningLoads == 0 }
        #expect(target.texts == ["old"])
        #expect(told == 0 && isEmpty)
    }

    @Test func theSameContentIsNotLoadedTwice() async {
        let (gate, content) = fixture.slow("a", "one")
        var told: [String] = []
        binding.set(content) { told.append("first " + $0) }
        await wait { fixture.cache.waiters(for: "a") == 1 }
        binding.set(content) { told.append("second " + $0) }
        #expect(fixture.cache.waiters(for: "a") == 1)
        gate.open()
        await wait { isShown }
        #expect(target.texts == ["one"])
        #expect(told == ["second one"])
        // Memory has let go of it, the target has not.
        fixture.cache.clearMemory()
        binding.set(content) { told.append("third " + $0) }
        #expect(target.texts == ["one"])
        #expect(told == ["second one", "third one"] && isShown)
    }

    @Test func whatAClosureSetsTakesOver() {
        fixture.cache["a"] = "one"
        fixture.cache["b"] = "two"
        let second = ImageContent.key("b", in: fixture.cache, format: .original)
        binding.set(.key("a", in: fixture.cache, format: .original)) { [binding] _ in binding.set(second) }
        #expect(target.texts == ["one", "two"])
        #expect(isShown)
    }

    // MARK: Reuse and visibility

    @Test func aReusedTargetIsEmptyAndWantsNothing() async {
        let (gate, content) = fixture.slow("a", "one")
        binding.set(content)
        await wait { fixture.cache.waiters(for: "a") == 1 }
        binding.prepareForReuse()
        #expect(target.texts == [nil])
        await wait { fixture.cache.waiters(for: "a") == 0 }
        gate.open()
        await wait { fixture.cache.runningLoads == 0 }
        #expect(target.texts == [nil])
    }

    @Test func whatCannotBeSeenGivesWay() async {
        let (gate, content) = fixture.slow("a", "one")
        binding.options.priority = .high
        binding.set(content)
        await wait { fixture.cache.loadPriority(of: "a") == .high }
        binding.isVisible = false
        #expect(fixture.cache.loadPriority(of: "a") == .low)
        binding.isVisible = true
        #expect(fixture.cache.loadPriority(of: "a") == .high)
        gate.open()
        await wait { isShown }
    }

    @Test func theTargetIsHeldWeakly() async {
        var target: HeadlessTarget<String>? = HeadlessTarget()
        weak let gone = target
        guard let binding = target.map({ ImageBinding($0) }) else { return }
        let (gate, content) = fixture.slow("a", "one")
        var told = 0
        binding.set(content) { _ in told += 1 }
        await wait { fixture.cache.waiters(for: "a") == 1 }
        target = nil
        #expect(gone == nil && binding.target == nil)
        gate.open()
        await wait { if case .empty = binding.state { true } else { false } }
        #expect(told == 0)
    }

    @Test func aBindingThatGoesTakesItsLoadAlong() async {
        let (gate, content) = fixture.slow("a", "one")
        var binding: ImageBinding? = ImageBinding(target)
        binding?.set(content)
        await wait { fixture.cache.waiters(for: "a") == 1 }
        binding = nil
        await wait { fixture.cache.waiters(for: "a") == 0 }
        gate.open()
        await wait { fixture.cache.runningLoads == 0 }
        #expect(target.shown.isEmpty)
    }
}
