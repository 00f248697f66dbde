#if Encryption
#if canImport(CryptoKit)
import CryptoKit
#else
import Crypto
#endif
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCore

/// A secret key of 256 bits. Keep it in a keychain or on a smart card, or derive it from a password.
public struct EncryptionKey: Sendable {
    /// The number of bytes of a key.
    public static let size = 32

    let symmetric: SymmetricKey

    /// Creates a random key from the system's random number generator.
    public init() { symmetric = SymmetricKey(size: .bits256) }

    /// Creates a key from its bytes. Never use a password as a key: derive a key from it.
    ///
    /// - Throws: ``EncryptionError/keySize(_:)`` if there are not exactly 32 bytes.
    public init(bytes: [UInt8]) throws(EncryptionError) {
        guard bytes.count == Self.size else { throw .keySize(bytes.count) }
        symmetric = SymmetricKey(data: bytes)
    }

    /// The 32 bytes of the key.
    public var bytes: [UInt8] { symmetric.withUnsafeBytes { [UInt8]($0) } }
}

/// An error of encryption or decryption.
public enum EncryptionError: Error, Sendable, Equatable {
    /// The key has this number of bytes instead of 32.
    case keySize(Int)
    /// The bytes were encrypted with another key or for another place, or were changed since.
    case notAuthentic
    /// The cryptographic library failed, for this reason.
    case failed(String)
}

extension EncryptionError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// A description of the error.
    public var description: String {
        switch self {
        case .keySize(let count): "The key has \(count) bytes instead of \(EncryptionKey.size)."
        case .notAuthentic: "The bytes were encrypted with another key or for another place, or were changed since."
        case .failed(let reason): ErrorText.sentence("Encryption or decryption failed: \(reason)")
        }
    }
}
#endif
