import Foundation
import VitrineImaging
import VitrinePipeline

/// The helper built beside the tests, and documents read by workers of their own.
enum PDFFixture {
    /// In the folder of `$VITRINE_WORKER`, which names helpers without instrumentation when the tests have some, else
    /// beside the tests.
    static let executable =
        (ProcessInfo.processInfo.environment["VITRINE_WORKER"].map { URL(filePath: $0) }
        ?? URL(filePath: "/proc/self/exe").resolvingSymlinksInPath())
        .deletingLastPathComponent().appending(path: "vitrine-pdf").path

    static func workers(_ count: Int = 1) -> WorkerPool {
        WorkerPool(
            program: PDFWorkers.program, location: .executable(executable), maximumWorkers: count,
            recycling: PDFWorkers.recycling, memory: HelperMemory(total: 64 << 30))
    }

    static func input(_ document: TinyPDF, workers: WorkerPool = workers()) -> PDFDocument {
        PDFDocument(PDFDocument(.bytes(document.bytes, name: "tiny")), workers: workers)
    }

    static func input(_ page: TinyPDF.Page) -> PDFDocument { input(TinyPDF(pages: [page])) }
}

extension ImagePipelineError {
    /// The name of the case, without what it carries.
    var caseName: String { Mirror(reflecting: self).children.first?.label ?? "\(self)" }
}

/// The name of the case of the error that `body` throws; "nothing" when it throws none.
func thrown(_ body: () throws -> Void) -> String {
    do {
        try body()
        return "nothing"
    } catch let error as ImagePipelineError {
        return error.caseName
    } catch {
        return "\(error)"
    }
}

extension PixelImage {
    /// The colours near the four corners: above left, above right, below left, below right.
    var corners: [PixelColor] {
        let (x, y) = (width / 20 + 1, height / 20 + 1)
        return [
            self[x, y], self[width - 1 - x, y], self[x, height - 1 - y], self[width - 1 - x, height - 1 - y],
        ]
    }

    /// The colours of the pixels along the four edges.
    var edgeColors: Set<PixelColor> {
        var colors: Set<PixelColor> = []
        for x in 0..<width { colors.formUnion([self[x, 0], self[x, height - 1]]) }
        for y in 0..<height { colors.formUnion([self[0, y], self[width - 1, y]]) }
        return colors
    }
}
