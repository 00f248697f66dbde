import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Documents that want all the memory there is, on more workers than there are cores.
@Suite struct PDFMemoryTests {
    /// A page with a picture of 64 million pixels, of which the file has one byte: 256 MB in memory.
    private static let document: TinyPDF = {
        var document = TinyPDF()
        document.objects = [
            TinyPDF.stream(
                "00>",
                "/Type/XObject/Subtype/Image/Width 8000/Height 8000/BitsPerComponent 8/ColorSpace/DeviceRGB"
                    + "/Filter/ASCIIHexDecode")
        ]
        document.resources = "/XObject<</X 1 0 R>>"
        document.pages = [TinyPDF.Page(content: "q 200 0 0 100 0 0 cm /X Do Q")]
        return document
    }()

    @Test func allHelpersTogetherStayBelowTheTotal() async throws {
        let memory = HelperMemory(total: 1 << 30)
        let pool = WorkerPool(
            program: PDFWorkers.program, location: .executable(PDFFixture.executable), maximumWorkers: 8, memory: memory)
        let input = PDFDocument(PDFDocument(.bytes(Self.document.bytes, name: "hungry")), workers: pool)
        var limits = ImageLimits()
        // Two at once, with what they share.
        (limits.maximumWorkerMemory, limits.maximumPixels) = (320 << 20, 10_000_000)
        let bounds = limits
        let share = memory.share(for: bounds)
        #expect(memory.total / share.total == 2)
        let peak = Locked(0)
        let isDone = Locked(false)
        try await offPool {
            let watcher = DispatchGroup()
            DispatchQueue.global().async(group: watcher) {
                while !isDone.withLock({ $0 }) {
                    let held = Self.residentBytesOfHelpers()
                    peak.withLock { $0 = max($0, held) }
                    usleep(1_000)
                }
            }
            DispatchQueue.concurrentPerform(iterations: 12) { _ in
                var request = RenderRequest(size: PixelSize(400))
                request.limits = bounds
                // A page without its picture, or an error: both are answers.
                _ = try? input.page(1).blocking.image(request)
            }
            isDone.withLock { $0 = true }
            watcher.wait()
        }
        #expect(peak.withLock { $0 } <= memory.total)
        // An ordinary document is drawn afterwards.
        let page = TinyPDF.Page(content: TinyPDF.quadrants(x: 0, y: 0, width: 200, height: 100))
        var request = RenderRequest(size: PixelSize(100))
        request.limits = bounds
        let drawing = request
        let image = try await offPool {
            try PDFFixture.input(TinyPDF(pages: [page]), workers: pool).page(1).blocking.image(drawing)
        }
        #expect(image.width == 100)
        pool.endIdleWorkers()
        #expect(memory.reserved == 0)
    }

    /// What all `vitrine-pdf` of this process hold in memory that is theirs alone (proc(5)).
    private static func residentBytesOfHelpers() -> Int {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        let children = Set(
            threads.flatMap { thread in
                let text = try? String(contentsOfFile: "/proc/self/task/\(thread)/children", encoding: .utf8)
                return (text ?? "").split(separator: " ").compactMap { Int32($0) }
            })
        return children.reduce(0) { sum, number in
            guard (try? String(contentsOfFile: "/proc/\(number)/comm", encoding: .utf8))?.hasPrefix("vitrine-pdf") == true,
                let text = try? String(contentsOfFile: "/proc/\(number)/statm", encoding: .utf8)
            else { return sum }
            let pages = text.split(separator: " ").compactMap { Int($0) }
            return pages.count > 2 ? sum + (pages[1] - pages[2]) * Int(sysconf(Int32(_SC_PAGESIZE))) : sum
        }
    }
}
