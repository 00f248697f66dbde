import Foundation
import Testing
import VitrineCore
import VitrineNetwork
import VitrineS3

struct ClientTests {
    // MARK: Calls

    @Test("Objects are stored, loaded, described and deleted with any keys")
    func objectsRoundTrip() async throws {
        let keys = [
            "a", "a/b/c.jpeg", "with space", "plus+and%41percent", "Änderung/日本.png", "quote\"'<&>;:@=,?#", "tilde~",
            "/leading", "double//slash", "trailing/", "tab\tand\nline", "(*)!$", "e\u{301}", "...", "a/.b", "{}|\\^`"
        ]
        try await FakeS3.run { _, bucket async throws in
            for key in keys {
                let bytes = Array("bytes of \(key)".utf8)
                let tag = try await bucket.put(bytes, as: key, type: "image/jpeg", metadata: ["Colour": "sea  green"])
                let contents = try await bucket.get(key)
                #expect(contents.bytes == bytes)
                let object = try await bucket.head(key)
                #expect(object == contents.object)
                #expect(object.key == key && object.size == bytes.count && object.entityTag == tag)
                #expect(object.contentType == "image/jpeg" && object.lastModified == .seconds(1_255_369_830))
                #expect(object.metadata["colour"] == "sea  green")
            }
            var listed: [String] = []
            for try await object in bucket.list() { listed.append(object.key) }
            #expect(listed == keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
            for key in keys {
                try await bucket.delete(key)
                try await bucket.delete(key)
                let error = await failure { try await bucket.get(key) }
                guard case .notFound(let address) = error else {
                    Issue.record("\(key): \(String(describing: error))")
                    continue
                }
                #expect(address.hasPrefix("s3://pictures/"))
            }
        }
    }

    @Test(
        "Invalid keys, buckets and metadata are refused before a request",
        arguments: ["", "..", "a/../b", "a/.", "./a", "nul\u{0}", "../\u{301}a", String(repeating: "ä", count: 513)])
    func invalidKeysAreRefused(key: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            for error in [
                await failure { try await bucket.get(key) }, await failure { try await bucket.put([], as: key) },
                await failure { try await bucket.delete(key) }, await failure { try await bucket.copy("a", to: key) },
                await failure { try await bucket.put([], as: "a", metadata: ["a": "Ä"]) },
                await failure { try await bucket.put([], as: "a", metadata: ["a b": "c"]) },
                await failure { try await bucket.put([], as: "a", type: "a\r\nb") },
                await failure { try await bucket.client.bucket("../x").get("a") },
                await failure { try await bucket.client.bucket("").get("a") }
            ] {
                guard case .invalidName = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
            #expect(fake.count == 0)
        }
    }

    @Test("Parts of objects are loaded, and parts beyond the end are errors")
    func partsAreLoaded() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake["a"] = .init(Array(0..<100))
            #expect(try await bucket.get("a", range: 10..<20).bytes == Array(10..<20))
            #expect(try await bucket.get("a", range: 90..<1_000).bytes == Array(90..<100))
            #expect(try await bucket.get("a", range: 90..<Int.max).object.size == 100)
            for range in [100..<110, 5..<5] {
                let error = await failure { try await bucket.get("a", range: range) }
                guard case .invalidRange = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
        }
    }

    @Test(
        "Answers that are not the requested part are refused",
        arguments: [
            (200, "bytes 10-19/100"), (206, "bytes 0-9/100"), (206, "bytes 10-18/100"), (206, "bytes 10-20/100"),
            (206, "bytes 10-19/*"), (206, "bytes 10-19/15"), (206, "x"), (206, "bytes -10-19/100"), (304, "")
        ])
    func wrongPartsAreRefused(status: Int, range: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { _, _ in .init(status, [("Content-Range", range)], Array(10..<20)) }
            let error = await failure { try await bucket.get("a", range: 10..<20) }
            guard case .invalidResponse = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("Chunks are parts of one version, and a replaced object is an error")
    func chunksAreOfOneVersion() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake["a"] = .init(Array(0..<100))
            fake["empty"] = .init([])
            var sizes: [Int] = []
            var bytes: [UInt8] = []
            for try await chunk in bucket.chunks(of: "a", size: 30) {
                sizes.append(chunk.count)
                bytes += chunk
            }
            #expect(sizes == [30, 30, 30, 10] && bytes == Array(0..<100))
            for try await _ in bucket.chunks(of: "empty") { Issue.record("An empty object has a chunk") }
            var chunks = bucket.chunks(of: "a", size: 30).makeAsyncIterator()
            _ = try await chunks.next()
            fake["a"] = .init(Array(100..<200))
            await #expect(throws: S3Error.self) { try await chunks.next() }
        }
    }

    @Test("An object is loaded only if it has another entity tag, also from servers without conditions")
    func unchangedObjectsAreNotLoaded() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake["a"] = .init([1, 2, 3])
            let tag = try #require(try await bucket.get("a", unless: "\"other\"")?.object.entityTag)
            #expect(try await bucket.get("a", unless: tag) == nil)
            fake.script { _, _ in .init(200, [("ETag", tag)], [1, 2, 3]) }
            #expect(try await bucket.get("a", unless: tag) == nil)
            fake.script { _, _ in .init(304) }
            await #expect(throws: S3Error.self) { try await bucket.get("a") }
        }
    }

    @Test("Objects beyond the limit are errors, whether their length is known or not")
    func largeObjectsAreRefused() async throws {
        try await FakeS3.run { configuration, _ in
            configuration.maximumBytes = 1_000
        } _: { fake, bucket async throws in
            fake["a"] = .init([UInt8](repeating: 1, count: 1_001))
            fake["b"] = .init([UInt8](repeating: 1, count: 1_000))
            #expect(try await bucket.get("b").bytes.count == 1_000)
            let known = await failure { try await bucket.get("a") }
            fake.script { _, _ in .raw(Array("HTTP/1.0 200 OK\r\n\r\n".utf8) + [UInt8](repeating: 1, count: 200_000)) }
            let unknown = await failure { try await bucket.get("a") }
            for error in [known, unknown] {
                guard case .tooLarge(_, 1_000) = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
        }
    }

    // MARK: Writing on conditions

    @Test("Two writers of one key that must not replace: one succeeds")
    func oneOfManyWritersSucceeds() async throws {
        try await FakeS3.run { _, bucket async throws in
            let successes = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let error = await failure { try await bucket.put([UInt8(number)], as: "a", replacing: false) }
                        if case .alreadyExists = error { return false }
                        return error == nil
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(successes == 1)
        }
    }

    @Test("A server without conditional writes is asked once")
    func missingConditionsAreRemembered() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.hasConditions = false
            for _ in 0..<3 {
                let error = await failure { try await bucket.put([1], as: "a", replacing: false) }
                guard case .notSupported = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
            #expect(fake.count == 1)
            #expect(fake["a"] == nil)
            try await bucket.put([1], as: "a")
        }
    }

    @Test(
        "A conditional write whose answer was lost is a success, and one of another writer is not",
        arguments: [nil, 500, 503, 504])
    func lostAnswersOfWritesAreResolved(status: Int?) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { request, number in
                guard number == 1 else { return nil }
                _ = fake.handle(request)
                return status.map { FakeS3.error($0, "x") } ?? .raw([])
            }
            let tag = try await bucket.put([1, 2], as: "a", replacing: false)
            #expect(tag == FakeS3.tag([1, 2]))
            #expect(fake.log.map { $0.prefix(4) } == ["PUT ", "PUT ", "HEAD"])
            fake["b"] = .init([3])
            fake.script { _, number in number == 1 ? .raw([]) : nil }
            let error = await failure { try await bucket.put([4], as: "b", replacing: false) }
            guard case .alreadyExists = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fake["b"]?.bytes == [3])
        }
    }

    // MARK: Failures

    @Test(
        "Statuses are typed errors, and only those that may pass are retried",
        arguments: [
            (400, "InvalidRequest", 1), (403, "AccessDenied", 1), (404, "NoSuchKey", 1), (404, "NoSuchBucket", 1),
            (409, "OperationAborted", 4), (409, "BucketAlreadyExists", 1), (412, "PreconditionFailed", 1),
            (429, "TooManyRequests", 4), (500, "InternalError", 4), (501, "NotImplemented", 1), (503, "SlowDown", 4),
            (504, "", 4), (400, "RequestTimeout", 4), (418, "", 1), (301, "PermanentRedirect", 1)
        ])
    func statusesAreTypedErrors(status: Int, code: String, attempts: Int) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { _, _ in FakeS3.error(status, code) }
            let error = await failure { try await bucket.get("a") }
            let isExpected =
                switch (status, error) {
                case (400, .server(_, 400, "InvalidRequest", "The message & more")), (418, .server),
                    (403, .denied(_, "AccessDenied", _)), (412, .changed), (501, .notSupported), (301, .wrongRegion):
                    true
                case (404, .notFound): code == "NoSuchKey"
                case (404, .noBucket): code == "NoSuchBucket"
                case (409, .changed): code == "OperationAborted"
                case (409, .server): code == "BucketAlreadyExists"
                case (_, .busy(_, status, nil)): true
                default: false
                }
            #expect(isExpected, "\(String(describing: error))")
            #expect(fake.count == attempts)
            #expect(error?.address == "s3://pictures/a")
            #expect(error?.description.isEmpty == false)
        }
    }

    @Test("A request that fails and then succeeds is a success", arguments: [429, 500, 502, 503, 504])
    func passingFailuresAreRetried(status: Int) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { _, number in number <= 2 ? FakeS3.error(status, "x") : nil }
            try await bucket.put([1], as: "a")
            #expect(fake.count == 3)
            #expect(fake["a"]?.bytes == [1])
        }
    }

    @Test(
        "Damaged bodies are loaded again, and never returned",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", "HTTP/1.1 200 OK\r\nContent-Le", "",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"
        ])
    func damagedBodiesAreLoadedAgain(answer: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake["a"] = .init(Array("1234567890".utf8))
            fake.script { _, number in number <= 2 ? .raw(Array(answer.utf8)) : nil }
            #expect(try await bucket.get("a").bytes == Array("1234567890".utf8))
            #expect(fake.count == 3)
            fake.script { _, _ in .raw(Array(answer.utf8)) }
            let error = await failure { try await bucket.get("a") }
            guard case .network(_, .truncated) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("Bytes behind the declared length do not become part of the object or of the next answer")
    func surplusBytesAreDropped() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake["b"] = .init([7])
            fake.script { _, number in
                guard number == 1 else { return nil }
                return .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n12HTTP/1.1 200 OK\r\n\r\nevil".utf8))
            }
            #expect(try await bucket.get("a").bytes == Array("12".utf8))
            #expect(try await bucket.get("b").bytes == [7])
        }
    }

    @Test("Answers that are not HTTP are errors", arguments: ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nbad\r\n\r\n"])
    func foreignAnswersAreErrors(answer: String) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { _, _ in .raw(Array(answer.utf8)) }
            await #expect(throws: S3Error.self) { try await bucket.get("a") }
        }
    }

    @Test("A server that demands a wait gets it, up to the limit")
    func demandedWaitsAreKept() async throws {
        let waits = Box<[Duration]>([])
        try await FakeS3.run { _, surroundings in
            surroundings.jitter = { 1 }
            surroundings.sleep = { duration in waits.update { $0.append(duration) } }
        } _: { fake, bucket async throws in
            fake.script { _, number in number == 1 ? FakeS3.error(503, "SlowDown", [("Retry-After", "3")]) : nil }
            try await bucket.put([1], as: "a")
            #expect(waits.value == [.milliseconds(3_100)])
            fake.script { _, _ in FakeS3.error(429, "x", [("Retry-After", "60")]) }
            let error = await failure { try await bucket.get("a") }
            guard case .busy(_, 429, .seconds(60)) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(fake.count == 1)
            waits.update { $0 = [] }
            fake.script { _, _ in FakeS3.error(500, "x") }
            _ = await failure { try await bucket.get("a") }
            #expect(waits.value == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
        }
    }

    @Test("The budget ends the retries of an outage, and successes restore it")
    func outagesDoNotMultiplyRequests() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.script { _, _ in FakeS3.error(503, "SlowDown") }
            for _ in 0..<50 { _ = await failure { try await bucket.get("a") } }
            #expect(fake.count == 50 + 20)
            fake["a"] = .init([1])
            fake.script(nil)
            for _ in 0..<5 { _ = try await bucket.get("a") }
            fake.script { _, number in number == 1 ? FakeS3.error(500, "x") : nil }
            #expect(try await bucket.get("a").bytes == [1])
        }
    }

    @Test("A silent server is an error after the time limit")
    func silentServersAreErrors() async throws {
        try await FakeS3.run { configuration, _ in
            configuration.idleTimeout = .milliseconds(200)
            configuration.retries = 0
        } _: { fake, bucket async throws in
            let opened = DispatchSemaphore(value: 0)
            defer { opened.signal() }
            fake.script { _, _ in
                opened.wait()
                return nil
            }
            let error = await failure { try await bucket.get("a") }
            guard case .network(_, .timedOut) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(error?.isRetryable == true)
        }
    }

    @Test("A server that cannot be reached is an error")
    func missingServersAreErrors() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.stop()
            let error = await failure { try await bucket.get("a") }
            guard case .network(_, .notConnected) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("Redirects are not followed, so other hosts receive no credentials", arguments: [301, 302, 307, 308])
    func redirectsAreNotFollowed(status: Int) async throws {
        let other = try FakeS3.start()
        defer { other.stop() }
        try await FakeS3.run { fake, bucket async throws in
            let headers = [
                (name: "Location", value: other.endpoint + "/pictures/a"), ("x-amz-bucket-region", "eu-west-1")
            ]
            fake.script { _, _ in FakeS3.error(status, "PermanentRedirect", headers) }
            for error in [
                await failure { try await bucket.get("a") }, await failure { try await bucket.put([1], as: "a") }
            ] {
                guard case .wrongRegion(_, "eu-west-1") = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
            #expect(other.count == 0)
        }
    }

    @Test("A cancelled call ends")
    func cancelledCallsEnd() async throws {
        try await FakeS3.run { fake, bucket async throws in
            let opened = DispatchSemaphore(value: 0)
            defer { opened.signal() }
            let (started, continuation) = AsyncStream.makeStream(of: Void.self)
            fake.script { _, _ in
                continuation.yield()
                opened.wait()
                return nil
            }
            let task = Task { await failure { try await bucket.get("a") } }
            for await _ in started { break }
            task.cancel()
            guard case .cancelled = await task.value else {
                Issue.record("The call was not cancelled")
                return
            }
        }
    }

    // MARK: Signatures

    @Test(
        "A client whose clock is wrong adopts the time of the server",
        arguments: [-7_200, 3_600, 86_400 * 400] as [Double])
    func clocksAreAdopted(offset: Double) async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake.set { $0.clockOffset = offset }
            fake["a"] = .init([1])
            // The answer to HEAD has no code.
            _ = try await bucket.head("a")
            #expect(fake.count == 2)
            #expect(try await bucket.get("a").bytes == [1])
            #expect(fake.count == 3)
            let url = try await bucket.presignedURL(for: "a", expiresIn: .seconds(60))
            #expect(try await Self.load(url) == [1])
        }
    }

    private static func load(_ url: URL, method: String = "GET", body: [UInt8]? = nil) async throws -> [UInt8] {
        var request = HTTPRequest(url: url, method: method)
        request.body = body
        return try await NetworkLoader().load(request).body.collect()
    }

    @Test("URLs are valid for the method and key that they were signed for")
    func presignedURLsWork() async throws {
        try await FakeS3.run { fake, bucket async throws in
            fake["a b/ä+.png"] = .init([1, 2])
            #expect(try await Self.load(bucket.presignedURL(for: "a b/ä+.png", expiresIn: .seconds(60))) == [1, 2])
            let put = try await bucket.presignedURL(for: "new", method: "PUT", expiresIn: .seconds(60))
            _ = try await Self.load(put, method: "PUT", body: [3])
            #expect(fake["new"]?.bytes == [3])
            let other = try #require(URL(string: put.absoluteString.replacing("/new?", with: "/old?")))
            await #expect(throws: NetworkError.self) { try await Self.load(other, method: "PUT", body: [4]) }
            #expect(fake["old"] == nil)
            #expect(fake.signatureFailures.count == 1)
            fake.forgetSignatureFailures()
            for duration in [Duration.zero, .seconds(604_801)] {
                await #expect(throws: S3Error.self) { try await bucket.presignedURL(for: "a", expiresIn: duration) }
            }
        }
    }

    @Test("Session tokens are signed and sent, in fields and URLs")
    func sessionTokensAreSent() async throws {
        try await FakeS3.run { configuration, _ in
            configuration.credentials = .fixed(
                S3Credentials(accessKey: "session", secretKey: "hidden", sessionToken: "token=="))
        } _: { fake, bucket async throws in
            try await bucket.put([1], as: "a")
            #expect(try await Self.load(bucket.presignedURL(for: "a", expiresIn: .seconds(60))) == [1])
        }
    }

    @Test("A wrong secret is refused once, and no error shows secrets or signatures")
    func wrongSecretsAreRefused() async throws {
        try await FakeS3.run { configuration, _ in
            configuration.credentials = .fixed(
                S3Credentials(accessKey: "key", secretKey: "wrong-secret"))
        } _: { fake, bucket async throws in
            let error = await failure { try await bucket.get("a") }
            guard case .denied(_, "SignatureDoesNotMatch", _) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(error?.description.contains("wrong-secret") == false)
            #expect(error?.description.contains("Signature=") == false)
            #expect(fake.count == 1)
            fake.forgetSignatureFailures()
        }
    }

    @Test("Anonymous clients sign nothing, and unsigned payloads are said to be so")
    func requestsMayBeUnsigned() async throws {
        try await FakeS3.run { configuration, _ in
            configuration.credentials = .anonymous
        } _: { fake, bucket async throws in
            fake.set { $0.allowsAnonymous = true }
            try await bucket.put([1], as: "a")
            #expect(fake.requests.allSatisfy { $0["authorization"] == nil && $0["x-amz-date"] == nil })
            await #expect(throws: S3Error.self) { try await bucket.presignedURL(for: "a", expiresIn: .seconds(1)) }
        }
        try await FakeS3.run { configuration, _ in
            configuration.signsPayloads = false
        } _: { fake, bucket async throws in
            try await bucket.put([1], as: "a")
            #expect(fake.requests.map { $0["x-amz-content-sha256"] } == ["UNSIGNED-PAYLOAD"])
        }
    }

    @Test("The host may name the bucket")
    func hostsNameBuckets() async throws {
        try await FakeS3.run { configuration, _ in
            configuration.endpoint = configuration.endpoint?.replacing("127.0.0.1", with: "LocalHost")
            configuration.addressing = .virtualHost
        } _: { fake, bucket async throws in
            try await bucket.put([1], as: "a b")
            #expect(fake.requests.first?["host"] == "pictures.localhost:\(fake.port)")
            #expect(fake.log == ["PUT /a%20b"])
            #expect(try await bucket.get("a b").bytes == [1])
        }
    }

    @Test(
        "Endpoints of Amazon are chosen by region and name of the bucket",
        arguments: [
            ("pictures", "https://pictures.s3.eu-west-1.amazonaws.com/a"),
            ("my.pictures", "https://s3.eu-west-1.amazonaws.com/my.pictures/a"),
            ("Old_Name", "https://s3.eu-west-1.amazonaws.com/Old_Name/a")
        ])
    func endpointsOfAmazonAreChosen(bucket: String, url: String) async throws {
        var configuration = S3Client.Configuration.fromEnvironment { ["AWS_DEFAULT_REGION": "eu-west-1"][$0] }
        configuration.credentials = .fixed(S3Credentials(accessKey: "a", secretKey: "b"))
        let signed = try await S3Client(configuration).bucket(bucket).presignedURL(for: "a", expiresIn: .seconds(1))
        #expect(signed.absoluteString.prefix { $0 != "?" } == url)
    }

    @Test(
        "Endpoints and regions that cannot be used are refused",
        arguments: [
            ("ftp://a", "x"), ("a", "x"), ("https://", "x"), ("https://a/b", "x"), ("https://a?b", "x"),
            ("https://u:p@a", "x"), ("https://a:b", "x"), ("https://a:99999", "x"), ("https://a b", "x"),
            ("https://a", ""), ("https://a", "eu/west"), ("https://a", "eu\r\nwest"), ("https://[::1", "x")
        ])
    func badEndpointsAreRefused(endpoint: String, region: String) {
        var configuration = S3Client.Configuration()
        (configuration.endpoint, configuration.region) = (endpoint, region)
        #expect(throws: S3Error.self) { try S3Client(configuration) }
    }

    @Test(
        "Endpoints in all usual forms are accepted",
        arguments: ["http://[::1]:9000", "HTTPS://A.example/", "http://a:80"])
    func goodEndpointsAreAccepted(endpoint: String) async throws {
        var configuration = S3Client.Configuration.fromEnvironment { ["AWS_ENDPOINT_URL": endpoint][$0] }
        configuration.credentials = .fixed(S3Credentials(accessKey: "a", secretKey: "b"))
        let url = try await S3Client(configuration).bucket("b").presignedURL(for: "c", expiresIn: .seconds(1))
        let expected = ["http://[::1]:9000/b/c", "https://a.example/b/c", "http://a/b/c"]
        #expect(expected.contains(String(url.absoluteString.prefix { $0 != "?" })))
    }
}
