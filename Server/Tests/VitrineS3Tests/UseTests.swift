import Foundation
import Testing
import VitrineCore
import VitrineNetwork
import VitrineS3
import VitrineStores

/// Sources, results and files in a bucket.
struct UseTests {
    // MARK: Sources

    @Test("Addresses are loaded from the buckets of the table, and not again while they are unchanged")
    func addressesAreLoaded() async throws {
        try await FakeS3.run { fake, bucket async throws in
            let source = S3Source(buckets: ["p": bucket, "q": bucket])
            fake["a b/ä?.jpeg"] = .init([1, 2], type: "image/jpeg")
            let original = try #require(try await source.load("S3://p/a%20b/%C3%A4%3F.jpeg"))
            #expect(original.bytes == [1, 2] && original.contentType == "image/jpeg")
            #expect(original.lastModified == "Mon, 12 Oct 2009 17:50:30 GMT")
            #expect(try await source.load("s3://q/a b/ä%3F.jpeg", unless: original.version) == nil)
            fake["a b/ä?.jpeg"] = .init([3])
            #expect(try await source.load("s3://p/a b/ä%3F.jpeg", unless: original.version)?.bytes == [3])
        }
    }

    @Test(
        "Malformed addresses and other buckets are refused before a request",
        arguments: [
            "", "s3:", "s3://", "s3://p", "s3://p/", "s3:///a", "s3://other/a", "http://p/a", "s3://p/a?b",
            "s3://p/a#b",
            "s3://p/%", "s3://p/%FF", "s3://p/../a", "s3://p/%2e%2e/a", "s3://p/a%00", "s3://u@p/a", "s3://p:80/a",
            "s3://P/a"
        ])
    func badAddressesAreRefused(address: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            let error = await failure { try await S3Source(buckets: ["p": bucket]).load(address) }
            guard case .invalidName = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fake.count == 0)
        }
    }

    @Test("Changed addresses are parsed or refused")
    func changedAddressesDoNotTrap() async throws {
        try await FakeS3.run { _, bucket async throws in
            let source = S3Source(buckets: ["p": bucket])
            var random = SeededGenerator(state: 3)
            var accepted = 0
            for _ in 0..<5_000 {
                var bytes = Array("s3://p/a%20b/c.jpeg".utf8)
                for _ in 0..<2 {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...0xFF, using: &random)
                }
                if (try? source.place(String(decoding: bytes, as: UTF8.self))) != nil { accepted += 1 }
            }
            #expect(accepted > 500 && accepted < 5_000)
        }
    }

    @Test("Compressed objects are decoded, and the limit holds behind the decoding")
    func compressedObjectsAreDecoded() async throws {
        try await FakeS3.run { fake, bucket async throws in
            // "hello" by gzip(1).
            let packed = try #require(Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA=="))
            fake.script { _, _ in .init(200, [("Content-Encoding", "gzip"), ("ETag", "\"x\"")], [UInt8](packed)) }
            #expect(try await S3Source(buckets: ["p": bucket]).load("s3://p/a")?.bytes == Array("hello".utf8))
            let error = await failure { try await S3Source(buckets: ["p": bucket], maximumBytes: 4).load("s3://p/a") }
            guard case .tooLarge = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("A loader loads s3 URLs with ranges, conditions and statuses")
    func loadersLoadAddresses() async throws {
        try await FakeS3.run { fake, bucket async throws in
            let loader = NetworkLoader()
            loader.register(S3Source(buckets: ["p": bucket]), for: "s3")
            fake["a"] = .init(Array(0..<100), type: "image/png")
            var request = HTTPRequest(url: try #require(URL(string: "s3://p/a")))
            let whole = try await loader.load(request)
            #expect(whole.head.contentType == "image/png" && whole.head.url == request.url)
            #expect(try await whole.body.collect() == Array(0..<100))
            request.headers["If-None-Match"] = whole.head.headers["ETag"]
            #expect(try await loader.load(request).head.status == 304)
            request.headers["If-None-Match"] = nil
            request.range = 10..<20
            request.ifRange = whole.head.headers["ETag"]
            let part = try await loader.load(request)
            #expect(part.head.status == 206)
            #expect(try await part.body.collect() == Array(10..<20))
            request.ifRange = "\"old\""
            #expect(try await loader.load(request).body.collect() == Array(0..<100))
            request = HTTPRequest(url: request.url, method: "HEAD")
            #expect(try await loader.load(request).head.contentLength == 100)
            for (url, status) in [("s3://p/none", 404), ("s3://p/secret", 403)] {
                fake.script { request, _ in
                    request.target.hasSuffix("secret") ? FakeS3.error(403, "AccessDenied") : nil
                }
                let request = HTTPRequest(url: try #require(URL(string: url)))
                do throws(NetworkError) {
                    _ = try await loader.load(request)
                    Issue.record("\(url) was loaded")
                } catch {
                    guard case .status(_, let head) = error else {
                        Issue.record("\(error)")
                        continue
                    }
                    #expect(head.status == status)
                }
            }
            await #expect(throws: NetworkError.self) {
                try await loader.load(HTTPRequest(url: request.url, method: "DELETE"))
            }
            #expect(fake["a"] != nil)
        }
    }

    // MARK: Results

    private static let entry = S3ResultStore.Entry(
        bytes: [1, 2, 3], contentType: "image/webp", created: .milliseconds(1_700_000_000_123))

    @Test("Results are stored with their type and time under names that hide the key")
    func resultsRoundTrip() async throws {
        try await FakeS3.run { fake, bucket async throws in
            let store = S3ResultStore(bucket)
            #expect(try await store.get("https://secret@example.org/a") == nil)
            try await store.put(Self.entry, for: "https://secret@example.org/a")
            #expect(try await store.get("https://secret@example.org/a") == Self.entry)
            #expect(try await store.get("another") == nil)
            #expect(fake.log.allSatisfy { !$0.contains("secret") && $0.contains("/pictures/results/") })
            try await store.remove("https://secret@example.org/a")
            #expect(try await store.get("https://secret@example.org/a") == nil)
            let empty = S3ResultStore.Entry(bytes: [], contentType: "image/png", created: .seconds(-1))
            try await store.put(empty, for: "")
            #expect(try await store.get("") == empty)
        }
    }

    @Test("Results that were damaged, moved, or written by others are errors")
    func foreignResultsAreErrors() async throws {
        try await FakeS3.run { fake, bucket async throws in
            let store = S3ResultStore(bucket)
            try await store.put(Self.entry, for: "a")
            let name = store.objectName(of: "a")
            let good = try #require(fake[name])
            let changes: [(inout FakeS3.Stored) -> Void] = [
                { $0.bytes[1] = 9 }, { $0.bytes.removeLast() }, { $0.type = "text/html" }, { $0.metadata = [] },
                { object in
                    for index in object.metadata.indices where object.metadata[index].name.hasSuffix("created") {
                        object.metadata[index].value += "0"
                    }
                },
                { object in
                    for index in object.metadata.indices where object.metadata[index].name.hasSuffix("format") {
                        object.metadata[index].value = "2"
                    }
                },
                { object in object.metadata.removeAll { $0.name.hasSuffix("sha256") } }
            ]
            for (number, change) in changes.enumerated() {
                var object = good
                change(&object)
                fake[name] = object
                let error = await failure { try await store.get("a") }
                guard case .damaged = error else {
                    Issue.record("\(number): \(String(describing: error))")
                    continue
                }
            }
            // The object of another key.
            fake[store.objectName(of: "b")] = good
            let error = await failure { try await store.get("b") }
            guard case .damaged = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("Results beyond the limit are refused")
    func largeResultsAreRefused() async throws {
        try await FakeS3.run { fake, bucket async throws in
            let error = await failure { try await S3ResultStore(bucket, maximumBytes: 2).put(Self.entry, for: "a") }
            guard case .tooLarge = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fake.count == 0)
        }
    }

    // MARK: Files

    @Test("Files are saved, listed, renamed and deleted", arguments: ["", "letters", "a/b/"])
    func filesRoundTrip(prefix: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            let store = S3FileStore(bucket, prefix: prefix)
            fake.set { $0.pageSize = 2 }
            try await store.save([1], as: "Änderung.txt")
            try await store.save([2], as: "b c+")
            try await store.save([3], as: "z")
            // Neither files of directories below nor the directory itself belong to the store.
            fake[(prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/") + "below/x"] = .init([9])
            #expect(try await store.names == ["b c+", "z", "Änderung.txt"])
            #expect(try await store.list().map(\.size) == [1, 1, 1])
            #expect(try await store.load("Änderung.txt") == [1])
            #expect(try await store.exists("z"))
            #expect(try await !store.exists("y"))
            #expect(try await !store.exists("a/b"))
            let taken = await failure { try await store.save([4], as: "z", replacing: false) }
            let renamed = await failure { try await store.rename("z", to: "b c+") }
            for error in [taken, renamed] {
                guard case .alreadyExists = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
            try await store.rename("z", to: "y")
            try await store.rename("y", to: "b c+", replacing: true)
            try await store.rename("b c+", to: "b c+")
            #expect(try await store.load("b c+") == [3])
            #expect(try await store.names == ["b c+", "Änderung.txt"])
            #expect(try await store.delete("b c+"))
            #expect(try await !store.delete("b c+"))
            for error in [
                await failure { try await store.load("b c+") }, await failure { try await store.rename("x", to: "w") },
                await failure { try await store.rename("x", to: "x") }
            ] {
                guard case .notFound = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
        }
    }

    /// The calls of an application that keeps files in any store.
    private static func keepLetters(in store: some FileStoring) async throws {
        try await store.save([1, 2], as: "ä.txt", replacing: false)
        do {
            try await store.save([3], as: "ä.txt", replacing: false)
            Issue.record("A file was replaced")
        } catch {
            #expect(error.isExistingFile && !error.isMissingFile)
        }
        do {
            _ = try await store.load("missing")
            Issue.record("A missing file was loaded")
        } catch {
            #expect(error.isMissingFile && !error.isExistingFile)
        }
        try await store.rename("ä.txt", to: "b.txt", replacing: false)
        var loaded: [UInt8] = []
        for try await chunk in try await store.chunks(of: "b.txt", size: 1) {
            #expect(chunk.count == 1)
            loaded += chunk
        }
        #expect(loaded == [1, 2])
        try await store.save(chunks: AsyncStream { _ = $0.yield([9]); $0.finish() }, as: "c.txt", replacing: true)
        #expect(try await store.names == ["b.txt", "c.txt"])
        #expect(try await store.delete("c.txt"))
        #expect(try await !store.exists("c.txt"))
    }

    @Test("One code keeps files in a directory and in a bucket")
    func directoriesAndBucketsAreAlike() async throws {
        try await Self.keepLetters(in: Self.directoryStore())
        try await FakeS3.run { _, bucket async throws in
            try await Self.keepLetters(in: S3FileStore(bucket, prefix: "letters"))
        }
    }

    private static func directoryStore() -> FileStore {
        FileStore(.root(NSTemporaryDirectory() + "vitrine-s3-files-" + UUID().uuidString), path: [])
    }

    @Test("Files are copied from a directory into a bucket, and back, without those that are there")
    func filesAreCopiedBetweenStores() async throws {
        try await FakeS3.run { fake, bucket async throws in
            let (directory, store) = (Self.directoryStore(), S3FileStore(bucket, prefix: "p"))
            for name in ["a", "ü +", "c"] { try await directory.save(Array(name.utf8), as: name) }
            try await store.save([0], as: "c")
            #expect(try await directory.copyFiles(to: store) == ["a", "ü +"])
            #expect(try await directory.copyFiles(to: store) == [])
            #expect(try await store.load("ü +") == Array("ü +".utf8))
            #expect(try await store.load("c") == [0])
            #expect(try await directory.copyFiles(to: store, replacing: true) == ["a", "c", "ü +"])
            #expect(try await store.load("c") == Array("c".utf8))
            let other = Self.directoryStore()
            #expect(try await store.copyFiles(to: other) == ["a", "c", "ü +"])
            #expect(try await other.load("ü +") == Array("ü +".utf8))
            // The error of a store ends the copy.
            fake.script { _, _ in FakeS3.error(403, "AccessDenied") }
            await #expect(throws: S3Error.self) { try await store.copyFiles(to: Self.directoryStore()) }
        }
    }

    @Test("Files are saved and loaded in chunks")
    func filesAreSavedInChunks() async throws {
        try await FakeS3.run { configuration, _ in
            configuration.partSize = 100
        } _: { fake, bucket async throws in
            let store = S3FileStore(bucket)
            let bytes = (0..<1_234).map { UInt8(truncatingIfNeeded: $0) }
            func chunks() -> AsyncStream<[UInt8]> {
                AsyncStream { continuation in
                    for start in stride(from: 0, to: bytes.count, by: 50) {
                        continuation.yield(Array(bytes[start..<min(bytes.count, start + 50)]))
                    }
                    continuation.finish()
                }
            }
            #expect(try await store.save(chunks: chunks(), as: "a") == bytes.count)
            var loaded: [UInt8] = []
            for try await chunk in try store.chunks(of: "a", size: 1_000) { loaded += chunk }
            #expect(loaded == bytes)
            await #expect(throws: S3Error.self) { try await store.save(chunks: chunks(), as: "a", replacing: false) }
            #expect(try await store.save(chunks: chunks(), as: "b", replacing: false) == bytes.count)
        }
    }

    @Test("Saves that must not replace work without conditional writes too")
    func savesWorkWithoutConditions() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.hasConditions = false
            let store = S3FileStore(bucket)
            try await store.save([1], as: "a", replacing: false)
            let error = await failure { try await store.save([2], as: "a", replacing: false) }
            guard case .alreadyExists = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(try await store.load("a") == [1])
        }
    }

    @Test("New names are unique and sort by time")
    func newNamesAreUnique() async throws {
        try await FakeS3.run { _, bucket async throws in
            let store = S3FileStore(bucket)
            var names: [String] = []
            for number in 0..<10 { names.append(try await store.save([UInt8(number)], fileExtension: "png")) }
            #expect(Set(names).count == 10 && names == names.sorted())
            #expect(names.allSatisfy { $0.hasSuffix(".png") })
            #expect(try await store.load(names[3]) == [3])
        }
    }

    @Test(
        "Names that are paths are refused",
        arguments: ["", ".", "..", "a/b", "a\u{0}", String(repeating: "a", count: 256)])
    func badNamesAreRefused(name: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            let store = S3FileStore(bucket)
            for error in [
                await failure { try await store.save([], as: name) }, await failure { try await store.load(name) },
                await failure { try await store.delete(name) }, await failure { try await store.rename("a", to: name) }
            ] {
                guard case .invalidName = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
            #expect(fake.count == 0)
        }
    }
}
