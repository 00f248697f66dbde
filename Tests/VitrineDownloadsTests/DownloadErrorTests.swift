import Foundation
import Testing
import VitrineCore
import VitrineDownloads

@Test func downloadErrorsDescribeThemselvesAlikeInOneLine() {
    let errors: [DownloadError] = [
        .invalidURL("ftp://example.org/a", reason: "the scheme is not http or https"),
        .invalidDestination("a/../b", reason: "the name has a slash"),
        .insufficientSpace(path: "/data/a", needed: 2_000_000, available: 1_000_000),
        .size(path: "/data/a", expected: 3, actual: 2),
        .journal(path: "/data/list", message: "a page is missing", isDamaged: true),
        .inUse(path: "/data/list"), .agent(reason: "it was stopped"),
        .agentTimedOut(process: 12, after: .seconds(5)), .endsProcess(url: "https://example.org/a", count: 3),
        .damagedRecord(id: "7"), .unknown(id: "7"), .cancelled,
    ]
    for error in errors {
        #expect(error.localizedDescription == error.description)
        #expect("\(error)" == error.description)
        #expect(!error.description.contains("\n"))
        #expect(error.description.hasSuffix("."))
    }
}
