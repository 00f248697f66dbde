import Crypto
import Foundation
import Synchronization
import Testing
import VitrineCore
import VitrineNetwork
import VitrineS3

/// A small S3 server in memory. It checks signatures by code of its own, and answers as a test says.
final class FakeS3: Sendable {
    typealias Request = LoopbackServer.Request
    typealias Answer = LoopbackServer.Answer

    struct Stored: Sendable {
        var bytes: [UInt8]
        var type: String
        var metadata: [(name: String, value: String)] = []
        var tag: String

        init(_ bytes: [UInt8], type: String = "application/octet-stream") {
            (self.bytes, self.type, tag) = (bytes, type, FakeS3.tag(bytes))
        }
    }

    private struct Upload {
        var bucket: String, key: String
        var object: Stored
        var parts: [Int: [UInt8]] = [:]
    }

    struct Keys: Sendable {
        var secret: String
        var token: String?
    }

    private struct State {
        var buckets: [String: [String: Stored]] = ["pictures": [:]]
        var uploads: [String: Upload] = [:]
        var requests: [Request] = []
        var nextUpload = 1
        var runningParts = 0
        var mostRunningParts = 0
        var allowsAnonymous = false
        var hasConditions = true
        var pageSize = 1_000
        /// The seconds that the server's clock is ahead.
        var clockOffset = 0.0
        var keys: [String: Keys] = [
            "key": Keys(secret: "secret/+"), "session": Keys(secret: "hidden", token: "token==")
        ]
        /// The answers of coming requests, and those of requests that it is asked about.
        var script: (@Sendable (Request, Int) -> Answer?)?
        var signatureFailures: [String] = []
    }

    private let state = Mutex(State())
    private let server = Mutex<LoopbackServer?>(nil)

    static func start() throws -> FakeS3 {
        let fake = FakeS3()
        let server = try LoopbackServer { request in fake.answer(request) }
        fake.server.withLock { $0 = server }
        return fake
    }

    /// Runs a test with a server and a client for its bucket `pictures`.
    static func run(
        _ change: @Sendable (inout S3Client.Configuration, inout S3Client.Surroundings) -> Void = { _, _ in },
        _ body: @Sendable (FakeS3, S3Bucket) async throws -> Void
    ) async throws {
        let fake = try start()
        defer { fake.stop() }
        var surroundings = S3Client.Surroundings()
        surroundings.sleep = { _ in }
        surroundings.environment = { _ in nil }
        var configuration = S3Client.Configuration()
        configuration.endpoint = fake.endpoint
        configuration.credentials = .fixed(S3Credentials(accessKey: "key", secretKey: "secret/+"))
        change(&configuration, &surroundings)
        let client = try S3Client(configuration, surroundings)
        try await body(fake, client.bucket("pictures"))
        #expect(fake.signatureFailures == [])
    }

    func stop() { server.withLock { $0.take() }?.stop() }

    var port: Int { server.withLock { $0?.port ?? 0 } }
    var endpoint: String { "http://127.0.0.1:\(port)" }
    var requests: [Request] { state.withLock { $0.requests } }
    /// The methods and targets of all requests.
    var log: [String] { requests.map { $0.method + " " + $0.target } }
    var count: Int { state.withLock { $0.requests.count } }
    var uploads: Int { state.withLock { $0.uploads.count } }
    var mostRunningParts: Int { state.withLock { $0.mostRunningParts } }
    /// Why signatures were refused that had the right keys and clock.
    var signatureFailures: [String] { state.withLock { $0.signatureFailures } }
    var hasConditions: Bool {
        get { state.withLock { $0.hasConditions } }
        set { state.withLock { $0.hasConditions = newValue } }
    }

    func set(_ change: (inout Settings) -> Void) {
        state.withLock { state in
            var settings = Settings(
                pageSize: state.pageSize, clockOffset: state.clockOffset, keys: state.keys,
                allowsAnonymous: state.allowsAnonymous)
            change(&settings)
            (state.pageSize, state.clockOffset) = (settings.pageSize, settings.clockOffset)
            (state.keys, state.allowsAnonymous) = (settings.keys, settings.allowsAnonymous)
        }
    }

    struct Settings {
        var pageSize: Int
        var clockOffset: Double
        var keys: [String: Keys]
        var allowsAnonymous: Bool
    }

    /// Sets the script that is asked before each request is handled, with the number of the request from 1.
    func script(_ script: (@Sendable (Request, Int) -> Answer?)?) {
        state.withLock { state in
            state.script = script
            state.requests = []
        }
    }

    subscript(key: String, bucket bucket: String = "pictures") -> Stored? {
        get { state.withLock { $0.buckets[bucket]?[key] } }
        set { state.withLock { $0.buckets[bucket]?[key] = newValue } }
    }

    static func tag(_ bytes: [UInt8]) -> String {
        "\"" + Insecure.MD5.hash(data: bytes).map { String(format: "%02x", $0) }.joined() + "\""
    }

    static func error(_ status: Int, _ code: String, _ headers: [(name: String, value: String)] = []) -> Answer {
        Answer(
            status, headers,
            text: "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>The message &amp; more</Message></Error>")
    }

    // MARK: Answers

    private func answer(_ request: Request) -> Answer {
        let (script, number) = state.withLock { state in
            state.requests.append(request)
            return (state.script, state.requests.count)
        }
        var answer = script?(request, number) ?? handle(request)
        if !answer.headers.contains(where: { $0.name == "Date" }) {
            answer.headers.append(("Date", Self.date(now)))
        }
        return answer
    }

    private var now: Date { Date(timeIntervalSinceNow: state.withLock { $0.clockOffset }) }

    private static func date(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: date)
    }

    /// The answer without a script.
    func handle(_ request: Request) -> Answer {
        if let refusal = refusal(of: request) { return refusal }
        guard let path = request.path.removingPercentEncoding else { return Self.error(400, "InvalidURI") }
        var names = path.dropFirst()
        var bucket = String(names.prefix { $0 != "/" })
        if let host = request["host"], host.hasPrefix("pictures.") {
            bucket = "pictures"
        } else {
            names = names.dropFirst(bucket.count).dropFirst()
        }
        let key = String(names)
        var query: [String: String] = [:]
        for pair in request.query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            query[parts[0]] = (parts.count > 1 ? parts[1] : "").removingPercentEncoding
        }
        if key.isEmpty { return onBucket(request, bucket, query) }
        guard state.withLock({ $0.buckets[bucket] != nil }) else { return Self.error(404, "NoSuchBucket") }
        if query["uploads"] != nil || query["uploadId"] != nil { return onUpload(request, bucket, key, query) }
        switch request.method {
        case "GET", "HEAD": return read(request, bucket, key)
        case "PUT": return write(request, bucket, key)
        case "DELETE":
            self[key, bucket: bucket] = nil
            return Answer(204)
        default: return Self.error(405, "MethodNotAllowed")
        }
    }

    private func onBucket(_ request: Request, _ bucket: String, _ query: [String: String]) -> Answer {
        if request.method == "PUT" {
            state.withLock { state in if state.buckets[bucket] == nil { state.buckets[bucket] = [:] } }
            return Answer()
        }
        let (objects, pageSize) = state.withLock { ($0.buckets[bucket], $0.pageSize) }
        guard let objects else { return Self.error(404, "NoSuchBucket") }
        guard request.method == "GET", query["list-type"] == "2" else { return Self.error(400, "InvalidRequest") }
        let prefix = query["prefix"] ?? ""
        let after = query["continuation-token"] ?? ""
        let keys = objects.keys.filter { $0.utf8.starts(with: prefix.utf8) }.sorted {
            $0.utf8.lexicographicallyPrecedes($1.utf8)
        }
        var entries: [(sort: String, xml: String)] = []
        for key in keys {
            guard let object = objects[key] else { continue }
            let rest = String(decoding: key.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
            if let delimiter = query["delimiter"], let range = rest.range(of: delimiter) {
                let common = prefix + rest[..<range.upperBound]
                if entries.last?.sort == common { continue }
                entries.append((common, "<CommonPrefixes><Prefix>\(Self.encoded(common))</Prefix></CommonPrefixes>"))
            } else {
                entries.append(
                    (
                        key,
                        "<Contents><Key>\(Self.encoded(key))</Key><LastModified>2009-10-12T17:50:30.250Z</LastModified>"
                            + "<ETag>\(object.tag.replacing("\"", with: "&quot;"))</ETag>"
                            + "<Size>\(object.bytes.count)</Size>"
                            + "</Contents>"
                    ))
            }
        }
        let first = entries.firstIndex { after.utf8.lexicographicallyPrecedes($0.sort.utf8) } ?? entries.endIndex
        let page = entries[first...].prefix(min(pageSize, query["max-keys"].flatMap { Int($0) } ?? 1_000))
        var xml =
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            + "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>"
        if page.endIndex < entries.endIndex, let last = page.last {
            xml +=
                "<IsTruncated>true</IsTruncated><NextContinuationToken>"
                + last.sort.replacing("&", with: "&amp;").replacing("<", with: "&lt;") + "</NextContinuationToken>"
        } else {
            xml += "<IsTruncated>false</IsTruncated>"
        }
        return Answer(text: xml + page.map(\.xml).joined() + "</ListBucketResult>")
    }

    /// As Amazon encodes keys in listings.
    private static func encoded(_ text: String) -> String {
        var allowed = CharacterSet(charactersIn: "/-_.*~")
        allowed.formUnion(CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "))
        return (text.addingPercentEncoding(withAllowedCharacters: allowed) ?? "").replacing(" ", with: "+")
    }

    private func read(_ request: Request, _ bucket: String, _ key: String) -> Answer {
        guard let object = self[key, bucket: bucket] else { return Self.error(404, "NoSuchKey") }
        if let tag = request["if-match"], tag != object.tag { return Self.error(412, "PreconditionFailed") }
        var headers =
            object.metadata + [
                (name: "ETag", value: object.tag), ("Content-Type", object.type),
                ("Last-Modified", "Mon, 12 Oct 2009 17:50:30 GMT")
            ]
        if request["if-none-match"] == object.tag { return Answer(304, headers) }
        if let range = request["range"] {
            let bounds = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
            guard let lower = Int(bounds[0]), lower < object.bytes.count else {
                return Self.error(416, "InvalidRange")
            }
            let upper = min(object.bytes.count - 1, Int(bounds[1]) ?? .max)
            headers.append(("Content-Range", "bytes \(lower)-\(upper)/\(object.bytes.count)"))
            return Answer(206, headers, Array(object.bytes[lower...upper]))
        }
        return Answer(200, headers, object.bytes)
    }

    private func stored(_ request: Request) -> Stored {
        var object = Stored(request.body, type: request["content-type"] ?? "")
        object.metadata = request.headers.filter { $0.name.hasPrefix("x-amz-meta-") }
        return object
    }

    private func write(_ request: Request, _ bucket: String, _ key: String) -> Answer {
        var object = stored(request)
        if let source = request["x-amz-copy-source"] {
            let parts = source.dropFirst().split(separator: "/", maxSplits: 1).map(String.init)
            guard parts.count == 2, let name = parts[1].removingPercentEncoding,
                let original = self[name, bucket: parts[0]]
            else { return Self.error(404, "NoSuchKey") }
            object = original
        }
        let isCondition = request["if-none-match"] != nil
        return state.withLock { state in
            if isCondition, !state.hasConditions { return Self.error(501, "NotImplemented") }
            if isCondition, state.buckets[bucket]?[key] != nil { return Self.error(412, "PreconditionFailed") }
            state.buckets[bucket]?[key] = object
            return Answer(
                200, [("ETag", object.tag)],
                text: request["x-amz-copy-source"] == nil ? "" : "<CopyObjectResult></CopyObjectResult>")
        }
    }

    private func onUpload(_ request: Request, _ bucket: String, _ key: String, _ query: [String: String]) -> Answer {
        if request.method == "POST", query["uploads"] != nil {
            let object = stored(request)
            return state.withLock { state in
                let name = "upload \(state.nextUpload)"
                state.nextUpload += 1
                state.uploads[name] = Upload(bucket: bucket, key: key, object: object)
                return Answer(
                    text: "<InitiateMultipartUploadResult><UploadId>\(name)</UploadId></InitiateMultipartUploadResult>")
            }
        }
        let name = query["uploadId"] ?? ""
        guard state.withLock({ $0.uploads[name]?.key == key }) else { return Self.error(404, "NoSuchUpload") }
        switch request.method {
        case "PUT":
            guard let number = query["partNumber"].flatMap({ Int($0) }) else { return Self.error(400, "InvalidPart") }
            state.withLock { state in
                state.runningParts += 1
                state.mostRunningParts = max(state.mostRunningParts, state.runningParts)
            }
            // Gives other parts the time to run at once.
            Thread.sleep(forTimeInterval: 0.01)
            return state.withLock { state in
                state.runningParts -= 1
                state.uploads[name]?.parts[number] = request.body
                return Answer(200, [("ETag", Self.tag(request.body))])
            }
        case "DELETE":
            state.withLock { $0.uploads[name] = nil }
            return Answer(204)
        case "POST":
            return state.withLock { state in
                guard let upload = state.uploads[name] else { return Self.error(404, "NoSuchUpload") }
                if request["if-none-match"] != nil {
                    if !state.hasConditions { return Self.error(501, "NotImplemented") }
                    if state.buckets[bucket]?[key] != nil { return Self.error(412, "PreconditionFailed") }
                }
                var expected = "<CompleteMultipartUpload>"
                var bytes: [UInt8] = []
                for (number, part) in upload.parts.sorted(by: { $0.key < $1.key }) {
                    expected += "<Part><PartNumber>\(number)</PartNumber><ETag>\(Self.tag(part))</ETag></Part>"
                    bytes += part
                }
                guard request.body.elementsEqual((expected + "</CompleteMultipartUpload>").utf8) else {
                    return Self.error(400, "InvalidPart")
                }
                var object = upload.object
                (object.bytes, object.tag) = (bytes, "\"\(upload.parts.count) parts\"")
                state.buckets[bucket]?[key] = object
                state.uploads[name] = nil
                return Answer(
                    text: "  \n<?xml version=\"1.0\"?><CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
            }
        default: return Self.error(405, "MethodNotAllowed")
        }
    }

    // MARK: Signatures

    /// Checks the signature of a request from its bytes; nil if it is right.
    private func refusal(of request: Request) -> Answer? {
        let (keys, allowsAnonymous) = state.withLock { ($0.keys, $0.allowsAnonymous) }
        var pairs = request.query.split(separator: "&").map { pair in
            pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        }
        var parts: [String: String] = [:]
        let hash: String
        let stamp: String
        let token: String?
        if let value = request["authorization"] {
            guard value.hasPrefix("AWS4-HMAC-SHA256 ") else { return Self.error(400, "AuthorizationHeaderMalformed") }
            for part in value.dropFirst(17).components(separatedBy: ", ") {
                let words = part.split(separator: "=", maxSplits: 1).map(String.init)
                parts[words[0]] = words[1]
            }
            (hash, stamp) = (request["x-amz-content-sha256"] ?? "", request["x-amz-date"] ?? "")
            token = request["x-amz-security-token"]
        } else if let signature = pairs.first(where: { $0[0] == "X-Amz-Signature" }) {
            func value(_ name: String) -> String? { pairs.first { $0[0] == name }?.last?.removingPercentEncoding }
            parts = [
                "Credential": value("X-Amz-Credential") ?? "", "SignedHeaders": value("X-Amz-SignedHeaders") ?? "",
                "Signature": signature[1]
            ]
            (hash, stamp, token) = ("UNSIGNED-PAYLOAD", value("X-Amz-Date") ?? "", value("X-Amz-Security-Token"))
            pairs.removeAll { $0[0] == "X-Amz-Signature" }
        } else {
            return allowsAnonymous ? nil : Self.error(403, "AccessDenied")
        }
        let scope = (parts["Credential"] ?? "").split(separator: "/").map(String.init)
        guard scope.count == 5, let key = keys[scope[0]] else { return Self.error(403, "InvalidAccessKeyId") }
        guard key.token == token else { return Self.error(400, "InvalidToken") }
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "yyyyMMdd'T'HHmmss'Z'"
        guard let signed = formatter.date(from: stamp), abs(signed.timeIntervalSince(now)) < 900 else {
            return Self.error(403, "RequestTimeTooSkewed")
        }
        let body = SHA256.hash(data: request.body).map { String(format: "%02x", $0) }.joined()
        guard hash == "UNSIGNED-PAYLOAD" || hash == body else { return Self.error(400, "XAmzContentSHA256Mismatch") }
        let names = (parts["SignedHeaders"] ?? "").split(separator: ";").map(String.init)
        let isComplete =
            names.contains("host")
            && request.headers.allSatisfy { !$0.name.hasPrefix("x-amz-") || names.contains($0.name) }
        let unreserved = CharacterSet(
            charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
        func again(_ text: String, _ allowed: CharacterSet) -> String {
            text.removingPercentEncoding?.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        }
        let path = again(request.path, unreserved.union(CharacterSet(charactersIn: "/")))
        let query = pairs.map { again($0[0], unreserved) + "=" + again($0.count > 1 ? $0[1] : "", unreserved) }.sorted()
            .joined(separator: "&")
        let fields = names.map { name in
            "\(name):" + (request[name] ?? "").replacingOccurrences(of: " +", with: " ", options: .regularExpression)
                + "\n"
        }.joined()
        let canonical = "\(request.method)\n\(path)\n\(query)\n\(fields)\n\(names.joined(separator: ";"))\n\(hash)"
        let digest = SHA256.hash(data: Data(canonical.utf8)).map { String(format: "%02x", $0) }.joined()
        let text = "AWS4-HMAC-SHA256\n\(stamp)\n\(scope.dropFirst().joined(separator: "/"))\n\(digest)"
        var secret = Data("AWS4\(key.secret)".utf8)
        for part in scope.dropFirst() + [text] {
            secret = Data(HMAC<SHA256>.authenticationCode(for: Data(part.utf8), using: SymmetricKey(data: secret)))
        }
        guard isComplete, secret.map({ String(format: "%02x", $0) }).joined() == parts["Signature"] else {
            state.withLock { $0.signatureFailures.append(canonical) }
            return Self.error(403, "SignatureDoesNotMatch")
        }
        return nil
    }

    /// Forgets refused signatures that a test expects.
    func forgetSignatureFailures() { state.withLock { $0.signatureFailures = [] } }
}

/// Returns the error of a call; nil if there is none.
func failure<Value>(_ body: () async throws -> Value) async -> S3Error? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? S3Error
    }
}

/// Counts, and keeps values of closures.
final class Box<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value { state.withLock { $0 } }
    @discardableResult
    func update<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { state.withLock { body(&$0) } }
}

/// Random numbers with a seed (Steele, Lea and Flood, SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
