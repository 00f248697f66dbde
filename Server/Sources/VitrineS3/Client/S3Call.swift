import Foundation
import VitrineCore
import VitrineNetwork

/// A request to a server.
struct S3Call: Sendable {
    var method = "GET"
    var bucket: String
    /// An empty key is the bucket itself.
    var key = ""
    var query: [(name: String, value: String)] = []
    /// Fields to sign and send.
    var headers: [(name: String, value: String)] = []
    var body: [UInt8]?
    var range: Range<Int>?
    /// Whether a content coding of the object is decoded.
    var isDecoded = false
    /// The most bytes of a body.
    var limit = ByteCount.kibibytes(64)

    /// The address in errors.
    var address: String { S3Address.text(bucket, key) }

    func check() throws(S3Error) {
        try S3Address.check(bucket: bucket)
        if !key.isEmpty { try S3Address.check(key: key) }
        if let range, range.isEmpty || range.lowerBound < 0 { throw .invalidRange(address) }
        for field in headers {
            let isPlain = field.value.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
            guard isPlain, !field.value.isEmpty, field.value.first != " ", field.value.last != " " else {
                throw .invalidName(
                    address,
                    reason: "the value of \(S3Error.line(field.name)) is empty, has blanks around it, or is not ASCII")
            }
        }
    }
}

/// An answer with its whole body.
struct S3Answer: Sendable {
    var head: HTTPResponseHead
    var body: [UInt8]
}

/// The rules of names, and addresses such as `s3://bucket/key`.
enum S3Address {
    /// The limit of Amazon S3.
    static let longestKey = 1_024

    static func text(_ bucket: String, _ key: String) -> String { S3Error.line("s3://\(bucket)/\(key)") }

    static func check(bucket: String) throws(S3Error) {
        let isName = bucket.utf8.allSatisfy {
            switch $0 {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
            default: false
            }
        }
        guard (1...255).contains(bucket.utf8.count), isName, bucket != ".", bucket != ".." else {
            throw .invalidName(S3Error.line(bucket), reason: "a bucket has letters, digits, dots and hyphens only")
        }
    }

    static func check(key: String) throws(S3Error) {
        let name = S3Error.line(key)
        guard !key.isEmpty else { throw .invalidName(name, reason: "the key is empty") }
        guard key.utf8.count <= longestKey else {
            throw .invalidName(name, reason: "the key has more than \(longestKey) bytes")
        }
        guard !key.utf8.contains(0) else { throw .invalidName(name, reason: "the key has a zero byte") }
        // Servers and proxies resolve them, and the signature would be wrong.
        let segments = key.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard !segments.contains(where: { $0.elementsEqual("..".utf8) || $0.elementsEqual(".".utf8) }) else {
            throw .invalidName(name, reason: "the key has a segment \".\" or \"..\"")
        }
    }
}

/// A failed attempt.
struct S3Failure {
    /// A measure before another attempt.
    enum Remedy {
        case none
        /// Another attempt, after the time that the server demands.
        case wait(Duration?)
        /// Another attempt with this difference of clocks.
        case setClock(Duration)
        /// Another attempt with credentials that are read again.
        case renewCredentials
    }

    let error: S3Error
    var remedy = Remedy.none
    /// Whether the attempt may have had an effect.
    var isUncertain = false

    init(_ error: S3Error) { self.error = error }

    /// The failure of a transfer.
    init(_ error: NetworkError, of call: S3Call) {
        switch error {
        case .cancelled: self.error = .cancelled(call.address)
        case .bodyTooLarge: self.error = .tooLarge(call.address, limit: call.limit)
        case .nameNotResolved, .notConnected:
            self.error = .network(call.address, error)
            remedy = .wait(nil)
        case .timedOut, .tookTooLong, .truncated:
            self.error = .network(call.address, error)
            remedy = .wait(nil)
            isUncertain = true
        case .invalidResponse, .headerTooLarge:
            self.error = .invalidResponse(call.address, reason: error.description)
            isUncertain = true
        default: self.error = .network(call.address, error)
        }
    }

    /// The failure that an answer reports; nil if it is a success.
    init?(_ answer: S3Answer, to call: S3Call, signedAt: Duration, now: Duration) {
        let status = answer.head.status
        let report = S3Report(answer)
        if (200..<300).contains(status) {
            guard let report, call.method == "POST" || call.method == "PUT" else { return nil }
            // Calls that take long begin with status 200 and may still fail.
            self.init(report, status: 500, answer: answer, call: call, signedAt: signedAt, now: now)
            return
        }
        if status == 304 { return nil }
        self.init(
            report ?? S3Report(code: "", message: ""), status: status, answer: answer, call: call, signedAt: signedAt,
            now: now)
    }

    private init(
        _ report: S3Report, status: Int, answer: S3Answer, call: S3Call, signedAt: Duration, now: Duration
    ) {
        let address = call.address
        let code = report.code
        let fields = answer.head.headers
        let retryAfter = fields["Retry-After"].flatMap { RetryAfter.delay($0, now: now) }
        let other = S3Error.server(address, status: status, code: code, message: report.message)
        switch (status, code) {
        case (300..<400, _), (400, "AuthorizationHeaderMalformed"):
            let region = fields["x-amz-bucket-region"] ?? report.region
            // Without a region it is about something else.
            error = status == 400 && region == nil ? other : .wrongRegion(address, region: region.map(S3Error.line))
        case (400, "RequestTimeout"):
            (error, remedy) = (.busy(address, status: status, retryAfter: retryAfter), .wait(retryAfter))
        case (400, "ExpiredToken"), (400, "InvalidToken"), (400, "TokenRefreshRequired"):
            (error, remedy) = (.denied(address, code: code, message: report.message), .renewCredentials)
        case (401, _), (403, _):
            error = .denied(address, code: code.isEmpty ? String(status) : code, message: report.message)
            remedy = Self.remedy(code, date: fields["Date"], signedAt: signedAt, now: now)
        case (404, "NoSuchBucket"): error = .noBucket(address)
        case (404, "NoSuchUpload"): error = other
        case (404, _): error = call.key.isEmpty ? .noBucket(address) : .notFound(address)
        case (409, "OperationAborted"), (409, "ConditionalRequestConflict"):
            (error, remedy) = (.changed(address), .wait(retryAfter))
        case (412, _):
            let isCreation = call.headers.contains { $0.name == "if-none-match" }
            error = isCreation ? .alreadyExists(address) : .changed(address)
        case (416, _): error = .invalidRange(address)
        case (501, _):
            error = .notSupported(address, reason: report.message.isEmpty ? "status 501" : report.message)
        case (408, _), (429, _), (500, _), (502, _), (503, _), (504, _):
            (error, remedy) = (.busy(address, status: status, retryAfter: retryAfter), .wait(retryAfter))
            // A gateway may fail although the server behind it has done its work.
            isUncertain = status != 429
        default: error = other
        }
    }

    /// The answer to `HEAD` has no code, so a difference of clocks is found by the date of the answer.
    private static func remedy(_ code: String, date: String?, signedAt: Duration, now: Duration) -> Remedy {
        switch code {
        case "ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "TokenRefreshRequired": return .renewCredentials
        default: break
        }
        guard let time = date.flatMap({ HTTPDate.seconds($0, now: now) }).map({ Duration.seconds($0) }) else {
            return .none
        }
        let difference = time - signedAt
        // Servers accept 15 minutes; an answer is younger than one.
        return difference > .seconds(60) || difference < .seconds(-60) ? .setClock(time - now) : .none
    }
}

/// The error in the body of an answer.
struct S3Report {
    let code: String
    let message: String
    var region: String?

    init(code: String, message: String) { (self.code, self.message) = (code, message) }

    /// Reads a body; nil if it has no error.
    init?(_ answer: S3Answer) {
        guard !answer.body.isEmpty, answer.body.count <= 64 << 10, let root = try? XMLReader.parse(answer.body),
            root.name == "Error"
        else { return nil }
        code = S3Error.line(root.text(of: "Code") ?? "")
        message = S3Error.line(root.text(of: "Message") ?? "")
        region = root.text(of: "Region")
    }
}
