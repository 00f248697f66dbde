#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

struct CurlLoaderTests {
    @Test func bringsHeadAndBody() async throws {
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Type: Image/JPEG; x=1", "X-A: 1", "x-a: 2"], body: pattern(100_000))]
        }
        let loader = makeLoader()
        let (head, body) = try await loader.whole(patient(server.url("/a.jpg?q")))
        #expect(head.status == 200)
        #expect(head.contentLength == 100_000)
        #expect(head.contentType == "image/jpeg")
        #expect(head.headers.all("X-A") == ["1", "2"])
        #expect(head.version == .http1_1)
        #expect(head.remoteAddress == "127.0.0.1")
        #expect(body == pattern(100_000))
        #expect(server.requests.map(\.target) == ["/a.jpg?q"])
        #expect(server.requests.first?.header("User-Agent") == "Vitrine")
    }

    @Test func headIsThereBeforeTheBodyIs() async throws {
        let barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"), .wait(barrier), .text("body")]
        }
        let response = try await makeLoader().load(patient(server.url("/")))
        #expect(response.head.contentLength == 4)
        barrier.open()
        #expect(try await response.body.collect() == Array("body".utf8))
    }

    @Test func collectsIntoMemoryOfTheAnnouncedLength() async throws {
        let server = try LoopbackServer { _ in [.reply(body: pattern(3_000_000))] }
        let body = try await makeLoader().load(patient(server.url("/"))).body.collect()
        #expect(body == pattern(3_000_000))
        // Grown by doubling it would have room for 4 MiB.
        #expect(body.capacity < 3_500_000)
    }

    @Test func keepsConnectionsAndItsLimit() async throws {
        let server = try LoopbackServer { request in [.reply(body: Array(request.target.utf8))] }
        let loader = makeLoader { $0.connectionsPerHost = 3 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                group.addTask {
                    let (_, body) = try await loader.whole(patient(server.url("/\(number)")))
                    #expect(body == Array("/\(number)".utf8))
                }
            }
            try await group.waitForAll()
        }
        #expect(server.requests.count == 60)
        #expect(server.connectionCount <= 3)
    }

    @Test func urgentRequestsGoFirst() async throws {
        let barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { request in
            (request.target == "/first" ? [.wait(barrier)] : []) + [.reply(body: [1])]
        }
        let loader = makeLoader { $0.connectionsPerHost = 1 }
        async let first = loader.whole(patient(server.url("/first")))
        while server.requests.isEmpty { await Task.yield() }
        let low = Task {
            var request = patient(server.url("/low"))
            request.priority = .low
            _ = try await loader.whole(request)
        }
        let high = Task {
            var request = patient(server.url("/high"))
            request.priority = .high
            _ = try await loader.whole(request)
        }
        // Both stand in line when both have been handed over, which the loader tells.
        while loader.waitingCount < 2 { await Task.yield() }
        barrier.open()
        _ = try await (first, low.value, high.value)
        #expect(server.requests.map(\.target) == ["/first", "/high", "/low"])
    }

    @Test func slowReaderStopsTheServer() async throws {
        let chunk = [UInt8](repeating: 7, count: 64 << 10)
        let server = try LoopbackServer { _ in [.text("HTTP/1.1 200 OK\r\n\r\n"), .endless(chunk)] }
        let loader = makeLoader { $0.receiveWindow = .kibibytes(256) }
        var request = patient(server.url("/"))
        request.acceptsCompression = false
        let response = try await loader.load(request)
        var iterator = response.body.makeAsyncIterator()
        var total = 0
        while total <= 1 << 20 {
            let bytes = try #require(try await iterator.next())
            // What waits never grows beyond the limit and one reading.
            #expect(bytes.count <= (256 + 32) << 10)
            #expect(bytes.allSatisfy { $0 == 7 })
            total += bytes.count
        }
    }

    @Test func droppedBodyEndsTheTransfer() async throws {
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\n\r\n"), .endless([UInt8](repeating: 0, count: 4096))]
        }
        let loader = makeLoader()
        do {
            let response = try await loader.load(patient(server.url("/")))
            #expect(response.head.status == 200)
        }
        await server.waitUntilUnused()
    }

    @Test func cancellingEndsTheTransferAtOnce() async throws {
        let server = try LoopbackServer { request in
            request.target == "/body" ? [.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), .hang] : [.hang]
        }
        let loader = makeLoader()
        let head = Task { try await loader.load(patient(server.url("/head"))) }
        let body = Task { try await loader.whole(patient(server.url("/body"))) }
        while server.requests.count < 2 { await Task.yield() }
        head.cancel()
        body.cancel()
        for result in [await failure { _ = try await head.value }, await failure { _ = try await body.value }] {
            guard case .cancelled = result else { Issue.record("\(String(describing: result))"); continue }
        }
        await server.waitUntilUnused()
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await loader.load(patient(server.url("/late")))
        }
        let error = await failure { _ = try await late.value }
        guard case .cancelled = error else { Issue.record("\(String(describing: error))"); return }
        #expect(server.requests.count == 2)
    }

    @Test func bodiesOutliveTheLoader() async throws {
        let barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), .wait(barrier), .text("ab")]
        }
        let response = try await makeLoader().load(patient(server.url("/")))
        barrier.open()
        #expect(try await response.body.collect() == Array("ab".utf8))
    }

    @Test func threadAndConnectionsGoWithTheLoader() async throws {
        let server = try LoopbackServer { _ in [.reply(body: [1])] }
        do {
            let loader = makeLoader()
            _ = try await loader.whole(patient(server.url("/")))
        }
        await server.waitUntilUnused()
    }

    @Test func sendsMethodsFieldsBodiesAndRanges() async throws {
        let server = try LoopbackServer { _ in [.reply(body: [1])] }
        let loader = makeLoader()
        var post = HTTPRequest(url: server.url("/post"), method: "POST", headers: ["X-Empty": "", "A": "ä"])
        post.body = Array("hello".utf8)
        _ = try await loader.whole(post)
        var part = patient(server.url("/part"))
        part.range = .toEnd(from: 100)
        part.ifRange = "\"tag\""
        _ = try await loader.whole(part)
        let empty = HTTPRequest(url: server.url("/head"), method: "HEAD")
        _ = try await loader.load(empty)
        let requests = server.requests
        #expect(requests.map(\.method) == ["POST", "GET", "HEAD"])
        #expect(requests[0].body == Array("hello".utf8))
        #expect(requests[0].header("X-Empty") == "")
        #expect(requests[0].header("A") == "ä")
        #expect(requests[0].header("Expect") == nil)
        #expect(requests[0].header("Content-Type") == nil)
        #expect(requests[1].header("Range") == "bytes=100-")
        #expect(requests[1].header("If-Range") == "\"tag\"")
        #expect(requests[1].header("Accept-Encoding") == nil)
        // A handle that is used again keeps nothing.
        #expect(requests[2].header("Range") == nil)
    }

    @Test func refusesFieldsThatWouldBecomeTwo() async throws {
        let server = try LoopbackServer { _ in [.reply()] }
        let loader = makeLoader()
        for headers: HTTPHeaders in [["A": "1\r\nB: 2"], ["A\nB": "1"], ["A:": "1"], ["A": "1\0"], ["": "1"]] {
            let request = HTTPRequest(url: server.url("/"), headers: headers)
            let error = await failure { _ = try await loader.load(request) }
            #expect(error?.code == -411, "\(headers)")
        }
        #expect(server.requests.isEmpty)
    }

    @Test func asksForAddressesBeforeConnectingAndBeforeUsingAgain() async throws {
        let server = try LoopbackServer { _ in [.reply(body: [1])] }
        let loader = makeLoader()
        let seen = Recorder<IPAddress>()
        let refuse: ConnectFilter = { .address("\($0)") }
        for _ in 0..<2 {
            let error = await failure { _ = try await loader.load(patient(server.url("/")), allowing: refuse) }
            guard case .refused(_, PolicyViolation.address("127.0.0.1").description) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            if seen.all.isEmpty {
                #expect(server.connectionCount == 0)
                // Leaves a connection behind, which the second round may not use.
                let allow: ConnectFilter = { seen.add($0); return nil }
                _ = try await loader.load(patient(server.url("/")), allowing: allow).body.collect()
            }
        }
        #expect(server.requests.count == 1)
        #expect(Set(seen.all) == [.v4(0x7F00_0001)])
    }
}
#endif
