import TestSupport
import Testing
import VitrineImaging

struct ImageErrorTextTests {
    private let input = "lake.jpg"

    @Test func imageErrorsDescribeThemselvesInOneLine() {
        var errors: [ImageError] = [
            .unreadable(input: input, reason: "Permission denied"), .empty(input: input), .notAnImage(input: input),
            .unsupported(input: input, reason: "convert it to another format"),
            .corrupt(input: input, reason: "a marker is missing"), .truncated(input: input),
            .invalidRequest(reason: "the size is zero"), .timedOut(input: input), .cancelled(input: input),
            .workerFailed(input: input, reason: "vitrine-worker was not found"),
            .decoderFailed(input: input, format: .png, reason: "no row"),
            .encodingFailed(format: .png, reason: "it has no pixels"),
        ]
        for kind in ImageLimits.Kind.allCases {
            errors.append(.limitExceeded(input: input, limit: kind, actual: 20, allowed: 10))
        }
        errors.append(.limitExceeded(input: input, limit: .memory, actual: 20, allowed: 0))
        for error in errors {
            #expect(ErrorTextRule.violations(of: error, input: input, isSentence: false).isEmpty)
            #expect(!error.textWithoutInput.contains(input))
        }
    }

    @Test func exceededLimitsNameTheOptionInTheDescriptionOnly() {
        let options: [(ImageLimits.Kind, String)] = [
            (.inputBytes, "maximumInputBytes"), (.pixels, "maximumPixels"), (.side, "maximumSide"),
            (.frames, "maximumFrames"), (.outputSide, "maximumOutputSide"), (.memory, "maximumWorkerMemory"),
        ]
        for (kind, option) in options {
            let error = ImageError.limitExceeded(input: input, limit: kind, actual: 20, allowed: 10)
            #expect(error.description.contains(option) && error.description.contains("ImageLimits"))
            // The command adds an option of its own to the reason.
            #expect(!error.reason.contains(option))
        }
    }
}
