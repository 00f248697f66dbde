#if os(Linux)
import Foundation
import Synchronization
import Testing
import VitrineCore
import VitrineImaging
import VitrineServer

/// Files that break decoders, through the whole server.
@Suite(.serialized) struct RenderingHostileTests {
    /// Beside the repository; not part of it.
    private static let directory = URL(filePath: Samples.directory).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "shared/hostile").path(percentEncoded: false)

    private static let files: [String] = {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? []
        return names.sorted().filter {
            var isDirectory: ObjCBool = false
            let path = directory + "/" + $0
            // Hidden files are no sources.
            if $0.split(separator: "/").contains(where: { $0.hasPrefix(".") }) { return false }
            return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && !isDirectory.boolValue
        }
    }()

    /// The answers to a hostile file: 422 with one of these codes, 413, 504, or a picture.
    private static let codes: Set<String> = [
        "not-an-image", "undecodable", "damaged-image", "unsupported-image", "limit-exceeded", "encrypted",
        "no-such-page", "no-video", "beyond-end", "render-timeout", "not-encodable", "source-too-large",
    ]

    private final class Findings: Sendable {
        private let state = Mutex((answers: [String: Int](), strange: [String]()))
        var strange: [String] { state.withLock { $0.strange } }
        var text: String {
            state.withLock { $0.answers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" } }
                .joined(separator: ", ")
        }
        var count: Int { state.withLock { $0.answers.values.reduce(0, +) } }

        func add(_ name: String, _ answer: PlainClient.Answer, secret: String) {
            let code = answer.code ?? ""
            let isExpected = answer.status == 200 || [413, 422, 504].contains(answer.status) && codes.contains(code)
            state.withLock { state in
                state.answers[answer.status == 200 ? "200" : "\(answer.status) \(code)", default: 0] += 1
                if !isExpected || answer.status != 200 && answer.body.contains(secret) {
                    state.strange.append("\(name): \(answer.status) \(answer.body.prefix(200))")
                }
            }
        }
    }

    /// Asks for all of some sources, four at a time.
    private static func ask(
        _ port: Int, _ names: [String], secret: String, _ path: @escaping @Sendable (String) -> String
    ) async throws -> Findings {
        let findings = Findings()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<4 {
                group.addTask {
                    try await onThread {
                        let client = try PlainClient(port: port)
                        for index in stride(from: lane, to: names.count, by: 4) {
                            findings.add(names[index], try client.request(path(names[index])), secret: secret)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        return findings
    }

    @Test func hostileFilesAreErrorsOfTheirOwn() async throws {
        let files = Self.files
        guard !files.isEmpty else { return print("Skipped: \(Self.directory) is absent.") }
        try await RunningServer.run({
            $0.localRoot = Self.directory
            $0.timeout = 300
        }) { server in
            let findings = try await Self.ask(server.port, files, secret: "hostile") {
                RunningServer.path("local:///" + $0, "rs:fit:100:100", as: "png")
            }
            print("Hostile files: \(findings.text)")
            #expect(findings.count == files.count && findings.strange.isEmpty, "\(findings.strange)")
            try await wait { server.isIdle }
            // Their descriptions, too.
            let described = try await Self.ask(server.port, files, secret: "hostile") {
                "/info" + RunningServer.path("local:///" + $0, "page:0")
            }
            print("Descriptions: \(described.text)")
            #expect(described.strange.isEmpty, "\(described.strange)")
            try await wait { server.isIdle }
        }
        try await RunningServer.run { server in
            let answer = try await server.get("local:///lake.jpg")
            #expect(answer.status == 200)
        }
    }

    @Test func damagedFilesAreErrorsOfTheirOwn() async throws {
        // The samples, which everyone has, and the small hostile files.
        var seeds: [[UInt8]] = try FileManager.default.contentsOfDirectory(atPath: Samples.directory).sorted()
            .compactMap { try? Samples.bytes($0) }.filter { $0.count < 200_000 }
        for name in Self.files.enumerated().filter({ $0.offset % 9 == 0 }).map(\.element) {
            let data = try? Data(contentsOf: URL(filePath: Self.directory + "/" + name))
            if let data, (1...60_000).contains(data.count) { seeds.append([UInt8](data)) }
        }
        let pictures = seeds
        let origin = try ScriptedOrigin { received in
            let number = Int(received.target.dropFirst()) ?? 0
            var random = TestGenerator(seed: UInt64(number))
            var bytes = pictures[number % pictures.count]
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                bytes = ServerFuzzTests.mutated(bytes, &random)
            }
            return ScriptedOrigin.answer(bytes)
        }
        try await RunningServer.run({ $0.timeout = 300 }) { server in
            let names = (0..<600).map(String.init)
            let findings = try await Self.ask(server.port, names, secret: "127.0.0.1") {
                RunningServer.path(origin.url($0), "rs:fit:50:50", as: "jpg")
            }
            print("Damaged files: \(findings.text)")
            #expect(findings.count == names.count && findings.strange.isEmpty, "\(findings.strange)")
            #expect(try await server.get("local:///lake.jpg").status == 200)
            try await wait { server.isIdle }
        }
    }
}
#endif
