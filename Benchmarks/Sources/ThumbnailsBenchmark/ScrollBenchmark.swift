import Foundation
import Synchronization
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// A fling over a long list of cells: what comes into view is asked for, what leaves it is cancelled. The cells at
/// which it ends are compared with the same cells alone.
struct ScrollBenchmark {
    static let side = 256
    static let visible = 24
    static let rounds = 7
    /// Cells that pass in each frame, and its length.
    static let speed = 8
    static let frame = Duration.milliseconds(8)
    let photos: Photos

    init(_ photos: Photos) { self.photos = photos }

    /// Counts what is made although nobody wants it any more.
    struct Watched: ImageSource {
        let inner: BuiltInSource
        let late: Count
        let calls: Count

        func identity() async throws(ImagePipelineError) -> CacheKey { try await inner.identity() }
        func image(_ request: RenderRequest) async throws -> PixelImage {
            calls.add()
            let image = try await inner.image(request)
            if request.cancellation.isCancelled { late.add() }
            return image
        }
    }

    final class Count: Sendable {
        private let state = Mutex(0)
        var value: Int { state.withLock { $0 } }
        func add() { state.withLock { $0 += 1 } }
    }

    /// A cell that waits for its thumbnail.
    final class Cell: Sendable {
        let task: ImageTask
        private let start = ContinuousClock.now
        private let end = Mutex<ContinuousClock.Instant?>(nil)

        init(_ source: any ImageSource) {
            var wanted = ImageRequest(source, resizing: .fit(ScrollBenchmark.side), priority: .high)
            wanted.executionPriority = .normal
            task = ImageTask(wanted)
            task.onImage(on: .immediate) { _ in self.end.withLock { $0 = .now } }
        }

        var latency: Double { end.withLock { $0 }.map { seconds($0 - start) * 1_000 } ?? .infinity }
    }

    func run() async throws {
        var flung: [Double] = [], alone: [Double] = []
        let (late, calls) = (Count(), Count())
        for _ in 0..<Self.rounds {
            flung.append(try await fling(late, calls))
            alone.append(try await still())
        }
        print("| \(photos.paths.count) cells, \(Self.visible) visible | median latency ms |")
        print("|---|---:|")
        print("| at the end of a fling | \(text(median(flung))) |")
        print("| alone | \(text(median(alone))) |")
        print("\nratio: \(text(median(flung) / median(alone)))")
        print("made after their cancellation: \(late.value) of \(calls.value) calls in \(Self.rounds) flings")
    }

    private func service() -> ImagePipeline {
        ImagePipeline(ImagePipeline.Configuration(root: photos.fresh(), concurrency: 2))
    }

    private func fling(_ late: Count, _ calls: Count) async throws -> Double {
        let service = service()
        let sources = photos.sources
        var cells: [Int: Cell] = [:]
        var first = 0
        while true {
            let range = first..<min(first + Self.visible, sources.count)
            for (index, cell) in cells where !range.contains(index) {
                cell.task.cancel()
                cells[index] = nil
            }
            for index in range where cells[index] == nil {
                let cell = Cell(Watched(inner: sources[index], late: late, calls: calls))
                cells[index] = cell
                service.start(cell.task)
            }
            guard range.upperBound < sources.count else { break }
            first += Self.speed
            try await Task.sleep(for: Self.frame)
        }
        for cell in cells.values { _ = try await cell.task.value }
        return median(cells.values.map(\.latency))
    }

    private func still() async throws -> Double {
        let service = service()
        let cells = photos.sources.suffix(Self.visible).map { source in
            let cell = Cell(source)
            service.start(cell.task)
            return cell
        }
        for cell in cells { _ = try await cell.task.value }
        return median(cells.map(\.latency))
    }
}
