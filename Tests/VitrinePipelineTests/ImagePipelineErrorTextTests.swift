import Foundation
import Testing
import VitrinePipeline

@Test func pipelineErrorsDescribeThemselvesAlikeInOneLine() {
    let source = "photo.pdf"
    let errors: [ImagePipelineError] = [
        .unreadable(source: source, reason: "no such file"), .damaged(source: source, reason: "the file ends early"),
        .encrypted(source: source), .wrongPassword(source: source), .noSuchPage(source: source, page: 3, count: 2),
        .noVideo(source: source), .beyondEnd(source: source, second: 3, duration: 2), .timedOut(source: source),
        .toolMissing(source: source, name: "vitrine-pdf", remedy: "install it"),
    ]
    for error in errors {
        #expect(error.localizedDescription == error.description)
        #expect("\(error)" == error.description)
        #expect(!error.description.contains("\n"))
        #expect(error.description.components(separatedBy: source).count == 2)
    }
}
