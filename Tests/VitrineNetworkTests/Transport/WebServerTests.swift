#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

/// Against a server that others wrote: HTTP/2, certificates of clients, parts.
@Suite(.enabled(if: WebServer.isAvailable, "needs nginx and openssl"))
struct WebServerTests {
    private let server: WebServer

    init() async throws {
        server = try await offPool { try WebServer() }
        try server.write([1, 2, 3], to: "/ready")
        // Returns when it answers.
        let loader = makeLoader { [server] in $0.certificateAuthorities = server.certificate }
        while true {
            let error = await failure { [server] in _ = try await loader.whole(patient(server.url("/ready"))) }
            guard let error else { break }
            guard case .notConnected = error else { throw error }
        }
    }

    private func loader(_ change: (inout CurlLoader.Configuration) -> Void = { _ in }) -> CurlLoader {
        makeLoader { configuration in
            configuration.certificateAuthorities = server.certificate
            change(&configuration)
        }
    }

    // MARK: HTTP/2

    @Test func manyRequestsShareOneConnection() async throws {
        let bodies = (0..<50).map { pattern(1000 + $0 * 700) }
        for (number, body) in bodies.enumerated() { try server.write(body, to: "/\(number)") }
        let loader = loader()
        #expect(loader.supportsHTTP2)
        #expect(try await loader.whole(patient(server.url("/ready"))).0.version == .http2)
        try await withThrowingTaskGroup(of: Void.self) { [server] group in
            for (number, body) in bodies.enumerated() {
                group.addTask {
                    let (head, bytes) = try await loader.whole(patient(server.url("/\(number)")))
                    #expect(bytes == body)
                    #expect(head.version == .http2)
                    #expect(head.headers["content-length"] == "\(body.count)")
                }
            }
            try await group.waitForAll()
        }
        // Written when a request has ended, which the client may hear of first.
        var connections: Set<String> = []
        for number in bodies.indices {
            var found: [String] = []
            while found.isEmpty { found = try server.connections(for: "/\(number)") }
            connections.formUnion(found)
        }
        #expect(connections.count == 1)
    }

    @Test func aSlowReaderSlowsTheServerDown() async throws {
        let body = pattern(3_000_000)
        try server.write(body, to: "/large")
        let response = try await loader().load(patient(server.url("/large")))
        #expect(response.head.version == .http2)
        var largest = 0, bytes: [UInt8] = []
        for try await chunk in response.body {
            largest = max(largest, chunk.count)
            bytes += chunk
            await Task.yield()
        }
        #expect(bytes == body)
        #expect(largest < 1_500_000)
    }

    @Test func anUnreadBodyHoldsUpNoOther() async throws {
        try server.write(pattern(3_000_000), to: "/large")
        let loader = loader()
        let unread = try await loader.load(patient(server.url("/large")))
        for _ in 0..<5 { #expect(try await loader.whole(patient(server.url("/ready"))).1 == [1, 2, 3]) }
        #expect(try await unread.body.collect() == pattern(3_000_000))
    }

    @Test func whoPrefersHTTP1GetsIt() async throws {
        var request = patient(server.url("/ready"))
        request.prefersHTTP1 = true
        #expect(try await loader().whole(request).0.version == .http1_1)
        let old = loader { $0.allowsHTTP2 = false }
        #expect(!old.supportsHTTP2)
        #expect(try await old.whole(patient(server.url("/ready"))).0.version == .http1_1)
    }

    // MARK: Certificates of clients

    @Test func whoHasACertificateIsKnown() async throws {
        try server.write([7], to: "/known/file")
        let request = patient(server.url("/known/file"))
        #expect(try await loader().whole(request).0.status == 403)
        let plain = loader { $0.clientCertificate = .init(certificate: server.client, key: server.clientKey) }
        #expect(try await plain.whole(request).1 == [7])
        let locked = loader {
            $0.clientCertificate = .init(certificate: server.client, key: server.lockedKey, password: "secret")
        }
        #expect(try await locked.whole(request).1 == [7])
    }

    @Test func aKeyThatCannotBeReadIsAnError() async throws {
        let request = patient(server.url("/ready"))
        let certificates: [CurlLoader.ClientCertificate] = [
            .init(certificate: server.client, key: server.lockedKey, password: "wrong"),
            .init(certificate: server.client, key: server.certificate),
            .init(certificate: "/nonexistent.pem", key: server.clientKey),
        ]
        for certificate in certificates {
            let error = await failure { [self] in
                _ = try await loader { $0.clientCertificate = certificate }.whole(request)
            }
            guard case .insecure = error else { Issue.record("\(String(describing: error))"); continue }
        }
    }

    // MARK: Parts

    @Test func downloadsGoOnAndStartOver() async throws {
        let before = pattern(4_000_000), after = pattern(4_000_001).map { ~$0 }
        try server.write(before, to: "/slow/file")
        var configuration = NetworkLoader.Configuration()
        configuration.retries.limit = 0
        let loader = NetworkLoader(loader(), configuration), request = patient(server.url("/slow/file"))
        let destination = try Destination()
        for isChanged in [false, true] {
            var isWhole = true
            // Again if it was whole before it could be cancelled.
            while isWhole {
                try? FileManager.default.removeItem(atPath: destination.path)
                let progress = TransferProgress()
                let task = Task { try await loader.download(request, to: destination.path, progress: progress) }
                for await step in progress where step.received > 200_000 { break }
                task.cancel()
                isWhole = (try? await task.value) != nil
            }
            if isChanged { try server.write(after, to: "/slow/file") }
            let file = try await loader.download(request, to: destination.path)
            #expect((file.resumedLength > 200_000) == !isChanged)
            #expect(file.restarts == (isChanged ? 1 : 0))
            #expect(destination.bytes == (isChanged ? after : before))
            try FileManager.default.removeItem(atPath: destination.path)
        }
    }
}
#endif
