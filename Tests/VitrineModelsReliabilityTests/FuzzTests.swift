import TestSupport
import Testing

/// Bytes changed by chance, behind the checksum: reading them ends, in a value or an error. `Scripts/fuzz` does the
/// same a million times with the address sanitizer.
@Suite struct FuzzTests {
    @Test func anyBytesAndAnySchemaEndInAValueOrAnError() async throws {
        try await offPool {
            let rounds = 100_000 * Rounds.factor
            let found = try ModelsChildRun.findings(["fuzz", String(rounds), "8"])
            #expect(found.number("failures") > rounds / 2, "\(found)")
            #expect(found.number("failures") < rounds, "\(found)")
            #expect(found.number("accepted") > 0, "\(found)")
        }
    }
}
