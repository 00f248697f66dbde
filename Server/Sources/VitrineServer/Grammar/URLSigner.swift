import Crypto
import Foundation

/// Signs the paths of processing URLs and checks their signatures.
///
/// ```swift
/// let signer = URLSigner(key: key, salt: salt)
/// let path = "/rs:fit:200:200/plain/https://example.com/a.jpg"
/// let signed = "/\(signer.sign(path))\(path)"
/// ```
///
/// Checks take the same time for every signature of a length, so that answers do not reveal a part of a valid one.
public struct URLSigner: Sendable {
    /// How a signature is made.
    package enum Algorithm: String, Sendable {
        /// HMAC-SHA256 of salt and path, the path with its leading slash, in base64 for URLs without padding:
        /// imgproxy's signature.
        case sha256
        /// HMAC-SHA1 of the path without its leading slash, in base64 for URLs with padding, without a salt: thumbor's
        /// signature.
        case thumborSHA1
    }

    /// Whether there is a key. A signer without keys accepts no signature.
    package var hasKeys: Bool { !pairs.isEmpty }

    private let pairs: [(key: [UInt8], salt: [UInt8])]
    private let size: Int
    private let trusted: Set<String>
    private let algorithm: Algorithm

    /// Creates a signer.
    ///
    /// - Parameters:
    ///   - pairs: Each with a key and a salt. The first signs; signatures of all are accepted, which allows to replace
    ///     a key without invalid URLs.
    ///   - size: The bytes of a signature, from 1 to 32; the rest is cut off. Signatures for
    ///     ``Algorithm/thumborSHA1`` always have 20 bytes. Default 32.
    ///   - trusted: Texts that are accepted in the place of any signature.
    ///   - algorithm: The algorithm. Default ``Algorithm/sha256``.
    package init(
        pairs: [(key: [UInt8], salt: [UInt8])], size: Int = 32, trusted: Set<String> = [],
        algorithm: Algorithm = .sha256
    ) {
        self.pairs = pairs
        self.size = min(max(size, 1), 32)
        self.trusted = trusted
        self.algorithm = algorithm
    }

    /// Creates a signer for URLs of imgproxy's kind.
    ///
    /// - Parameters:
    ///   - key: The key, for example of ``ServerConfiguration/keys``.
    ///   - salt: The salt of the key.
    ///   - size: The bytes of a signature, from 1 to 32, as ``ServerConfiguration/signatureSize``. Default 32.
    public init(key: [UInt8], salt: [UInt8], size: Int = 32) {
        self.init(pairs: [(key: key, salt: salt)], size: size)
    }

    /// Returns the signature of a path by the first pair; empty without pairs.
    ///
    /// - Parameter path: The path behind the signature, percent-encoded, with its leading slash.
    public func sign(_ path: String) -> String {
        pairs.first.map { String(decoding: signature(of: message(path[...]), by: $0), as: UTF8.self) } ?? ""
    }

    /// Returns whether a signature is valid for a path by any pair, or trusted.
    ///
    /// - Parameters:
    ///   - signature: As the client sent it.
    ///   - path: The path behind the signature, as the client sent it, with its leading slash. A query is signed by
    ///     ``Algorithm/thumborSHA1`` only. Paths in which a proxy has merged the slashes of `http://` are also
    ///     compared with the original.
    package func isValid(_ signature: Substring, for path: Substring) -> Bool {
        var given = Array(signature.utf8)
        if algorithm == .thumborSHA1, signature.hasSuffix("%3D") || signature.hasSuffix("%3d") {
            given = Array(given.dropLast(3)) + [UInt8(ascii: "=")]
        }
        var isValid = false
        for text in trusted where isEqual(given, Array(text.utf8)) { isValid = true }
        let sent = message(path)
        var messages = [sent]
        if algorithm == .sha256, let restored = restoringSlashes(of: sent) { messages.append(restored) }
        for pair in pairs {
            for message in messages where isEqual(given, self.signature(of: message, by: pair)) { isValid = true }
        }
        return isValid
    }

    /// The text that is signed.
    private func message(_ path: Substring) -> Substring {
        switch algorithm {
        case .sha256: GrammarText.withoutQuery(path)
        case .thumborSHA1: path.hasPrefix("/") ? path.dropFirst() : path
        }
    }

    /// The path with the slashes of a plain source restored; nil if none are missing.
    private func restoringSlashes(of path: Substring) -> Substring? {
        guard let marker = path.firstRange(of: "/plain/") else { return nil }
        let source = path[marker.upperBound...]
        let restored = GrammarText.restoringSlashes(of: source)
        return restored == source ? nil : "\(path[..<marker.upperBound])\(restored)"[...]
    }

    /// The signature as it stands in a URL.
    private func signature(of message: Substring, by pair: (key: [UInt8], salt: [UInt8])) -> [UInt8] {
        let key = SymmetricKey(data: pair.key)
        switch algorithm {
        case .sha256:
            var code = HMAC<SHA256>(key: key)
            code.update(data: pair.salt)
            code.update(data: Array(message.utf8))
            return URLSigner.base64(Array(code.finalize().prefix(size)), isPadded: false)
        case .thumborSHA1:
            let code = HMAC<Insecure.SHA1>.authenticationCode(for: Array(message.utf8), using: key)
            return URLSigner.base64(Array(code), isPadded: true)
        }
    }

    private static func base64(_ bytes: [UInt8], isPadded: Bool) -> [UInt8] {
        Data(bytes).base64EncodedData().compactMap { byte in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            case UInt8(ascii: "="): isPadded ? byte : nil
            default: byte
            }
        }
    }

    /// Compares in a time that depends on the length only.
    private func isEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        guard a.count == b.count else { return false }
        var difference: UInt8 = 0
        for (x, y) in zip(a, b) { difference |= x ^ y }
        return difference == 0
    }

    /// Checks the part of a path in the place of a signature where none is needed.
    ///
    /// - Throws: ``RequestError`` for an option, which shows that the signature was forgotten.
    package static func checkPlaceholder(_ signature: Substring) throws(RequestError) {
        guard !signature.isEmpty, !signature.contains(":"), !signature.contains("%") else {
            throw RequestError(
                400, code: "malformed-path",
                reason: "The path begins with a signature, or with /insecure/ where none is needed.")
        }
    }
}
