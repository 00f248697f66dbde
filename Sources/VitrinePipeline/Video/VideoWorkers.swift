import VitrineImaging

/// The helper that reads videos.
package enum VideoWorkers {
    package static let program = "vitrine-video"

    /// Processes for everybody, one for each processor at most.
    package static let shared = WorkerPool(program: program)

    /// The error of a system without it.
    static func missing(for source: String) -> ImagePipelineError { .helperMissing(program, source: source) }
}
