import TestSupport
import Testing

/// `ModelsChild` from its beginning to its end.
enum ModelsChildRun {
    static func findings(_ arguments: [String], wrapper: [String] = []) throws -> Findings {
        let child = try ChildProcess(executable: "ModelsChild", arguments, wrapper: wrapper)
        let findings = child.findings()
        #expect(child.wait() == .exit(0), "\(findings)")
        return findings
    }
}
