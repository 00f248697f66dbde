import Foundation
import Synchronization
import Testing
import VitrineCore
import VitrineServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Purges by the admin listener of the program.
@Suite(.serialized) struct PurgeTests {
    private func tagged() async throws -> Origin {
        let body = try Samples.bytes("lake.jpg")
        return try await Origin.start { request in
            .init(
                headers: [
                    ("Cache-Control", "max-age=3600"),
                    request.path.contains("comma") ? ("Cache-Tag", "red, blue") : ("Surrogate-Key", "red green"),
                ], body: body)
        }
    }

    @Test(arguments: [false, true])
    func purgesRemoveResultsAndSources(_ hasDisk: Bool) async throws {
        let origin = try await tagged()
        let directory = try TemporaryDirectory()
        let server = try await ImageServerProcess.start(hasDisk ? ["--disk-cache", directory.path] : [])
        let paths = ["a/1", "a/b/2", "a/b/comma", "c/3"]
        /// Asks for two sizes of each, and returns those whose sources were fetched anew.
        func fetched() async throws -> [String] {
            let before = origin.requests.count
            for path in paths {
                for width in [50, 60] {
                    #expect(try await server.image(origin.url(path), width).status == 200)
                    // Without a disk, sources are not kept.
                    if !hasDisk { break }
                }
            }
            return origin.requests.dropFirst(before).map { String($0.path.dropFirst()) }
        }
        func purged(_ body: String) async throws -> Int {
            let answer = try await server.purge(body)
            #expect(answer.status == 200, "\(answer)")
            return try #require(answer.body.firstMatch(of: /"purged":(\d+)/).flatMap { Int($0.1) })
        }
        let sizes = hasDisk ? 2 : 1
        #expect(try await fetched() == paths)
        #expect(try await fetched().isEmpty)
        #expect(try await purged("{\"source\":\"\(origin.url("a/1"))\"}") == sizes)
        #expect(try await fetched() == ["a/1"])
        #expect(try await purged("{\"prefix\":\"\(origin.url("a/b/"))\"}") == 2 * sizes)
        #expect(try await fetched() == ["a/b/2", "a/b/comma"])
        #expect(try await purged("{\"prefix\":\"\(origin.url(""))\"}") == 4 * sizes)
        #expect(try await fetched() == paths)
        #expect(try await purged("{\"tag\":\"green\"}") == 3 * sizes)
        #expect(try await fetched() == ["a/1", "a/b/2", "c/3"])
        #expect(try await purged("{\"tag\":\"blue\"}") == sizes)
        #expect(try await fetched() == ["a/b/comma"])
        #expect(try await purged("{\"tag\":\"red\"}") == 4 * sizes)
        #expect(try await fetched() == paths)
        #expect(try await purged("{\"tag\":\"unknown\"}") == 0)
        #expect(try await purged("{\"prefix\":\"\(origin.url("a/bb/"))\"}") == 0)
        #expect(try await fetched().isEmpty)
        _ = try await purged("{\"all\":true}")
        #expect(try await fetched() == paths)
        try await server.end()
    }

    @Test func localSourcesArePurgedByPrefixToo() async throws {
        let directory = try TemporaryDirectory()
        let server = try await ImageServerProcess.start(["--disk-cache", directory.path])
        func made() async throws -> Bool {
            let before = try await server.metrics
            #expect(try await server.image("local:///lake.jpg").status == 200)
            let after = try await server.metrics
            let count = /vitrine_cache_results_total\{level="made"\} (\d+)/
            let counts = try [before, after].map { try #require($0.firstMatch(of: count)?.1) }
            return counts[0] != counts[1]
        }
        #expect(try await made())
        #expect(try await !made())
        #expect(try await server.purge("{\"prefix\":\"local:///\"}").body == "{\"purged\":1}\n")
        #expect(try await made())
        #expect(try await server.purge("{\"source\":\"local:///lake.jpg\"}").body == "{\"purged\":1}\n")
        #expect(try await made())
        try await server.end()
    }

    @Test func purgesAreForTheAdminListenerAndWellFormed() async throws {
        let server = try await ImageServerProcess.start()
        let type = ["Content-Type": "application/json"]
        let status = try await get(server.main, "/purge", method: "POST", type, body: "{\"all\":true}").status
        #expect(status == 405)
        for (body, code) in [
            ("{\"prefix\":\"https://example.org/a\"}", "invalid-prefix"),
            ("{\"prefix\":\"https://\"}", "invalid-prefix"), ("{\"prefix\":\"/\"}", "invalid-source"),
            ("{\"prefix\":\"https://example.org/a?b=/\"}", "invalid-prefix"),
            ("{\"prefix\":\"https://example.org/1/2/3/4/5/6/7/\"}", "invalid-prefix"),
            ("{\"prefix\":\"local://a/\"}", "invalid-source"), ("{\"prefix\":\"ftp://a/\"}", "invalid-source"),
            ("{\"source\":\"lake.jpg\"}", "invalid-source"), ("{\"tag\":\"a b\"}", "invalid-tag"),
            ("{\"colour\":\"red\"}", "bad-purge"),
        ] {
            let answer = try await server.purge(body)
            #expect(answer.status == 400 && answer.body.contains("\"\(code)\""), "\(body): \(answer)")
        }
        let deep = try await server.purge("{\"prefix\":\"https://example.org/1/2/3/4/5/6/\"}")
        #expect(deep.body == "{\"purged\":0}\n")
        try await server.end()
    }

    @Test func whatAPurgeRemovedStaysRemovedAfterKill() async throws {
        let origin = try await tagged()
        let directory = try TemporaryDirectory()
        let first = try await ImageServerProcess.start(["--disk-cache", directory.path])
        for path in ["a/1", "b/2"] { #expect(try await first.image(origin.url(path)).status == 200) }
        #expect(try await first.purge("{\"prefix\":\"\(origin.url("a/"))\"}").body == "{\"purged\":1}\n")
        first.process.send(SIGKILL)
        #expect(try await first.process.waitUntilEnd() == -SIGKILL)
        let second = try await ImageServerProcess.start(["--disk-cache", directory.path])
        for path in ["a/1", "b/2"] { #expect(try await second.image(origin.url(path)).status == 200) }
        #expect(origin.count(of: "a/1") == 2)
        // The other one is still there, in memory or on disk, unless the process was killed before it was written.
        #expect(origin.count(of: "b/2") <= 2)
        try await second.end()
    }

    /// Results of the disk are answered without a task: none of them after their purge, while others ask for them.
    @Test func whatAPurgeRemovedIsNotReadFromTheDisk() async throws {
        let bodies = [try Samples.bytes("lake.jpg"), try Samples.bytes("lake-grey.jpg")]
        let version = Mutex(0)
        let origin = try await Origin.start { _ in
            .init(
                headers: [("Cache-Control", "max-age=3600"), ("Surrogate-Key", "red")],
                body: bodies[version.withLock { $0 } % 2])
        }
        let directory = try TemporaryDirectory()
        let server = try await ImageServerProcess.start(["--disk-cache", directory.path, "--memory-cache", "0"])
        let port = server.main, path = ImageServerProcess.path(origin.url("a/1"))
        let others = (0..<3).map { _ in
            Task {
                var statuses: Set<Int> = []
                while !Task.isCancelled { statuses.insert(try await get(port, path).status) }
                return statuses
            }
        }
        var tags: [Set<String>] = [[], []]
        for round in 0..<20 {
            version.withLock { $0 = round }
            let body = round % 3 == 0 ? "{\"tag\":\"red\"}" : "{\"source\":\"\(origin.url("a/1"))\"}"
            #expect(try await server.purge(body).status == 200)
            for _ in 0..<3 { tags[round % 2].insert(try await get(port, path).fields["etag"] ?? "") }
            try await eventually("it is read from the disk") {
                try await get(port, path).fields["cache-status"] == "vitrine; hit; detail=disk"
            }
        }
        for other in others { other.cancel() }
        for other in others { #expect(try await other.value == [200]) }
        #expect(tags[0].count == 1 && tags[1].count == 1 && tags[0] != tags[1], "\(tags)")
        #expect(try await server.metrics.contains(/vitrine_cache_results_total\{level="disk"\} [1-9]/))
        try await server.end()
    }

    /// Work that began before a purge stores nothing, and requests after it do not wait for it.
    @Test(arguments: [
        "{\"source\":\"URL\"}", "{\"prefix\":\"DIRECTORY\"}", "{\"tag\":\"red\"}", "{\"all\":true}",
    ])
    func rendersUnderWayStoreNothingThatIsPurged(_ body: String) async throws {
        let old = try Samples.bytes("lake.jpg"), new = try Samples.bytes("lake-grey.jpg")
        let gate = OpenSignal()
        let count = Mutex(0)
        let origin = try await Origin.start { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { await gate.wait() }
            return .init(
                headers: [("Cache-Control", "max-age=3600"), ("Surrogate-Key", "red")], body: number == 1 ? old : new)
        }
        let directory = try TemporaryDirectory()
        let server = try await ImageServerProcess.start(["--disk-cache", directory.path])
        let port = server.main, path = ImageServerProcess.path(origin.url("a/1"))
        let first = Task { try await get(port, path) }
        try await eventually("the source is being loaded") { count.withLock { $0 } == 1 }
        let request = body.replacing("URL", with: origin.url("a/1")).replacing("DIRECTORY", with: origin.url("a/"))
        #expect(try await server.purge(request).body == "{\"purged\":0}\n")
        let second = Task { try await get(port, path) }
        try await eventually("both are under way") {
            let debug = try await get(server.admin, "/debug").body
            return debug.components(separatedBy: "\"path\":").count == 3
        }
        gate.open()
        let one = try await first.value
        let answers = (one, try await second.value)
        #expect(answers.0.status == 200 && answers.1.status == 200)
        #expect(answers.0.body != answers.1.body)
        #expect(try await get(port, path).body == answers.1.body)
        #expect(count.withLock { $0 } == 2)
        // Nor on disk: another size is made of the new bytes, without a request.
        let size = try await server.image(origin.url("a/1"), 40)
        #expect(size.status == 200 && count.withLock { $0 } == 2)
        try await server.end()
        let restarted = try await ImageServerProcess.start(["--disk-cache", directory.path])
        #expect(try await restarted.image(origin.url("a/1")).body == answers.1.body)
        try await restarted.end()
    }
}

/// The order of purges and work.
@Suite struct PurgeFenceTests {
    private func stores(_ fence: PurgeFence, _ tags: [String], since position: Int) async -> Bool {
        let hasStored = Mutex(false)
        await fence.store(tags, since: position) { hasStored.withLock { $0 = true } }
        return hasStored.withLock { $0 }
    }

    @Test func onlyWorkAfterThePurgeOfATagStores() async {
        let fence = PurgeFence(limit: 8)
        let begin = fence.position
        await fence.purge("a")
        #expect(await !stores(fence, ["a", "b"], since: begin))
        #expect(await stores(fence, ["b"], since: begin))
        #expect(await stores(fence, ["a"], since: fence.position))
        await fence.purge(nil)
        #expect(await !stores(fence, ["b"], since: begin))
        #expect(await stores(fence, ["b"], since: fence.position))
        // Of very many tags, older purges count for all.
        let middle = fence.position
        for number in 0..<9 { await fence.purge("tag \(number)") }
        #expect(await !stores(fence, ["c"], since: middle))
        #expect(await stores(fence, ["c"], since: fence.position))
    }

    @Test func epochsChangeForThoseConcerned() async {
        let fence = PurgeFence()
        let first = fence.epoch(of: ["a"])
        await fence.purge("b")
        #expect(fence.epoch(of: ["a"]) == first)
        #expect(fence.epoch(of: ["b"]) > first)
        await fence.purge("named", isNamed: true)
        #expect(fence.epoch(of: ["a"]) > first)
        let second = fence.epoch(of: ["a"])
        await fence.purge(nil)
        #expect(fence.epoch(of: ["a"]) > second)
    }

    @Test func purgesWaitForStoresThatBeganBefore() async throws {
        let fence = PurgeFence()
        let started = OpenSignal(), gate = OpenSignal()
        let events = LineCollector()
        let store = Task {
            await fence.store(["a"], since: 0) {
                started.open()
                await gate.wait()
                events.add("stored")
            }
        }
        await started.wait()
        let purge = Task {
            await fence.purge("a")
            events.add("purged")
        }
        try await eventually("the purge has begun") { fence.position == 1 }
        gate.open()
        await store.value
        await purge.value
        #expect(events.lines == ["stored", "purged"])
    }

    @Test func loadsWaitForThoseOfEarlierEpochs() async throws {
        let fence = PurgeFence()
        let key = CacheKey("a")
        await fence.beginLoad(key, epoch: 0)
        await fence.beginLoad(key, epoch: 0)
        let events = LineCollector()
        let later = Task {
            await fence.beginLoad(key, epoch: 1)
            events.add("later")
        }
        await fence.beginLoad(CacheKey("b"), epoch: 1)
        fence.endLoad(key, epoch: 0)
        events.add("one")
        fence.endLoad(key, epoch: 0)
        await later.value
        #expect(events.lines == ["one", "later"])
    }
}
