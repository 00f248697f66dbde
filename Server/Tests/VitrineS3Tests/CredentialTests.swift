import Foundation
import Testing
import VitrineCore
import VitrineNetwork
import VitrineS3

struct CredentialTests {
    private static func provider(
        _ source: S3CredentialSource, _ environment: [String: String] = [:], clock: WallClock = .system
    ) -> CredentialProvider {
        var configuration = S3Client.Configuration()
        configuration.endpoint = "http://127.0.0.1:1"
        return CredentialProvider(
            source, environment: { environment[$0] }, transport: S3Client.directTransport(configuration), clock: clock)
    }

    private static func withFile(_ text: String, _ body: (String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("credentials-\(UUID())").path
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(path)
    }

    @Test("The environment has keys and a token")
    func environmentHasKeys() async throws {
        let variables = ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"]
        let all = try await Self.provider(.automatic, variables).credentials()
        #expect(all == S3Credentials(accessKey: "a", secretKey: "b", sessionToken: "c"))
        let some = try await Self.provider(.environment, variables.merging(["AWS_SESSION_TOKEN": ""]) { $1 })
            .credentials()
        #expect(some == S3Credentials(accessKey: "a", secretKey: "b"))
        #expect(try await Self.provider(.anonymous).credentials() == nil)
    }

    @Test(
        "Missing and malformed credentials are errors",
        arguments: [
            [:], ["AWS_ACCESS_KEY_ID": "a"], ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": ""],
            ["AWS_ACCESS_KEY_ID": "a\r\nHost: x", "AWS_SECRET_ACCESS_KEY": "b"], ["HOME": "/nowhere"],
            ["AWS_SHARED_CREDENTIALS_FILE": "/dev/zero"]
        ])
    func missingCredentialsAreErrors(variables: [String: String]) async {
        let error = await failure { try await Self.provider(.automatic, variables).credentials() }
        guard case .noCredentials = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("A profile is read from the shared file")
    func profilesAreRead() async throws {
        let text = """
            # comment
            [default]
            aws_access_key_id = a
            aws_secret_access_key=b=+/
            [profile other]
            AWS_ACCESS_KEY_ID = c
            ; comment
            aws_secret_access_key = d
            s3 =
                aws_access_key_id = nested
            aws_session_token = e
            [empty]
            """
        try await Self.withFile(text) { path async throws in
            func load(_ profile: String?, _ variables: [String: String]) async throws -> S3Credentials? {
                try await Self.provider(.sharedFile(profile: profile, path: nil), variables).credentials()
            }
            let variables = ["AWS_SHARED_CREDENTIALS_FILE": path]
            #expect(try await load(nil, variables) == S3Credentials(accessKey: "a", secretKey: "b=+/"))
            let other = S3Credentials(accessKey: "c", secretKey: "d", sessionToken: "e")
            #expect(try await load("other", variables) == other)
            #expect(try await load(nil, variables.merging(["AWS_PROFILE": "other"]) { $1 }) == other)
            for profile in ["empty", "none"] {
                let error = await failure { try await load(profile, variables) }
                guard case .noCredentials = error else {
                    Issue.record("\(profile): \(String(describing: error))")
                    continue
                }
            }
        }
    }

    @Test("Changed files of profiles never trap")
    func changedFilesDoNotTrap() {
        var random = SeededGenerator(state: 5)
        let sample = Array("[a]\naws_access_key_id = b\n  c = d\n#e\n[profile f]\r\ng=\n".utf8)
        var found = 0
        for _ in 0..<5_000 {
            var bytes = sample
            for _ in 0..<3 {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...0xFF, using: &random)
            }
            if CredentialsFile.profile("a", of: String(decoding: bytes, as: UTF8.self)) != nil { found += 1 }
        }
        #expect(found > 1_000 && found < 5_000)
    }

    @Test("A file is read again when the server refuses its keys")
    func refusedKeysAreReadAgain() async throws {
        try await Self.withFile("[default]\naws_access_key_id = old\naws_secret_access_key = x\n") {
            path async throws in
            try await FakeS3.run { configuration, _ in
                configuration.credentials = .sharedFile(profile: nil, path: path)
            } _: { fake, bucket async throws in
                fake["a"] = .init([1])
                let error = await failure { try await bucket.get("a") }
                guard case .denied(_, "InvalidAccessKeyId", _) = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
                #expect(fake.count == 2)
                try Data("[default]\naws_access_key_id = key\naws_secret_access_key = secret/+\n".utf8)
                    .write(to: URL(fileURLWithPath: path))
                #expect(try await bucket.get("a").bytes == [1])
            }
        }
    }

    // MARK: Instance metadata

    private static func metadata(
        expires: String, _ log: Box<[String]>, fails: Box<Bool> = Box(false)
    ) throws -> LoopbackServer {
        try LoopbackServer { request in
            let number = log.update { log in
                log.append(request.method + " " + request.target)
                return log.count
            }
            if fails.value { return .init(500) }
            switch (request.method, request.target) {
            case ("PUT", "/latest/api/token"):
                return request["x-aws-ec2-metadata-token-ttl-seconds"] == nil ? .init(400) : .init(text: "TOKEN")
            case ("GET", let path) where request["x-aws-ec2-metadata-token"] == "TOKEN":
                if path == "/latest/meta-data/iam/security-credentials/" { return .init(text: "my role\n") }
                guard path == "/latest/meta-data/iam/security-credentials/my%20role" else { return .init(404) }
                return .init(
                    text: """
                        {"Code": "Success", "AccessKeyId": "key\(number)", "SecretAccessKey": "b", "Token": "c",
                        "Expiration": "\(expires)", "Type": "AWS-HMAC"}
                        """)
            default: return .init(401)
            }
        }
    }

    @Test("The role of a virtual machine is read once for many callers, and renewed before it ends")
    func rolesAreRead() async throws {
        let log = Box<[String]>([])
        let time = Box(Duration.seconds(1_369_353_600))
        let server = try Self.metadata(expires: "2013-05-24T01:00:00Z", log)
        defer { server.stop() }
        let provider = Self.provider(
            .instanceMetadata(endpoint: "http://127.0.0.1:\(server.port)"), clock: WallClock { time.value })
        let found = try await withThrowingTaskGroup(of: S3Credentials?.self) { group in
            for _ in 0..<20 { group.addTask { try await provider.credentials() } }
            return try await group.reduce(into: [S3Credentials?]()) { $0.append($1) }
        }
        #expect(Set(found.compactMap { $0?.accessKey }) == ["key3"])
        #expect(found.allSatisfy { $0?.sessionToken == "c" })
        #expect(log.value.count == 3)
        time.update { $0 += .seconds(3_200) }
        #expect(try await provider.credentials()?.accessKey == "key3")
        // Less than five minutes are left.
        time.update { $0 += .seconds(200) }
        #expect(try await provider.credentials()?.accessKey == "key6")
    }

    @Test("Old credentials are used while they cannot be renewed, but not after their end")
    func oldCredentialsOutlastFailures() async throws {
        let log = Box<[String]>([])
        let time = Box(Duration.seconds(1_369_353_600))
        let fails = Box(false)
        let server = try Self.metadata(expires: "2013-05-24T01:00:00Z", log, fails: fails)
        defer { server.stop() }
        let provider = Self.provider(
            .instanceMetadata(endpoint: "http://127.0.0.1:\(server.port)"), clock: WallClock { time.value })
        _ = try await provider.credentials()
        fails.update { $0 = true }
        time.update { $0 += .seconds(3_400) }
        #expect(try await provider.credentials()?.accessKey == "key3")
        let count = log.value.count
        // The next failure has to wait.
        #expect(try await provider.credentials()?.accessKey == "key3")
        #expect(log.value.count == count)
        time.update { $0 += .seconds(300) }
        await #expect(throws: S3Error.self) { try await provider.credentials() }
    }

    @Test("Instance metadata are not asked unless they are named")
    func metadataAreOffByDefault() async throws {
        let asked = Box(0)
        struct Refusing: HTTPTransport {
            let asked: Box<Int>

            func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
                asked.update { $0 += 1 }
                throw .unavailable(url: "", reason: "")
            }
        }
        let provider = CredentialProvider(
            .automatic, environment: { _ in nil }, transport: Refusing(asked: asked), clock: .system)
        await #expect(throws: S3Error.self) { try await provider.credentials() }
        #expect(asked.value == 0)
    }

    @Test("Answers of other services are errors", arguments: ["", "{}", "[1", "{\"Code\": \"Failed\"}"])
    func foreignAnswersAreErrors(json: String) async throws {
        let server = try LoopbackServer { request in
            request.target.hasSuffix("role") ? .init(text: json) : .init(text: "role")
        }
        defer { server.stop() }
        let provider = Self.provider(.instanceMetadata(endpoint: "http://127.0.0.1:\(server.port)"))
        let error = await failure { try await provider.credentials() }
        guard case .noCredentials = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
