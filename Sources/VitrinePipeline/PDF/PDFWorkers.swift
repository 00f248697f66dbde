import VitrineImaging

/// The helper that reads PDF documents.
package enum PDFWorkers {
    package static let program = "vitrine-pdf"

    /// Processes for everybody, one for each processor at most.
    package static let shared = WorkerPool(program: program, recycling: recycling)

    /// A fresh helper has to open its documents again: it is replaced more rarely than one that decodes pictures.
    package static var recycling: WorkerRecycling {
        var recycling = WorkerRecycling()
        recycling.maximumServed = 10_000
        return recycling
    }

    /// The error of a system without it.
    static func missing(for source: String) -> ImagePipelineError { .helperMissing(program, source: source) }
}
