import VitrineCore
import VitrineImaging

extension ImagePipelineError {
    /// A helper program is not there.
    static func helperMissing(_ program: String, source: String) -> ImagePipelineError {
        .toolMissing(source: source, name: program, remedy: HelperProgram.advice(for: program))
    }

    /// The answer of a helper about a document cannot be read.
    static func malformedDescription(source: String) -> ImagePipelineError {
        .underlying(
            source: source, error: ImageError.workerFailed(input: source, reason: "its description is malformed"))
    }
}
