#if os(Linux)
import Foundation
import Glibc
import ServerTestSupport
import Testing
import VitrineServer

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

    // MARK: Allowed sources

    /// An origin of a picture, which redirects as it is asked to.
    private static func origin() throws -> ScriptedOrigin {
        let picture = try Samples.bytes("leaf.png")
        return try ScriptedOrigin { request in
            guard let mark = request.target.firstRange(of: "?to=") else { return ScriptedOrigin.answer(picture) }
            let place = String(request.target[mark.upperBound...]).removingPercentEncoding ?? ""
            return ScriptedOrigin.answer([], status: 302, ["Location: \(place)"])
        }
    }

    private static func path(_ source: String) -> String {
        let text = Data(source.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        return "/insecure/raw:1/" + text.replacing("=", with: "")
    }

    private static func run(
        _ sources: [String], _ body: (ImageProgram) async throws -> Void
    ) async throws {
        try await ImageProgram.run({ ($0.allowLoopbackSources, $0.allowedSources) = (true, sources) }, body)
    }

    @Test func noSpellingOfAPathLeavesTheAllowedOne() async throws {
        let origin = try Self.origin()
        try await Self.run([origin.url("pictures/")]) { program async throws in
            for name in ["pictures/ok.png", "pictures/a%20b/.c..d/e.png?x=/../y", "pictures/x;y/z..png"] {
                #expect(try await program.ask(Self.path(origin.url(name))).status == 200, "\(name)")
            }
            let count = origin.received.count
            for name in [
                "secret/s.png", "pictures", "Pictures/s.png", "pictures/../secret/s.png",
                "pictures/%2e%2e/secret/s.png",
                "pictures/%2f../secret/s.png", "pictures/x%2f../%2f../secret/s.png", "pictures/%2F%2e%2e/secret/s.png",
                "pictures/..;/secret/s.png", "pictures/..;a=b/secret/s.png", "pictures/..%5csecret/s.png",
                "pictures/%5c..%5csecret/s.png", "pictures/%252e%252e/secret/s.png", "pictures/%25252e./secret/s.png",
                "pictures/..%00/secret/s.png", "pictures/%00/../secret/s.png", "pictures/%c0%ae%c0%ae/secret/s.png",
                "pictures/%e0%80%ae./secret/s.png", "pictures/..%c0%afsecret/s.png",
                "pictures/%u002e%u002e/secret/s.png",
                "pictures/%ef%bc%8e%ef%bc%8e/secret/s.png", "pictures/..%ef%bc%8fsecret/s.png",
                "pictures/.../secret/s.png",
                "pictures/%2e%2e%20/secret/s.png", "pictures/.%0d./secret/s.png", "pictures/./secret/s.png",
                "pictures/%E2%80%A5/secret/s.png", "pictures/%252525252525252525252e./s.png",
            ] {
                #expect(try await program.ask(Self.path(origin.url(name))).status == 403, "\(name)")
            }
            #expect(origin.received.count == count)
        }
    }

    @Test func redirectsDoNotLeaveTheAllowedSources() async throws {
        let (origin, other) = (try Self.origin(), try Self.origin())
        try await Self.run([origin.url("pictures/")]) { program async throws in
            for (place, status) in [
                (origin.url("pictures/a.png"), 200), ("/pictures/b.png", 200), (other.url("pictures/a.png"), 403),
                (origin.url("secret/a.png"), 403), ("../secret/a.png", 403), ("/pictures/%2f../secret/a.png", 403),
            ] {
                let target = place.replacing("%", with: "%25")
                let answer = try await program.ask(Self.path(origin.url("pictures/x?to=\(target)")))
                #expect(answer.status == status, "\(place)")
            }
            #expect(other.received.isEmpty)
            #expect(!origin.received.contains { $0.target.contains("secret") && !$0.target.contains("?to=") })
        }
        // Without a path, the host alone decides.
        try await Self.run([origin.url("")]) { program async throws in
            #expect(try await program.ask(Self.path(origin.url("a/../b.png"))).status == 200)
            #expect(try await program.ask(Self.path(origin.url("x?to=\(other.url("a.png"))"))).status == 403)
            #expect(try await program.ask(Self.path(other.url("a.png"))).status == 403)
        }
    }

    @Test(arguments: [
        (["--base-url", "http://a.example"], "does not end in a slash; write “http://a.example/”"),
        (["--base-url", "http://127.0.0.1:80"], "does not end in a slash"),
        (["--base-url", "http://a.example/x?y=/"], "a query or a fragment"),
        (["--allowed-sources", "https://"], "is not the beginning of an address"),
        (["--allowed-sources", "a.example/"], "is not the beginning of an address"),
    ])
    func beginningsOfSourcesHaveAnEnd(_ arguments: [String], _ reason: String) throws {
        let error = #expect(throws: ConfigurationError.self) {
            try ServerConfiguration.load(arguments: arguments, environment: [:])
        }
        #expect(error?.description.contains(reason) == true, "\(error as Any)")
        let good = ["--base-url", "http://a.example/", "--allowed-sources", "http://a.example,local://,s3://b/c/"]
        _ = try ServerConfiguration.load(arguments: good, environment: [:])
    }
}
#endif
