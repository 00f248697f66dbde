import Foundation
import Testing

@Suite struct CacheCommandTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func cache(_ arguments: String..., input: Data? = nil) async throws -> Tool.Outcome {
        try await Tool.run(["cache"] + arguments + ["--root", scratch.file("root").path], input: input)
    }

    private func file(_ name: String, _ text: String) throws -> String {
        try Data(text.utf8).write(to: scratch.file(name))
        return scratch.file(name).path
    }

    @Test func whatIsPutCanBeListedReadAndRemoved() async throws {
        #expect(try await cache("put", "a key/with: odd\u{7}signs", file("in", "hello"), "--name", "notes").status == 0)
        #expect(try await cache("put", "other", file("in2", "more"), "-n", "notes", "--format", "small").status == 0)

        let stats = try await cache("stats", "--json")
        #expect(stats.objects.map { $0["format"] as? String } == ["original", "small"])
        #expect(stats.objects.allSatisfy { $0["cache"] as? String == "notes" && $0["entries"] as? Int == 1 })

        let list = try await cache("list", "--json")
        #expect(list.objects.map { $0["key"] as? String } == ["a key/with: odd\u{7}signs", "other"])
        #expect(list.objects.first?["bytes"] as? Int == 5)
        // Text for people shows no control characters.
        #expect(try await !cache("list").output.contains("\u{7}"))

        let got = try await cache("get", "a key/with: odd\u{7}signs", "--name", "notes")
        #expect(got.output == "hello")
        let output = scratch.file("out").path
        #expect(try await cache("get", "other", "-n", "notes", "--format", "small", "-o", output).status == 0)
        #expect(try String(contentsOfFile: output, encoding: .utf8) == "more")

        #expect(try await cache("remove", "other", "-n", "notes").status == 0)
        let again = try await cache("remove", "other", "-n", "notes")
        #expect(again.status == 1)
        #expect(again.errors == "other: there is no such entry; 'vitrine cache list' lists the keys\n")
        #expect(try await cache("list", "--json").objects.count == 1)
    }

    @Test func standardInputAndLifetimesAreTaken() async throws {
        let put = try await cache("put", "k", "-", "-n", "c", "--expires-in", "30d", input: Data("typed".utf8))
        #expect(put.status == 0)
        let entry = try #require(try await cache("list", "--json").objects.first)
        #expect(entry["expires"] is String)
        #expect(try await cache("get", "k", "-n", "c").output == "typed")
    }

    @Test func commandsWithoutLinesRefuseJSON() async throws {
        let file = try file("in", "x")
        for arguments in [["get", "k"], ["put", "k", file], ["remove", "k"], ["clear"]] {
            let outcome = try await Tool.run(
                ["cache"] + arguments + ["-n", "c", "--json", "--root", scratch.file("caches").path])
            #expect(outcome.status == 2 && outcome.errors.contains("--json"), "\(arguments)")
        }
        #expect(try await cache("list", "-n", "c").status == 1)
    }

    @Test func clearingNeedsToBeToldWhich() async throws {
        for name in ["one", "two"] { _ = try await cache("put", "k", file("in", "x"), "-n", name) }
        #expect(try await cache("clear").status == 2)
        #expect(try await cache("clear", "-n", "one").status == 0)
        #expect(try await cache("list", "--json").objects.map { $0["cache"] as? String } == ["two"])
        #expect(try await cache("clear", "--all").status == 0)
        #expect(try await cache("list", "--json").objects.isEmpty)
    }

    @Test func auditsShrinkAndDryRunsOnlyTell() async throws {
        for number in 1...5 {
            _ = try await cache("put", "k\(number)", file("in", String(repeating: "x", count: 1000)), "-n", "c")
        }
        #expect(try await cache("audit").status == 2)
        #expect(try await cache("audit", "--shrink-to", "much").status == 2)
        let dry = try await cache("audit", "--shrink-to", "3000", "--dry-run", "--json")
        #expect(dry.objects.last?["removed"] as? Int == 2)
        #expect(dry.objects.count == 3)
        #expect(try await cache("list", "--json").objects.count == 5)
        let done = try await cache("audit", "--shrink-to", "3000", "--older-than", "4w", "--json")
        #expect(done.objects.last?["removed"] as? Int == 2)
        #expect(done.objects.last?["keptBytes"] as? Int == 3000)
        #expect(try await cache("list", "--json").objects.count == 3)
    }

    @Test func damageIsFoundAndRemoved() async throws {
        // Larger than what lies in the database: a file of its own.
        let big = String(repeating: "picture ", count: 20_000)
        _ = try await cache("put", "big", file("in", big), "-n", "c")
        _ = try await cache("put", "small", file("in2", "fine"), "-n", "c")
        #expect(try await cache("verify").status == 0)

        let bodies = scratch.contents.filter { $0.contains("/files/") }
            .map { scratch.file($0) }.filter { !$0.hasDirectoryPath && $0.pathExtension.isEmpty }
        let body = try #require(
            bodies.first { (try? $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true })
        var bytes = try Data(contentsOf: body)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: body)

        let found = try await cache("verify", "--json")
        #expect(found.status == 1)
        #expect((found.objects.first?["damaged"] as? [[String: Any]])?.first?["key"] as? String == "big")
        #expect(try await cache("verify", "--remove").status == 1)
        #expect(try await cache("verify").status == 0)
        #expect(try await cache("get", "small", "-n", "c").output == "fine")
        #expect(try await cache("get", "big", "-n", "c").status == 1)
    }

    @Test func whatIsNotThereIsSaidAndNothingIsMade() async throws {
        let outcome = try await cache("get", "k", "-n", "nowhere")
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("nowhere: there is no such cache"))
        #expect(try await cache("stats").status == 0)
        #expect(try await cache("get", "k").status == 2)
        #expect(try await cache("put", "k", "/nowhere/file", "-n", "c").status == 1)
        #expect(scratch.contents.filter { $0.hasPrefix("root") }.isEmpty)
    }
}
