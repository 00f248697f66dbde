import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// Several requests for one subject, best first.
@MainActor
struct ImageAlternativesTests {
    private let fixture: ViewFixture
    private let target = HeadlessTarget()
    private let binding: ImageBinding<HeadlessTarget>

    init() throws {
        fixture = try ViewFixture()
        binding = ImageBinding(target)
    }

    private var isOver: Bool {
        switch binding.state {
        case .shown, .failed: true
        case .empty, .loading: false
        }
    }

    @Test func theBestCachedImageIsShownUntilTheBestIsLoaded() async {
        let (best, bestRequest) = fixture.slow("best", "best")
        let (middle, middleRequest) = fixture.slow("middle", "middle")
        let worst = fixture.stored("worst", "worst")
        var told: [String?] = []
        binding.set(alternatives: [bestRequest, middleRequest, worst], in: fixture.pipeline) { told.append($0.text) }
        #expect(target.texts == ["worst"] && told.isEmpty)
        #expect(target.transition == ImageTransition.none && !isOver)
        best.open()
        await wait { isOver }
        #expect(target.texts == ["worst", "best"] && told == ["best"])
        #expect(target.transition == .standard)
        // Only the best one is loaded.
        #expect(fixture.pipeline.statistics.calls == 1)
        middle.open()
        // The best one in memory is shown at once.
        let other = HeadlessTarget()
        ImageBinding(other).set(alternatives: [bestRequest, worst], in: fixture.pipeline)
        #expect(other.texts == ["best"])
    }

    @Test func alternativesOnDiskAreFound() async throws {
        var configuration = ImagePipeline.Configuration(root: fixture.directory.path)
        configuration.usesMemoryCache = false
        let pipeline = ImagePipeline(configuration)
        let (worse, worseRequest) = fixture.slow("middle", "middle")
        worse.open()
        _ = try await pipeline.image(for: worseRequest)
        let (best, bestRequest) = fixture.slow("best", "best")
        binding.set(alternatives: [bestRequest, worseRequest], in: pipeline)
        #expect(target.shown.isEmpty)
        await wait { target.text == "middle" }
        #expect(!isOver)
        best.open()
        await wait { isOver }
        #expect(target.texts == ["middle", "best"])
    }

    @Test func aListedImageStays() async {
        let middle = fixture.stored("middle", "middle")
        binding.options.keepsPreviousImage = false
        binding.set(middle, in: fixture.pipeline)
        #expect(target.texts == ["middle"])
        let (best, bestRequest) = fixture.slow("best", "best")
        binding.set(alternatives: [bestRequest, middle], in: fixture.pipeline)
        // The same image, and no gap.
        #expect(target.texts.allSatisfy { $0 == "middle" })
        let (_, worst) = fixture.slow("worst", nil)
        binding.set(alternatives: [bestRequest, worst], in: fixture.pipeline)
        #expect(target.value == nil)
        best.open()
        await wait { isOver }
        #expect(target.text == "best")
    }

    @Test func aFailureOfTheBestLeavesTheAlternative() async {
        let (failing, request) = fixture.slow("best", nil)
        var failure: (any Error)?
        binding.set(
            alternatives: [request, fixture.stored("middle", "middle")], in: fixture.pipeline,
            onFailure: { failure = $0 })
        failing.open()
        await wait { isOver }
        #expect(target.text == "middle")
        guard case ImagePipelineError.underlying(_, let cause)? = failure, cause is SourceFailure else {
            Issue.record("another failure: \(String(describing: failure))")
            return
        }
    }

    @Test func cancellingEndsAllLoads() async {
        let (best, bestRequest) = fixture.slow("best", "best"), (worse, worseRequest) = fixture.slow("worst", "worst")
        binding.set(alternatives: [bestRequest, worseRequest], in: fixture.pipeline)
        binding.cancel()
        for source in [best, worse] { source.open() }
        await fixture.pipeline.waitUntilIdle()
        #expect(target.shown.isEmpty)
    }
}
