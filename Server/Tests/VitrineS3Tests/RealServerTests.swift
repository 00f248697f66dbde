import Foundation
import ServerTestSupport
import Synchronization
import Testing
import VitrineCore
import VitrineNetwork
import VitrineS3
import VitrineStores

/// The client with real servers, which are started on loopback where their Debian packages are installed.
@Suite(.serialized)
struct RealServerTests {
    enum Kind: String, CaseIterable, Sendable {
        case openstackSwift = "openstack-swift"
        case radosgw

        private var programs: [String] {
            switch self {
            case .openstackSwift: ["swift-proxy-server", "swift-object-server", "swift-ring-builder", "memcached"]
            case .radosgw: ["radosgw", "ceph-mon", "ceph-osd", "ceph-mgr", "ceph-authtool"]
            }
        }

        var isInstalled: Bool {
            getuid() == 0 && programs.allSatisfy { FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0) }
        }
    }

    private struct Failure: Error {
        let log: String
    }

    /// Starts a server, runs a test and ends the server.
    private static func run(
        _ kind: Kind, _ body: (@escaping @Sendable (String) throws -> S3Client) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("s3-\(UUID())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("s3-servers/serve")
        let program = try Program(script.path, [kind.rawValue, directory.path])
        let result = await Self.result { try await use(program, body) }
        // The end of its input ends the server.
        program.closeInput()
        await program.waitUntilEnd()
        try result.get()
    }

    private static func result(_ body: () async throws -> Void) async -> Result<Void, any Error> {
        do { return .success(try await body()) } catch { return .failure(error) }
    }

    private static func use(
        _ program: Program, _ body: (@escaping @Sendable (String) throws -> S3Client) async throws -> Void
    ) async throws {
        _ = await program.hasSaid("\n")
        let line = program.output
        let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        guard words.count == 4, words[0] == "ready" else { throw Failure(log: line) }
        try await body { secret in
            var configuration = S3Client.Configuration()
            configuration.endpoint = words[1]
            configuration.partSize = .mebibytes(5)
            configuration.credentials = .fixed(
                S3Credentials(accessKey: words[2], secretKey: secret.isEmpty ? words[3] : secret))
            return try S3Client(configuration)
        }
    }

    @Test(
        "OpenStack Swift serves all calls",
        .enabled(if: Kind.openstackSwift.isInstalled, "needs root and swift-proxy, swift-object and others of Debian"))
    func openStackSwiftServesAllCalls() async throws {
        try await Self.run(.openstackSwift) { try await Self.check($0, hasConditions: false) }
    }

    @Test(
        "The gateway of Ceph serves all calls",
        .enabled(if: Kind.radosgw.isInstalled, "needs root and radosgw, ceph-mon, ceph-osd and ceph-mgr of Debian"))
    func cephServesAllCalls() async throws {
        try await Self.run(.radosgw) { try await Self.check($0, hasConditions: true) }
    }

    private static func check(
        _ client: @escaping @Sendable (String) throws -> S3Client, hasConditions: Bool
    ) async throws {
        let bucket = try client("").bucket("pictures")
        try await bucket.create()
        try await checkObjects(bucket)
        try await checkConditions(bucket, hasConditions)
        try await checkUploads(bucket)
        try await checkUses(bucket)
        let wrong = try client("wrong").bucket("pictures")
        let error = await failure { try await wrong.get("a") }
        guard case .denied(_, "SignatureDoesNotMatch", _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    private static func checkObjects(_ bucket: S3Bucket) async throws {
        let keys = [
            "a", "a/b/c.jpeg", "with space", "plus+and%41percent", "Änderung/日本.png", "quote\"'<&>;:@=,?#", "tilde~",
            "(*)!$"
        ]
        for key in keys {
            let bytes = Array("bytes of \(key)".utf8)
            try await bucket.put(bytes, as: key, type: "image/jpeg", metadata: ["colour": "sea green"])
            #expect(try await bucket.get(key).bytes == bytes)
            let object = try await bucket.head(key)
            #expect(object.size == bytes.count && object.contentType == "image/jpeg")
            #expect(object.metadata["colour"] == "sea green")
            #expect((object.lastModified ?? .zero) > .seconds(1_700_000_000))
        }
        var listed: [String] = []
        for try await object in bucket.list() { listed.append(object.key) }
        #expect(listed.sorted() == keys.sorted())
        let page = try await bucket.page(prefix: "a", delimiter: "/", count: 1)
        #expect(page.objects.map(\.key) == ["a"] && page.next != nil)
        let rest = try await bucket.page(prefix: "a", delimiter: "/", after: page.next, count: 1)
        #expect(rest.objects.isEmpty && rest.prefixes == ["a/"])
        #expect(try await bucket.get("a", range: 2..<5).bytes == Array("tes".utf8))
        guard case .invalidRange = await failure({ try await bucket.get("a", range: 100..<200) }) else {
            Issue.record("A part beyond the end is no error")
            return
        }
        let tag = try #require(try await bucket.head("a").entityTag)
        #expect(try await bucket.get("a", unless: tag) == nil)
        #expect(try await bucket.get("a", unless: "\"other\"")?.bytes == Array("bytes of a".utf8))
        let url = try await bucket.presignedURL(for: "quote\"'<&>;:@=,?#", expiresIn: .seconds(60))
        let presigned = try await NetworkLoader().load(HTTPRequest(url: url)).body.collect()
        #expect(presigned == Array("bytes of quote\"'<&>;:@=,?#".utf8))
        for key in keys { try await bucket.delete(key) }
        guard case .notFound = await failure({ try await bucket.get("a") }) else {
            Issue.record("A deleted object is not missing")
            return
        }
        let missing = await failure { try await bucket.client.bucket("missing-bucket").get("a") }
        guard case .noBucket = missing else {
            Issue.record("A missing bucket is not missing: \(String(describing: missing))")
            return
        }
    }

    private static func checkConditions(_ bucket: S3Bucket, _ hasConditions: Bool) async throws {
        let first = await failure { try await bucket.put([1], as: "once", replacing: false) }
        let second = await failure { try await bucket.put([2], as: "once", replacing: false) }
        switch (hasConditions, first, second) {
        case (true, nil, .alreadyExists), (false, .notSupported, .notSupported): break
        default: Issue.record("\(String(describing: first)), \(String(describing: second))")
        }
        let store = S3FileStore(bucket, prefix: "exclusive")
        try await store.save([1], as: "a", replacing: false)
        let third = await failure { try await store.save([2], as: "a", replacing: false) }
        guard case .alreadyExists = third else {
            Issue.record("\(String(describing: third))")
            return
        }
    }

    private static func checkUploads(_ bucket: S3Bucket) async throws {
        var random = SeededGenerator(state: 1)
        let bytes = (0..<(12 << 20)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        let stream = AsyncStream { continuation in
            for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
                continuation.yield(Array(bytes[start..<(start + 1 << 20)]))
            }
            continuation.finish()
        }
        #expect(try await bucket.put(chunks: stream, as: "large ä", type: "image/tiff") == bytes.count)
        #expect(try await bucket.get("large ä").bytes == bytes)
        #expect(try await bucket.head("large ä").contentType == "image/tiff")
        var loaded: [UInt8] = []
        for try await chunk in bucket.chunks(of: "large ä", size: .mebibytes(5)) { loaded += chunk }
        #expect(loaded == bytes)
        struct Failure: Error {}
        let failing = AsyncThrowingStream<[UInt8], any Error> { continuation in
            for _ in 0..<11 { continuation.yield([UInt8](repeating: 1, count: 1 << 20)) }
            continuation.finish(throwing: Failure())
        }
        await #expect(throws: Failure.self) { try await bucket.put(chunks: failing, as: "aborted") }
        #expect(try await !S3FileStore(bucket).exists("aborted"))
    }

    private static func checkUses(_ bucket: S3Bucket) async throws {
        let results = S3ResultStore(bucket)
        let entry = S3ResultStore.Entry(
            bytes: [1, 2, 3], contentType: "image/webp", created: .milliseconds(1_700_000_000_123))
        #expect(try await results.get("k") == nil)
        try await results.put(entry, for: "k")
        #expect(try await results.get("k") == entry)
        let files = S3FileStore(bucket, prefix: "letters")
        try await files.save([1, 2], as: "Änderung.txt")
        try await files.rename("Änderung.txt", to: "neu +.txt")
        #expect(try await files.names == ["neu +.txt"])
        let source = S3Source(buckets: ["p": bucket])
        let original = try #require(try await source.load("s3://p/letters/neu%20+.txt"))
        #expect(original.bytes == [1, 2])
        #expect(try await source.load("s3://p/letters/neu +.txt", unless: original.version) == nil)
        #expect(try await files.delete("neu +.txt"))
        let directory = FileStore(.root(NSTemporaryDirectory() + "vitrine-s3-real-" + UUID().uuidString), path: [])
        try await directory.save([3], as: "ä")
        try await directory.save([], as: "empty")
        #expect(try await directory.copyFiles(to: files) == ["empty", "ä"])
        #expect(try await directory.copyFiles(to: files) == [])
        #expect(try await files.load("ä") == [3])
        let back = FileStore(.root(directory.directory + "-back"), path: [])
        #expect(try await files.copyFiles(to: back) == ["empty", "ä"])
        #expect(try await back.load("empty") == [])
    }
}
