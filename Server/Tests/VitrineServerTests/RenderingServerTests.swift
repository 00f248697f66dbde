#if os(Linux)
import Foundation
import Synchronization
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineServer

/// The work that simultaneous clients share, with real origins and real connections.
@Suite(.serialized) struct RenderingServerTests {
    /// Sends one request on each of many connections.
    private static func ask(_ port: Int, _ paths: [String]) async throws -> ClientBox {
        try await onThread {
            ClientBox(
                try paths.map { path in
                    let client = try PlainClient(port: port)
                    try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
                    return client
                })
        }
    }

    @Test func aThousandClientsOfAColdURLAreOneFetchAndOneRender() async throws {
        let gate = OpenSignal()
        let body = try Samples.bytes("lake.jpg")
        let origin = try ScriptedOrigin { _ in [.wait(gate)] + ScriptedOrigin.answer(body) }
        try await RunningServer.run { server in
            let source = origin.url("lake.jpg")
            let path = RunningServer.path(source, "rs:fit:120:120", as: "png")
            let clients = try await Self.ask(server.port, Array(repeating: path, count: 1_000))
            try await wait { try server.waiters(source, width: 120, height: 120, as: .png) == 1_000 }
            gate.open()
            let answers = try await onThread { try clients.answers() }
            #expect(answers.count == 1_000)
            #expect(answers.allSatisfy { $0.status == 200 && $0.body == answers[0].body })
            #expect(Set(answers.map { $0.fields["etag"] }).count == 1)
            #expect(origin.received.count == 1)
            #expect(server.renderer.pipeline.statistics.calls == 1)
            #expect(try await server.get(source, "rs:fit:120:120", as: "png").status == 200)
            #expect(origin.received.count == 1)
            #expect(server.isIdle)
        }
    }

    @Test func fiveSizesAtOnceAreOneFetchAndOneDecode() async throws {
        let gate = OpenSignal()
        let body = try Samples.bytes("lake.jpg")
        let origin = try ScriptedOrigin { _ in [.wait(gate)] + ScriptedOrigin.answer(body) }
        try await RunningServer.run { server in
            let source = origin.url("lake.jpg")
            let sizes = [60, 120, 240, 480, 600]
            let paths = sizes.map { RunningServer.path(source, "w:\($0)", as: "jpg") }
            // Ten clients of each size.
            let clients = try await Self.ask(server.port, (0..<50).map { paths[$0 % 5] })
            try await wait {
                try sizes.allSatisfy { try server.waiters(source, width: $0) == 10 }
            }
            gate.open()
            let answers = try await onThread { try clients.answers() }
            #expect(answers.allSatisfy { $0.status == 200 })
            #expect(Set(answers.compactMap { $0.fields["etag"] }).count == 5)
            #expect(origin.received.count == 1)
            #expect(server.renderer.pipeline.statistics.calls == 1)
        }
    }

    @Test(arguments: [true, false])
    func theLastClientThatLeavesStopsTheLoad(isReset: Bool) async throws {
        let origin = try ScriptedOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), .hang] }
        try await RunningServer.run { server in
            let source = origin.url("a")
            let path = RunningServer.path(source, as: "jpg")
            let patient = try await Self.ask(server.port, [path])
            let clients = try await Self.ask(server.port, Array(repeating: path, count: 20))
            try await wait { try origin.received.count == 1 && server.waiters(source) == 21 }
            if isReset { clients.resetAtEnd() }
            clients.removeAll()
            try await wait { try server.waiters(source) == 1 }
            // One client still waits.
            #expect(origin.departures == 0 && server.renderer.workCount.sources == 1)
            patient.removeAll()
            try await wait { origin.departures == 1 && server.isIdle }
            #expect(origin.connections == 1)
        }
    }

    @Test func clientsThatLeaveWhileTheyQueueGiveTheirPlacesBack() async throws {
        let gate = OpenSignal()
        let origin = try ScriptedOrigin { _ in [.wait(gate)] + ScriptedOrigin.answer([], status: 404) }
        try await RunningServer.run({
            ($0.downloads, $0.downloadsPerHost, $0.queueLimit) = (2, 2, 5)
        }) { server in
            let paths = (0..<7).map { RunningServer.path(origin.url("\($0)")) }
            let clients = try await Self.ask(server.port, paths)
            try await wait { server.renderer.admission.loads.waiting == 5 }
            let refused = try await server.get(origin.url("refused"))
            #expect(refused.status == 503 && refused.code == "overloaded")
            #expect(refused.fields["cache-control"] == "no-store")
            #expect((Int(refused.fields["retry-after"] ?? "") ?? 0) > 0)
            clients.removeAll()
            try await wait { server.isIdle }
            gate.open()
            #expect(try await server.get(origin.url("next")).status == 404)
            #expect(!origin.received.contains { $0.target == "/refused" })
        }
    }

    @Test func slowOriginsHoldNoPlaceOfARender() async throws {
        let gate = OpenSignal()
        let origin = try ScriptedOrigin { _ in [.wait(gate)] + ScriptedOrigin.answer([], status: 404) }
        try await RunningServer.run({ ($0.workers, $0.downloadsPerHost) = (1, 4) }) { server in
            let clients = try await Self.ask(server.port, (0..<20).map { RunningServer.path(origin.url("\($0)")) })
            try await wait {
                server.renderer.admission.loads.running == 4 && server.renderer.admission.loads.waiting == 16
            }
            #expect(server.renderer.admission.renders == .init())
            #expect(try await server.get("local:///lake.jpg").status == 200)
            gate.open()
            #expect(try await onThread { try clients.answers() }.allSatisfy { $0.status == 404 })
        }
    }

    @Test func datesOfSourcesReachTheClient() async throws {
        let date = "Sat, 21 Nov 2026 10:00:00 GMT"
        let body = try Samples.bytes("leaf.png")
        let origin = try ScriptedOrigin { _ in
            ScriptedOrigin.answer(body, ["Last-Modified: \(date)", "Cache-Control: max-age=60"])
        }
        let fixture = try RenderingFixture()
        for _ in 0..<2 {
            #expect(try await fixture.image(origin.url("a")) { $0.width = 20 }.image.source.lastModified == date)
        }
        #expect(origin.received.count == 1)
    }
}

extension ClientBox {
    func answers() throws -> [PlainClient.Answer] { try forEach { try $0.answer() } }
    func resetAtEnd() { _ = forEach { $0.resetAtEnd() } }
}
#endif
