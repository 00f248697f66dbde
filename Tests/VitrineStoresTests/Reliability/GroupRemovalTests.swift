import TestSupport
import Testing

/// Removing a group of a value store costs what its pages cost, not what its values would one by one.
struct GroupRemovalTests {
    @Test func groupOfManyValuesIsRemovedByReadingEachPageOnce() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let keys = 60_000
            let child = try ChildProcess(
                executable: "StoreChild", ["remove-values", directory.file("values"), String(keys)])
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            #expect(findings["error"] == nil, "\(findings)")
            #expect(findings.number("before") == keys)
            #expect(findings.number("after") == 0)
            #expect(findings.number("others") == 3000)
            // 60,000 values of about 130 bytes, and their names in the index, are 3,000 pages. Each is read once,
            // written to the log and moved into the file: two calls and one.
            #expect(findings.number("reads") < 6_000, "\(findings)")
            #expect(findings.number("writes") < 20_000, "\(findings)")
        }
    }
}
