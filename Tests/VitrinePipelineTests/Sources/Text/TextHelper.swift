import Foundation
import VitrineHelperProtocol
import VitrineImaging
import VitrinePipeline

/// The helper for texts and fonts beside the tests.
enum TextHelper {
    static let workers = WorkerPool(
        program: TextWorkers.program,
        location: .executable(
            URL(filePath: PDFFixture.executable).deletingLastPathComponent().appending(path: "vitrine-text").path),
        maximumWorkers: 1, memory: HelperMemory(total: 64 << 30))
}
