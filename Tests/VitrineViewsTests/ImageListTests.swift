import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork
import VitrineViews

/// Several URLs of one thing, best first (R144).
@MainActor
struct ImageListTests {
    private let fixture: ViewFixture<String>
    private let target = HeadlessTarget<String>()
    private let binding: ImageBinding<HeadlessTarget<String>>
    private let gates: [String: Gate] = ["best": Gate(), "middle": Gate(), "worst": Gate()]
    private let resources: ObservedCache<String>
    private let urls: [URL]

    init() throws {
        fixture = try ViewFixture()
        binding = ImageBinding(target)
        urls = try ["best", "middle", "worst"].map { try #require(URL(string: "test://list/\($0)")) }
        resources = ObservedCache(fixture.cache) { [gates] url, _ in
            let name = url.lastPathComponent
            return SlowFetcher(key: CacheKey(name), gate: gates[name] ?? Gate(), text: name == "failing" ? nil : name)
        }
    }

    private var isOver: Bool {
        switch binding.state {
        case .shown, .failed: true
        case .empty, .loading: false
        }
    }

    @Test func theBestThatIsThereIsShownUntilABetterComes() async {
        fixture.cache["worst"] = "worst"
        var told: [String] = []
        binding.set(.urls(urls, in: resources, secondaryDepth: .source)) { told.append($0) }
        #expect(target.value == "worst" && told.isEmpty)
        gates["middle"]?.open()
        await wait { target.value == "middle" }
        #expect(target.transition == .standard && !isOver)
        gates["best"]?.open()
        await wait { isOver }
        #expect(target.value == "best" && told == ["best"])
        // What has the best in memory is done at once.
        let other = HeadlessTarget<String>()
        ImageBinding(other).set(.urls(urls, in: resources))
        #expect(other.texts == ["best"])
    }

    @Test func whatIsStillListedStays() async {
        fixture.cache["middle"] = "middle"
        binding.options.missBehavior = .clear
        binding.set(.urls([urls[1]], in: resources))
        #expect(target.texts == ["middle"])
        binding.set(.urls(urls, in: resources))
        // The same, not nothing.
        #expect(target.texts.allSatisfy { $0 == "middle" })
        binding.set(.urls([urls[0], urls[2]], in: resources))
        #expect(target.value == .some(nil))
        gates["best"]?.open()
        await wait { isOver }
        #expect(target.value == "best")
    }

    @Test func withoutTheBestThereIsAFailureAndTheNextBest() async throws {
        fixture.cache["middle"] = "middle"
        let failing = try #require(URL(string: "test://list/failing"))
        let gate = Gate()
        let resources = ObservedCache(fixture.cache) { url, _ in
            SlowFetcher(
                key: CacheKey(url.lastPathComponent), gate: gate, text: url == failing ? nil : url.lastPathComponent)
        }
        var failure: (any Error)?
        binding.set(.urls([failing, urls[1]], in: resources), onFailure: { failure = $0 })
        gate.open()
        await wait { isOver }
        #expect(target.value == "middle")
        guard case CacheError.source? = failure else {
            Issue.record("another failure: \(String(describing: failure))")
            return
        }
    }

    @Test func cancellingEndsTheList() async {
        binding.set(.urls(urls, in: resources, secondaryDepth: .source))
        binding.cancel()
        for gate in gates.values { gate.open() }
        await wait { resources.runningLoads == 0 }
        #expect(target.shown.isEmpty)
    }
}
