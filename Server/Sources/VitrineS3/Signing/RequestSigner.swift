import Crypto
import Foundation

/// Signs requests by AWS Signature Version 4, in header fields or in the query of a URL.
///
/// Source: Amazon S3 API Reference, "Authenticating Requests (AWS Signature Version 4)".
package struct RequestSigner: Sendable {
    /// The parts of a request that a signature covers.
    package struct Request: Sendable {
        package var method: String
        /// The value of the `Host` field.
        package var host: String
        /// The path as it is sent: encoded once, with its slashes.
        package var path: String
        /// The names and values of the query, not encoded.
        package var query: [(name: String, value: String)]
        /// The fields to sign besides `Host`.
        package var headers: [(name: String, value: String)]

        package init(
            method: String, host: String, path: String, query: [(name: String, value: String)] = [],
            headers: [(name: String, value: String)] = []
        ) {
            (self.method, self.host, self.path, self.query, self.headers) = (method, host, path, query, headers)
        }
    }

    /// The hash of a payload that the signature does not cover.
    package static let unsignedPayload = "UNSIGNED-PAYLOAD"

    private let credentials: S3Credentials
    private let region: String
    private let service: String

    package init(_ credentials: S3Credentials, region: String, service: String = "s3") {
        (self.credentials, self.region, self.service) = (credentials, region, service)
    }

    /// Returns the value of the `Authorization` field.
    ///
    /// - Parameters:
    ///   - request: The request. Its fields include `x-amz-date`, and a session token where there is one.
    ///   - payloadHash: The digest of the body in hexadecimal digits, or ``unsignedPayload``.
    ///   - time: The time of `x-amz-date`, since 1970.
    package func authorization(for request: Request, payloadHash: String, at time: Duration) -> String {
        let names = Self.signedNames(request)
        let signature = signature(of: request, names: names, payloadHash: payloadHash, time: time)
        return "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope(time)), "
            + "SignedHeaders=\(names), Signature=\(signature)"
    }

    /// Returns the query of a URL that anyone may use until it expires.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - seconds: How long the URL is valid.
    ///   - time: The time of the signature, since 1970.
    package func presignedQuery(for request: Request, seconds: Int, at time: Duration) -> String {
        var request = request
        let names = Self.signedNames(request)
        request.query += [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", credentials.accessKey + "/" + scope(time)),
            ("X-Amz-Date", S3Time.stamp(time)),
            ("X-Amz-Expires", String(seconds)),
            ("X-Amz-SignedHeaders", names)
        ]
        if let token = credentials.sessionToken { request.query.append(("X-Amz-Security-Token", token)) }
        let signature = signature(of: request, names: names, payloadHash: Self.unsignedPayload, time: time)
        return Self.encoded(request.query) + "&X-Amz-Signature=" + signature
    }

    private func signature(of request: Request, names: String, payloadHash: String, time: Duration) -> String {
        let canonical = [
            request.method, request.path, Self.encoded(request.query), Self.canonicalHeaders(request), names,
            payloadHash
        ].joined(separator: "\n")
        let text = [
            "AWS4-HMAC-SHA256", S3Time.stamp(time), scope(time), Self.digest(Array(canonical.utf8))
        ].joined(separator: "\n")
        var key = SymmetricKey(data: Array("AWS4".utf8) + Array(credentials.secretKey.utf8))
        for part in [String(S3Time.stamp(time).prefix(8)), region, service, "aws4_request"] {
            key = SymmetricKey(data: HMAC<SHA256>.authenticationCode(for: Array(part.utf8), using: key))
        }
        return Self.hexadecimal(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
    }

    private func scope(_ time: Duration) -> String {
        "\(S3Time.stamp(time).prefix(8))/\(region)/\(service)/aws4_request"
    }

    private static func fields(_ request: Request) -> [(name: String, value: String)] {
        var fields = request.headers.map { (name: $0.name.lowercased(), value: collapsed($0.value)) }
        fields.append(("host", request.host))
        return fields.sorted { $0.name < $1.name }
    }

    private static func signedNames(_ request: Request) -> String {
        fields(request).map(\.name).joined(separator: ";")
    }

    private static func canonicalHeaders(_ request: Request) -> String {
        fields(request).map { $0.name + ":" + $0.value + "\n" }.joined()
    }

    /// Returns a value without surrounding blanks and with one blank in place of several.
    private static func collapsed(_ value: String) -> String {
        value.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
    }

    /// Returns a query with its names in order, encoded as it is signed and sent.
    package static func encoded(_ query: [(name: String, value: String)]) -> String {
        let pairs = query.map { (encoded($0.name), encoded($0.value)) }
        return pairs.sorted { $0.0 == $1.0 ? $0.1 < $1.1 : $0.0 < $1.0 }.map { $0.0 + "=" + $0.1 }
            .joined(separator: "&")
    }

    /// Returns a text in which all bytes but unreserved ones (RFC 3986, section 2.3) are percent-encoded.
    package static func encoded(_ text: String, keepsSlashes: Bool = false) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.append(byte)
            case UInt8(ascii: "/") where keepsSlashes: result.append(byte)
            default: result += [UInt8(ascii: "%"), upperDigits[Int(byte >> 4)], upperDigits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static let upperDigits = Array("0123456789ABCDEF".utf8)
    private static let lowerDigits = Array("0123456789abcdef".utf8)

    /// Returns the SHA-256 digest of bytes in hexadecimal digits.
    package static func digest(_ bytes: [UInt8]) -> String { hexadecimal(SHA256.hash(data: bytes)) }

    package static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        var digits: [UInt8] = []
        for byte in bytes { digits += [lowerDigits[Int(byte >> 4)], lowerDigits[Int(byte & 15)]] }
        return String(decoding: digits, as: UTF8.self)
    }
}
