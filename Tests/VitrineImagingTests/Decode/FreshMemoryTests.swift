#if os(Linux)
import TestSupport
import Testing

/// Pictures do not depend on what their memory held before: a byte that nobody has written would show another picture.
@Suite struct FreshMemoryTests {
    /// Every decoder with the repository's files and made ones, whole decodes with workers, processors and encoders, in
    /// two processes whose C library fills fresh memory with bytes that differ in every bit.
    @Test func picturesAreTheSameWhateverFreshMemoryHeld() throws {
        let runs = try [85, 170].map { fill in
            try ChildProcess(
                executable: "VitrineFuzz", ["digests"],
                wrapper: ["env", "MALLOC_PERTURB_=\(fill)", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"])
        }
        let lines = runs.map { run in
            var lines: [String] = []
            while let line = run.line() { lines.append(line) }
            return lines
        }
        #expect(runs.map { $0.wait() } == [.exit(0), .exit(0)])
        #expect(lines[0].count > 400)
        #expect(lines[0].count == lines[1].count)
        for (one, other) in zip(lines[0], lines[1]) where one != other {
            Issue.record("\(one) with one content of fresh memory, \(other) with another")
        }
    }
}
#endif
