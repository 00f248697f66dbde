import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

@Test func downloadErrorsDescribeThemselvesAlikeInOneLine() throws {
    let url = "https://example.org/a", path = "/data/a"
    let checksum = try #require(Checksum("sha256:" + String(repeating: "0", count: 64)))
    let errors: [DownloadError] = [
        .invalidURL(url, reason: "it has no host"), .invalidDestination(path, reason: "it is a directory."),
        .network(.timedOut(url: url, .idle)), .network(.file(.noSpace(path: path))), .file(.noSpace(path: path)),
        .insufficientSpace(path: path, needed: 2_000_000, available: 1_000_000),
        .checksum(path: path, expected: checksum, actual: checksum), .size(path: path, expected: 3, actual: 2),
        .journal(path: path, message: "a page is missing.", isDamaged: true),
        .journal(path: path, message: "\(path): the disk is full.", isDamaged: false),
        .inUse(path: path), .reported(code: -601, message: "It failed."), .agent(reason: "it was stopped."),
        .agentTimedOut(process: 12, after: .seconds(5)), .agentTimedOut(process: nil, after: .seconds(5)),
        .endsProcess(url: url, count: 3), .damagedRecord(id: "7"), .unknown(id: "7"), .cancelled,
    ]
    for error in errors {
        #expect(ErrorTextRule.violations(of: error, input: path).isEmpty)
        #expect(ErrorTextRule.violations(of: error, input: url).isEmpty)
    }
}

@Test func downloadErrorsShortenLongURLs() {
    let url = "https://example.org/" + String(repeating: "a", count: 10_000)
    for error in [DownloadError.invalidURL(url, reason: "it is too long"), .endsProcess(url: url, count: 3)] {
        #expect(error.description.contains("https://example.org/a") && error.description.count < 400)
    }
}

@Test func downloadErrorsAreNestedWithoutTheirURL() {
    let url = "https://example.org/a"
    let errors: [DownloadError] = [.invalidURL(url, reason: "it has no host"), .network(.timedOut(url: url, .idle))]
    for error in errors { #expect(!ErrorText.nested(error, about: url).contains(url)) }
}
