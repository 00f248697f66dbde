#if Encryption
#if canImport(CryptoKit)
import CryptoKit
#else
import Crypto
#endif

/// A secret of 256 bits. It is the caller's to keep: in a keychain, on a smart card, or derived from a password.
public struct EncryptionKey: Sendable {
    /// How many bytes a key has.
    public static let size = 32

    let symmetric: SymmetricKey

    /// A key of chance, from the system's source of randomness.
    public init() { symmetric = SymmetricKey(size: .bits256) }

    /// A key from its bytes.
    ///
    /// - Throws: ``EncryptionError/keySize(_:)`` if there are not 32. A password is no key: derive one from it.
    public init(bytes: [UInt8]) throws(EncryptionError) {
        guard bytes.count == Self.size else { throw .keySize(bytes.count) }
        symmetric = SymmetricKey(data: bytes)
    }

    /// The 32 bytes, to be kept where nobody else can read.
    public var bytes: [UInt8] { symmetric.withUnsafeBytes { [UInt8]($0) } }
}

/// Why something could not be sealed or opened.
public enum EncryptionError: Error, Sendable, Equatable {
    /// A key has 32 bytes, not so many.
    case keySize(Int)
    /// It was sealed with another key or for another place, or it was changed since.
    case notAuthentic
    /// The cryptographic library refused, for this reason.
    case failed(String)
}

extension EncryptionError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .keySize(let count): "A key has \(EncryptionKey.size) bytes, not \(count)."
        case .notAuthentic: "It was sealed with another key or for another place, or it was changed since."
        case .failed(let reason): "Sealing or opening failed: \(reason)."
        }
    }
}
#endif
