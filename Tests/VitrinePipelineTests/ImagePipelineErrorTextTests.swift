import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

struct ImagePipelineErrorTextTests {
    private let source = "photo.pdf"

    private struct Refusal: LocalizedError {
        var errorDescription: String? { "The token\nhas expired." }
    }

    @Test func pipelineErrorsDescribeThemselvesAlikeInOneLine() {
        let underlying: [any Error] = [
            Refusal(), CancellationError(), FileError.notFound(path: source), FileError.noSpace(path: source),
            NetworkError.timedOut(url: source, .idle), NetworkError.file(.notFound(path: source)),
            ImageError.workerFailed(input: source, reason: "it died"),
            ImagePipelineError.damaged(source: source, reason: "it has no pages"),
        ]
        var errors: [ImagePipelineError] = [
            .unreadable(source: source, reason: "no such file"), .unsupported(source: source, reason: "an odd codec"),
            .damaged(source: source, reason: "the file ends early"), .encrypted(source: source),
            .wrongPassword(source: source), .noSuchPage(source: source, page: 3, count: 2), .noVideo(source: source),
            .beyondEnd(source: source, second: 3, duration: 2), .timedOut(source: source), .cancelled(source: source),
            .tooManyAbandonedThreads(source: source, count: 8),
            .toolMissing(
                source: source, name: "vitrine-pdf", remedy: HelperProgram.advice(for: "vitrine-pdf")),
        ]
        for kind in ImageLimits.Kind.allCases {
            errors.append(.limitExceeded(source: source, limit: kind, actual: 20, allowed: 10))
        }
        errors += underlying.map { .underlying(source: source, error: $0) }
        for error in errors {
            #expect(ErrorTextRule.violations(of: error, input: source, isSentence: false).isEmpty)
            #expect(error.description.hasPrefix("\(source): "))
        }
    }

    @Test func pipelineErrorsSayWhatADeveloperDoes() {
        #expect(ImagePipelineError.encrypted(source: source).description.contains("pass it as password:"))
        #expect(ImagePipelineError.wrongPassword(source: source).description.contains("the owner's password"))
        let limit = ImagePipelineError.limitExceeded(source: source, limit: .frames, actual: 20, allowed: 10)
        #expect(limit.description.hasSuffix("; raise maximumFrames of ImageLimits"))
        // The command adds an option of its own to the reason.
        #expect(!limit.reason.contains("maximumFrames"))
        let missing = ImagePipelineError.helperMissing("vitrine-pdf", source: source)
        #expect(missing.description.contains(".product(name: \"vitrine-pdf\", package: \"vitrine\")"))
        #expect(missing.description.contains("the Debian package vitrine-pdf"))
    }
}
