import TestSupport
import Testing

/// A cache has one database, whatever the number of its formats.
struct ManyFormatsTests {
    @Test func threeHundredFormatsOpenNoDescriptorsAndStartNoThreadsOfTheirOwn() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let child = try ChildProcess(["formats", directory.path, "300"])
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            #expect(findings["error"] == nil, "\(findings)")
            #expect(findings.number("found") == 320, "\(findings)")
            #expect(findings.number("formats") == 321, "\(findings)")
            // A connection that moves the log is opened when there is enough to move, and threads of the pools when
            // several calls meet: a handful, and none for a format.
            #expect(findings.number("descriptors-after") <= findings.number("descriptors-before") + 12, "\(findings)")
            #expect(findings.number("threads-after") <= findings.number("threads-before") + 8, "\(findings)")
        }
    }
}
