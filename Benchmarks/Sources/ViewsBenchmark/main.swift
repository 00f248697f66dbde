// Prints what showing an image costs that is in memory, against the lookup alone: processor time of the calling thread
// and blocks allocated, each for one call, the median over rounds that alternate.
import CAllocations
import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineViews

/// A target that does nothing with its images but hold the last one.
@MainActor
final class HeadlessTarget: ImageTarget {
    private(set) var value: PixelImage?
    var targetGeometry: TargetGeometry?

    func show(_ image: PixelImage?, transition: ImageTransition) { value = image }
}

/// Processor time of the calling thread, in nanoseconds.
func threadTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
}

/// One way to get at images, and what it cost in each round.
@MainActor
final class Contender {
    let name: String
    private let call: @MainActor (Int) -> Void
    private var times: [Double] = []
    private var blocks: [Double] = []

    init(_ name: String, call: @escaping @MainActor (Int) -> Void) {
        self.name = name
        self.call = call
    }

    func run(_ count: Int) {
        let blocksBefore = benchmark_allocations(), start = threadTime()
        for index in 0..<count { call(index & 1023) }
        times.append(Double(threadTime() - start) / Double(count))
        blocks.append(Double(benchmark_allocations() - blocksBefore) / Double(count))
    }

    var time: Double { times.sorted()[times.count / 2] }
    var allocations: Double { blocks.sorted()[blocks.count / 2] }
}

let directory = NSTemporaryDirectory() + "vitrine-views-benchmark-\(getpid())"
let pipeline = ImagePipeline(ImagePipeline.Configuration(root: directory))
let urls = try (0..<1024).map { number in
    guard let url = URL(string: "https://example.org/photographs/2026/lake-\(number).jpg") else {
        throw CacheError.notFound(key: CacheKey("\(number)"))
    }
    return url
}
let plain = HeadlessTarget(), sized = HeadlessTarget()
sized.targetGeometry = TargetGeometry(
    width: 128, height: 128, scale: 2, mode: .fill, allowsUpscaling: false)
let plainBinding = ImageBinding(plain), sizedBinding = ImageBinding(sized)
let image = PixelImage(size: PixelSize(8))
let sources = urls.map { BuiltInSource.image(image, identity: CacheKey($0.absoluteString)) }
let made = sources.map { ImageRequest($0) }
let size = sized.targetGeometry?.resizer ?? .none
for source in sources {
    _ = try await pipeline.image(for: ImageRequest(source))
    _ = try await pipeline.image(for: ImageRequest(source, resizing: size))
}

let contenders = [
    Contender("`pipeline.cachedImage(for: request)`") {
        if pipeline.cachedImage(for: made[$0]) == nil { fatalError("not in memory") }
    },
    Contender("`binding.set(request)`, the request made before") { plainBinding.set(made[$0], in: pipeline) },
    Contender("`binding.set(ImageRequest(source))`") { plainBinding.set(ImageRequest(sources[$0]), in: pipeline) },
    Contender("`binding.set(ImageRequest(source))`, for a target with a size") {
        sizedBinding.set(ImageRequest(sources[$0]), in: pipeline)
    },
]
let rounds = 31, count = 20_480
for round in 0..<rounds + 1 {
    for contender in contenders { contender.run(round == 0 ? 1024 : count) }
}
guard case .shown = plainBinding.state, case .shown = sizedBinding.state, sized.value != nil else {
    fatalError("the images were not in memory")
}
print("| 1,024 images in memory by turns | CPU ns a call | blocks allocated | target |")
print("|---|---:|---:|---:|")
for (index, contender) in contenders.enumerated() {
    let blocks = (contender.allocations * 10).rounded() / 10
    print("| \(contender.name) | \(Int(contender.time.rounded())) | \(blocks) | \(index == 0 ? "" : "< 5,000") |")
}
try? FileManager.default.removeItem(atPath: directory)
