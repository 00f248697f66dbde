#if os(Linux)
import Foundation
import Glibc
import ServerTestSupport
import Testing

/// Addresses that strangers must not reach through the server.
@Suite struct RenderingAccessTests {
    private static let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "access-corpus").path(percentEncoded: false)
    private static let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "vitrine-server").path(percentEncoded: false)

    private static func run(_ words: [String]) throws -> (status: Int32, output: String) {
        let result = try ChildProcess.run("/usr/bin/env", words)
        return (result.status, String(decoding: result.output, as: UTF8.self))
    }

    /// Whether this system gives a program networks of its own.
    private static let hasNetworks: Bool = {
        let words = ["unshare"] + (getuid() == 0 ? [] : ["--map-root-user"]) + ["--net", "--mount", "ip", "link"]
        let hasPython = (try? run(["python3", "--version"]))?.status == 0
        return hasPython && (try? run(words))?.status == 0
    }()

    /// All notations, directly and by five kinds of redirects, and names that change their address between two looks.
    @Test(.enabled(if: hasNetworks, "network namespaces or Python are not available"))
    func privateListenersAreNotReached() async throws {
        let directory = try TemporaryDirectory()
        let words = ["sh", "-c", "exec \"$@\" 2>\(directory.path)/errors", "sh"]
        let result = try await onThread { try Self.run(words + [Self.script, Self.program, Samples.directory]) }
        let errors = try String(contentsOfFile: directory.path + "/errors", encoding: .utf8)
        #expect(result.status == 0, "\(result.output) \(errors.suffix(2000))")
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        #expect((object?["requests"] as? Int ?? 0) > 800)
        #expect((object?["reached"] as? [String: Any])?.isEmpty == true)
        #expect((object?["public requests"] as? Int ?? 0) > 500)
    }
}
#endif
