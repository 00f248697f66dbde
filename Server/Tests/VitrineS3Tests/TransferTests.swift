import Foundation
import Testing
import VitrineCore
import VitrineNetwork
import VitrineS3

/// Uploads in parts, and listings.
struct TransferTests {
    private static func chunks(_ bytes: [UInt8], of size: Int) -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            for start in stride(from: 0, to: bytes.count, by: size) {
                continuation.yield(Array(bytes[start..<min(bytes.count, start + size)]))
            }
            continuation.finish()
        }
    }

    private static func bytes(_ count: Int) -> [UInt8] {
        var random = SeededGenerator(state: UInt64(count))
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    private static func small(_ configuration: inout S3Client.Configuration, _: inout S3Client.Surroundings) {
        configuration.partSize = 1_000
    }

    @Test(
        "Chunks of all sizes are stored whole, in parts where they are long",
        arguments: [(0, 10), (999, 10), (1_000, 300), (1_001, 300), (5_000, 7_000), (5_500, 1), (12_345, 1_000)])
    func chunksAreStored(count: Int, size: Int) async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            let bytes = Self.bytes(count)
            let stored = try await bucket.put(
                chunks: Self.chunks(bytes, of: size), as: "a b", type: "image/png", metadata: ["x": "y"])
            #expect(stored == count)
            let object = try #require(fake["a b"])
            #expect(object.bytes == bytes && object.type == "image/png")
            #expect(object.metadata.contains { $0.name == "x-amz-meta-x" && $0.value == "y" })
            #expect(fake.count == (count <= 1_000 ? 1 : 2 + (count + 999) / 1_000))
            #expect(fake.mostRunningParts <= 2)
            #expect(fake.uploads == 0)
        }
    }

    @Test("Memory stays bounded: no more chunks are read than parts can be sent")
    func readingWaitsForSending() async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            let read = Box(0)
            let most = Box(0)
            struct Source: AsyncSequence, AsyncIteratorProtocol, Sendable {
                let read: Box<Int>, most: Box<Int>, fake: FakeS3

                func makeAsyncIterator() -> Source { self }
                mutating func next() async throws -> [UInt8]? {
                    let sent = fake.requests.count { $0.target.contains("partNumber") }
                    let number = read.update { read in
                        read += 1
                        return read
                    }
                    most.update { $0 = Swift.max($0, number - sent) }
                    return number > 60 ? nil : [UInt8](repeating: 1, count: 1_000)
                }
            }
            let count = try await bucket.put(chunks: Source(read: read, most: most, fake: fake), as: "a")
            #expect(count == 60_000)
            // Two that are sent, one that is full, and one that is being read.
            #expect(most.value <= 4)
        }
    }

    @Test("An upload is aborted if its chunks fail")
    func failedChunksAbort() async throws {
        struct Failure: Error {}
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            let chunks = AsyncThrowingStream<[UInt8], any Error> { continuation in
                for _ in 0..<5 { continuation.yield([UInt8](repeating: 1, count: 700)) }
                continuation.finish(throwing: Failure())
            }
            await #expect(throws: Failure.self) { try await bucket.put(chunks: chunks, as: "a") }
            #expect(fake["a"] == nil)
            #expect(fake.uploads == 0)
            #expect(fake.log.last?.hasPrefix("DELETE /pictures/a?uploadId=") == true)
        }
    }

    @Test(
        "An upload is aborted if a part or its end fails",
        arguments: [("PUT", "partNumber=2"), ("PUT", "partNumber=5"), ("POST", "uploadId")])
    func failedPartsAbort(method: String, part: String) async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            fake.script { request, _ in
                request.method == method && request.target.contains(part) ? FakeS3.error(403, "AccessDenied") : nil
            }
            let error = await failure {
                try await bucket.put(chunks: Self.chunks(Self.bytes(5_000), of: 1_000), as: "a")
            }
            guard case .denied = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fake["a"] == nil)
            #expect(fake.uploads == 0)
        }
    }

    @Test("A cancelled upload is aborted")
    func cancelledUploadsAbort() async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            let (chunks, continuation) = AsyncStream.makeStream(of: [UInt8].self)
            let (started, report) = AsyncStream.makeStream(of: Void.self)
            fake.script { request, _ in
                if request.target.contains("partNumber=2") { report.yield() }
                return nil
            }
            for _ in 0..<3 { continuation.yield([UInt8](repeating: 1, count: 1_000)) }
            let task = Task { try await bucket.put(chunks: chunks, as: "a") }
            for await _ in started { break }
            task.cancel()
            await #expect(throws: (any Error).self) { try await task.value }
            #expect(fake["a"] == nil)
            #expect(fake.uploads == 0)
        }
    }

    @Test("Parts that fail for a moment are sent again")
    func passingFailuresOfPartsAreRetried() async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            let failed = Box<Set<String>>([])
            fake.script { request, _ in
                let target = request.method + request.target
                return failed.update({ $0.insert(target).inserted }) ? FakeS3.error(503, "SlowDown") : nil
            }
            let bytes = Self.bytes(4_500)
            try await bucket.put(chunks: Self.chunks(bytes, of: 100), as: "a")
            #expect(fake["a"]?.bytes == bytes)
        }
    }

    @Test("An end with status 200 and an error is a failure")
    func errorsWithStatus200AreFailures() async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            fake.script { request, _ in
                guard request.method == "POST", request.target.contains("uploadId") else { return nil }
                return FakeS3.error(200, "InternalError")
            }
            let error = await failure { try await bucket.put(chunks: Self.chunks(Self.bytes(3_000), of: 100), as: "a") }
            guard case .busy = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fake["a"] == nil)
            #expect(fake.uploads == 0)
        }
    }

    @Test("An upload whose last answer was lost is a success")
    func lostAnswersOfUploadsAreResolved() async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            let isLost = Box(false)
            fake.script { request, _ in
                guard request.method == "POST", request.target.contains("uploadId"), !isLost.value else { return nil }
                isLost.update { $0 = true }
                _ = fake.handle(request)
                return .raw([])
            }
            let bytes = Self.bytes(3_000)
            #expect(try await bucket.put(chunks: Self.chunks(bytes, of: 100), as: "a") == 3_000)
            #expect(fake["a"]?.bytes == bytes)
        }
    }

    @Test("Uploads in parts respect existing objects")
    func uploadsRespectExistingObjects() async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            fake["a"] = .init([1])
            let chunks = Self.chunks(Self.bytes(3_000), of: 100)
            let early = await failure { try await bucket.put(chunks: chunks, as: "a", replacing: false) }
            #expect(fake.uploads == 0)
            // Another writer comes during the upload.
            fake.script { request, _ in
                if request.target.contains("partNumber=1") { fake["b"] = .init([2]) }
                return nil
            }
            let again = Self.chunks(Self.bytes(3_000), of: 100)
            let late = await failure { try await bucket.put(chunks: again, as: "b", replacing: false) }
            for error in [early, late] {
                guard case .alreadyExists = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
            #expect(fake["a"]?.bytes == [1] && fake["b"]?.bytes == [2])
            #expect(fake.uploads == 0)
        }
    }

    @Test(
        "Foreign answers to an upload are errors",
        arguments: ["", "<a/>", "<InitiateMultipartUploadResult/>", "<html>"])
    func foreignAnswersToUploadsAreErrors(answer: String) async throws {
        try await FakeS3.run(Self.small) { fake, bucket async throws in
            fake.script { request, _ in request.target.hasSuffix("?uploads=") ? .init(text: answer) : nil }
            let error = await failure { try await bucket.put(chunks: Self.chunks(Self.bytes(3_000), of: 100), as: "a") }
            guard case .invalidResponse = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    // MARK: Listings

    @Test("Listings have all pages, by prefix", arguments: [1, 3, 7, 1_000])
    func listingsHaveAllPages(pageSize: Int) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.set { $0.pageSize = pageSize }
            let keys = (0..<20).map { "a & b/\($0)+ä" } + ["c", "d"]
            for key in keys { fake[key] = .init([1, 2]) }
            var all: [String] = []
            var some: [String] = []
            for try await object in bucket.list() {
                all.append(object.key)
                #expect(object.size == 2 && object.entityTag == FakeS3.tag([1, 2]))
                #expect(object.lastModified == .milliseconds(1_255_369_830_250))
            }
            for try await object in bucket.list(prefix: "a & b/1") { some.append(object.key) }
            #expect(all == keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
            #expect(some.count == 11 && some.allSatisfy { $0.hasPrefix("a & b/1") })
        }
    }

    @Test(
        "Hostile listings are errors",
        arguments: [
            "", "<ListBucketResult>", "<html></html>", "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><Contents><Key>other</Key></Contents></ListBucketResult>",
            "<ListBucketResult><Contents></Contents></ListBucketResult>",
            "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>p%F</Key></Contents></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
                + "</ListBucketResult>"
        ])
    func hostileListingsAreErrors(xml: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { _, _ in .init(text: xml) }
            let error = await failure { for try await _ in bucket.list(prefix: "p") {} }
            guard case .invalidResponse = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fake.count <= 2)
        }
    }

    @Test("A listing of endless empty pages ends")
    func endlessListingsEnd() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { _, number in
                .init(
                    text: "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>\(number)"
                        + "</NextContinuationToken></ListBucketResult>")
            }
            await #expect(throws: S3Error.self) { for try await _ in bucket.list() {} }
            #expect(fake.count == 1_000)
        }
    }

    @Test("A missing bucket is an error of its own")
    func missingBucketsAreErrors() async throws {
        try await FakeS3.run { _, bucket async throws in
            let other = bucket.client.bucket("none")
            for error in [
                await failure { for try await _ in other.list() {} }, await failure { try await other.get("a") },
                await failure { try await other.put([], as: "a") }
            ] {
                guard case .noBucket = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
        }
    }
}
