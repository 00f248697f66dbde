import Foundation
import HTTPTypes
import NIOCore
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork

import VitrineServer

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Which sources are loaded, and which are not.
@Suite struct RenderingSourceTests {
    @Test(arguments: [
        "file:///etc/passwd", "FILE:///etc/passwd", "file:/etc/passwd", "ftp://127.0.0.1/a", "gopher://127.0.0.1/",
        "javascript:alert(1)", "ws://127.0.0.1/", "blob:x", "about:blank", "s3://bucket/key", "vitrine:x",
        "lake.jpg", "/etc/passwd", "//127.0.0.1/a", "", "http:", "http://", "https:///x", "http:// /", "\u{0}", ":",
        "http://exa\nmple.org/", "local://host/lake.jpg", "local:lake.jpg", "local:/lake.jpg", "data:text",
        "data:image/png;base64,!!", "data:image/png;base64,", "data:,%zz", "data:,%4",
    ])
    func foreignAddressesAreRefused(address: String) async throws {
        let fixture = try RenderingFixture()
        let error = await fixture.error(address)
        #expect(error?.status == 400, "\(address): \(String(describing: error))")
        if address.utf8.count > 6 { #expect(error?.reason.contains(address) == false) }
    }

    @Test(arguments: [
        "local:///../Package.swift", "local:///a/../../Package.swift", "local:///%2e%2e/Package.swift",
        "local:///..%2fPackage.swift", "local:///./lake.jpg", "local:///lake.jpg%00.png",
        "local:///%2e/lake.jpg", "local:///..", "local:///a/..%00",
    ])
    func pathsDoNotLeaveTheRoot(address: String) async throws {
        let fixture = try RenderingFixture()
        #expect(await fixture.error(address)?.status == 400)
    }

    @Test func linksAreNotFollowed() async throws {
        let fixture = try RenderingFixture()
        let root = fixture.root + "/local", outside = fixture.root + "/outside"
        let files = FileManager.default
        for folder in [root + "/inside", outside] {
            try files.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        for file in [outside + "/secret.jpg", root + "/inside/own.jpg"] {
            try Data(Samples.bytes("lake.jpg")).write(to: URL(filePath: file))
        }
        try files.createSymbolicLink(atPath: root + "/file.jpg", withDestinationPath: outside + "/secret.jpg")
        try files.createSymbolicLink(atPath: root + "/folder", withDestinationPath: outside)
        try files.createSymbolicLink(atPath: root + "/up", withDestinationPath: "..")
        try files.createSymbolicLink(atPath: fixture.root + "/root", withDestinationPath: root)
        #expect(mkfifo(root + "/pipe", 0o600) == 0)
        let own = try RenderingFixture { $0.sources.localRoot = fixture.root + "/root" }
        for name in [
            "file.jpg", "folder/secret.jpg", "up/outside/secret.jpg", "pipe", "inside", "absent", "inside/own.jpg/x",
            "inside/", String(repeating: "a", count: 300), "",
        ] {
            #expect(await own.error("local:///" + name)?.status == 404, "\(name)")
        }
        #expect(try await own.image("local:///inside/own.jpg").image.size == PixelSize(width: 1_800, height: 1_200))
        #expect(try await own.image("local:////inside//own%2Ejpg?x#y").image.format == .jpeg)
    }

    @Test func namesArePercentDecodedOnce() async throws {
        let fixture = try RenderingFixture()
        let root = fixture.root + "/local"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for name in ["ein see.png", "100%25.png", "50%.png", "sée.png"] {
            try Data(Samples.bytes("leaf.png")).write(to: URL(filePath: root + "/" + name))
        }
        let own = try RenderingFixture { $0.sources.localRoot = root }
        for address in [
            "ein%20see.png", "ein see.png", "100%2525.png", "50%.png", "50%25.png", "s%C3%A9e.png", "sée.png",
        ] {
            #expect(try await own.image("local:///" + address).image.format == .png, "\(address)")
        }
        // A sign that is no escape is a part of the name.
        #expect(await own.error("local:///%")?.status == 404)
    }

    @Test func sourcesMayBeTurnedOff() async throws {
        let fixture = try RenderingFixture { configuration in
            configuration.sources.localRoot = nil
            configuration.sources.allowsData = false
        }
        for address in ["local:///lake.jpg", "data:,x"] {
            #expect(await fixture.error(address)?.status == 403)
            #expect(await fixture.error(address)?.code == "source-not-allowed")
        }
    }

    @Test func privateAddressesAreRefusedByDefault() async throws {
        let origin = try await Origin.samples()
        let fixture = try RenderingFixture { $0.sources.policy = SourceTable.Configuration().policy }
        for host in [
            "127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]",
        ] {
            let error = await fixture.error("http://\(host):\(origin.port)/lake.jpg")
            #expect([400, 403, 502].contains(error?.status ?? 200), "\(host): \(String(describing: error))")
        }
        #expect(origin.requests.isEmpty)
    }

    @Test func redirectsAreCheckedAsWell() async throws {
        let elsewhere = try await Origin.samples()
        let target = elsewhere.url("lake.jpg")
        let origin = try await Origin.start { request in
            switch request.path {
            case "/file": .init(status: 302, headers: [("Location", "file:///etc/passwd")])
            case "/local": .init(status: 302, headers: [("Location", "local:///lake.jpg")])
            case "/loop": .init(status: 302, headers: [("Location", "/loop")])
            default: .init(status: 302, headers: [("Location", target)])
            }
        }
        let allowed = origin.port
        let strict = try RenderingFixture { $0.sources.policy.ports = [allowed] }
        #expect(await strict.error(origin.url("x"))?.status == 403)
        #expect(elsewhere.requests.isEmpty)
        let fixture = try RenderingFixture()
        for path in ["file", "local"] {
            let status = await fixture.error(origin.url(path))?.status ?? 200
            #expect([400, 403, 502].contains(status), "\(path): \(status)")
        }
        #expect(await fixture.error(origin.url("loop"))?.code == "source-redirects")
        #expect(try await fixture.image(origin.url("x")).image.format == .jpeg)
    }

    @Test func onlyAllowedAddressesAreLoaded() async throws {
        let origin = try await Origin.samples()
        let port = origin.port
        let fixture = try RenderingFixture { configuration in
            configuration.sources.allowedPrefixes = ["http://127.0.0.1:\(port)/lake", "local:///moon"]
        }
        #expect(try await fixture.image(origin.url("lake.jpg")).image.format == .jpeg)
        #expect(try await fixture.image("local:///moon.gif").image.format == .gif)
        for address in [
            origin.url("leaf.png"), "http://127.0.0.1:\(port)0/lake.jpg", "http://127.0.0.1/lake.jpg",
            "https://127.0.0.1:\(port)/lake.jpg", "http://127.0.0.1:\(port)@example.org/lake.jpg", "data:,x",
            "http://127.0.0.1.example.org:\(port)/lake.jpg", "local:///lake.jpg", origin.url("lake/../leaf.png"),
            origin.url("lake/%2e%2e/leaf.png"), origin.url("lake/..%2fleaf.png"),
        ] {
            #expect(await fixture.error(address)?.status == 403, "\(address)")
        }
        #expect(origin.requests.map(\.path) == ["/lake.jpg"])
    }

    @Test func relativeSourcesAreCompleted() async throws {
        let origin = try await Origin.samples()
        let base = origin.url("")
        let fixture = try RenderingFixture { $0.sources.baseURL = base }
        #expect(try await fixture.image("lake.jpg") { $0.width = 10 }.image.format == .jpeg)
        #expect(try await fixture.image("local:///leaf.png").image.format == .png)
        let error = await fixture.error("absent.jpg")
        #expect(error?.status == 404)
        #expect(error?.reason.contains("127.0.0.1") == false)
        #expect(await fixture.error("file:///etc/passwd")?.status == 400)
    }

    @Test func hostsGetTheirOwnHeaders() async throws {
        let body = try Samples.bytes("leaf.png")
        let origin = try await Origin.start { request in
            request.headers[.authorization] == "Bearer secret"
                ? .init(headers: [("Cache-Control", "private, max-age=60")], body: body) : .init(status: 401)
        }
        let fixture = try RenderingFixture { configuration in
            configuration.sources.hostRules = [
                .init(host: "127.0.0.1", headers: [("Authorization", "Bearer secret")]),
                .init(host: "*.example.org", headers: [("Authorization", "Bearer other")]),
            ]
            configuration.sources.headers = [("X-Server", "vitrine")]
        }
        for width in [10, 20] { _ = try await fixture.image(origin.url("a")) { $0.width = width } }
        // The operator shows what the credentials give: it may be kept.
        #expect(origin.requests.count == 1)
        #expect(origin.requests[0].headers[.init("X-Server")!] == "vitrine")
        let other = try RenderingFixture()
        let error = await other.error(origin.url("a"))
        #expect(error?.code == "source-denied")
        #expect(error?.status == 502)
    }

    @Test func dataURLsAreDecoded() async throws {
        let fixture = try RenderingFixture()
        let base64 = Data(try Samples.bytes("leaf.png")).base64EncodedString()
        let plain = try await fixture.image("data:image/png;base64," + base64)
        #expect(plain.image.format == .png)
        #expect(plain.image.size == PixelSize(320))
        let svg = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='10' height='20'/%3E"
        #expect(try await fixture.image(svg).image.size == PixelSize(width: 10, height: 20))
        #expect(await fixture.error("data:,words")?.status == 422)
    }

    @Test func versionsDifferWithTheContent() {
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0) }
        var versions = Set([[], [0], [0, 0]].map { ContentVersion.text(of: $0) })
        for index in [0, 15, 16, 500, 991, 999] {
            var changed = bytes
            changed[index] ^= 1
            versions.insert(ContentVersion.text(of: changed))
        }
        versions.insert(ContentVersion.text(of: bytes))
        #expect(versions.count == 10)
        #expect(ContentVersion.text(of: bytes) == ContentVersion.text(of: bytes))
    }

    #if os(Linux)
    /// The result on disk, as soon as it is read without waiting. That may need a connection, which another thread
    /// opens, and a read that waits, if the last one was some time ago.
    private static func read(
        _ backend: ServerBackend, _ plan: ServerBackend.Plan
    ) async throws -> (head: ImageResult, bytes: ByteBuffer) {
        while true {
            _ = try await backend.renderer.results.count()
            if let found = backend.resultOnDisk(for: plan, format: .byURL) { return found }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Results of the disk that are read without a wait: as long as the file counts as unchanged.
    @Test func resultsOnDiskAreFreshAsLongAsTheirFile() async throws {
        let files = try TemporaryDirectory()
        func write(_ sample: String) throws {
            try Data(try Samples.bytes(sample)).write(to: URL(filePath: files.path + "/photo.jpg"), options: .atomic)
        }
        try write("lake.jpg")
        let fixture = try RenderingFixture { configuration in
            configuration.resultMemory = 0
            configuration.sources.localRoot = files.path
        }
        let backend = try ServerBackend(ServerConfiguration(), fixture.renderer)
        let source = "local:///photo.jpg"
        let plan = backend.plan(for: RenderingFixture.url(source) { $0.width = 60 })
        let larger = backend.plan(for: RenderingFixture.url(source) { $0.width = 80 })
        func found(_ plan: ServerBackend.Plan) -> (head: ImageResult, bytes: ByteBuffer)? {
            backend.resultOnDisk(for: plan, format: .byURL)
        }
        func image(_ width: Int = 60) async throws -> RenderedImage {
            let image = try await fixture.image(source) { $0.width = width }.image
            try await fixture.renderer.results.flush()
            return image
        }

        let made = try await image()
        _ = try await image(80)
        let first = try await Self.read(backend, plan), second = try await Self.read(backend, plan)
        #expect(first.bytes == made.bytes && first.head.count == made.bytes.readableBytes)
            #expect(
                "\"\(first.head.metadata.entityTag)\"" == made.entityTag
                    && first.head.metadata.mediaType == made.mediaType)
        #expect(first.head === second.head)
        fixture.clock.advance(by: .seconds(2))
        #expect(found(plan) == nil && found(larger) == nil)
        // One look at the file is enough for all its results.
        #expect(try await image().entityTag == made.entityTag)
        #expect(try await Self.read(backend, plan).bytes == made.bytes)
        #expect(try await Self.read(backend, larger).bytes != made.bytes)
        try write("lake-grey.jpg")
        #expect(try await Self.read(backend, plan).bytes == made.bytes)
        fixture.clock.advance(by: .seconds(2))
        #expect(found(plan) == nil)
        let new = try await image()
        #expect(new.entityTag != made.entityTag)
        #expect(try await Self.read(backend, plan).bytes == new.bytes)
        // The other size was made of the file before.
        #expect(found(larger) == nil)
        _ = try await fixture.renderer.purge(source: source)
        #expect(found(plan) == nil)
        fixture.clock.advance(by: .seconds(-3_600))
        #expect(found(plan) == nil)
    }

    /// Results of the disk enter memory when they are read.
    @Test func resultsOnDiskArePromoted() async throws {
        let origin = try await Origin.samples()
        let fixture = try RenderingFixture { $0.resultMemory = .megabytes(10) }
        let backend = try ServerBackend(ServerConfiguration(), fixture.renderer)
        let plan = backend.plan(for: RenderingFixture.url(origin.url("lake.jpg")) { $0.width = 60 })
        let made = try await fixture.image(origin.url("lake.jpg")) { $0.width = 60 }.image
        try await fixture.renderer.results.flush()
        _ = try await Self.read(backend, plan)
        fixture.renderer.results.memoryCapacity = 0
        fixture.renderer.results.memoryCapacity = .megabytes(10)
        #expect(backend.resultInMemory(for: plan, format: .byURL) == nil)
        #expect(try await Self.read(backend, plan).bytes == made.bytes)
        let kept = try #require(backend.resultInMemory(for: plan, format: .byURL))
        #expect(kept.bytes == made.bytes && "\"\(kept.metadata.entityTag)\"" == made.entityTag)
        // Results of the web live as long as their response says.
        fixture.clock.advance(by: .seconds(3_700))
        #expect(backend.resultInMemory(for: plan, format: .byURL) == nil)
        #expect(backend.resultOnDisk(for: plan, format: .byURL) == nil)
        #expect(origin.requests.count == 1)
    }
    #endif
}
