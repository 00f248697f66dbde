#if Encryption
public import VitrineModels

#if canImport(CryptoKit)
import CryptoKit
#else
import Crypto
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// AES-256 in Galois/Counter Mode (NIST SP 800-38D). The faster cipher on processors with AES instructions.
///
/// ```swift
/// let store = try ObjectStore(at: path, configuration: .init(cipher: AESGCMCipher(key: key)))
/// ```
///
/// Each value gets a random nonce of 96 bits. Encrypt at most 2³² values with one key (NIST SP 800-38D, section 8.3).
public struct AESGCMCipher: ObjectEncryption {
    private let key: EncryptionKey

    /// Creates a cipher with a key.
    public init(key: EncryptionKey) { self.key = key }

    /// The name `AES-256-GCM`.
    public var name: String { "AES-256-GCM" }

    /// Encrypts bytes. The result is nonce, ciphertext and tag, 28 bytes longer than the input.
    public func seal(_ bytes: [UInt8], context: [UInt8]) throws -> [UInt8] {
        try sealing {
            let box = try AES.GCM.seal(bytes, using: key.symmetric, authenticating: context)
            return [UInt8](box.nonce) + [UInt8](box.ciphertext) + [UInt8](box.tag)
        }
    }

    /// Decrypts bytes.
    ///
    /// - Throws: ``EncryptionError/notAuthentic``.
    public func open(_ sealed: [UInt8], context: [UInt8]) throws -> [UInt8] {
        try opening {
            [UInt8](try AES.GCM.open(.init(combined: sealed), using: key.symmetric, authenticating: context))
        }
    }
}

/// ChaCha20 and Poly1305 (RFC 8439). The faster cipher on processors without AES instructions.
///
/// Each value gets a random nonce of 96 bits. Encrypt at most 2³² values with one key.
public struct ChaChaPolyCipher: ObjectEncryption {
    private let key: EncryptionKey

    /// Creates a cipher with a key.
    public init(key: EncryptionKey) { self.key = key }

    /// The name `ChaCha20-Poly1305`.
    public var name: String { "ChaCha20-Poly1305" }

    /// Encrypts bytes. The result is nonce, ciphertext and tag, 28 bytes longer than the input.
    public func seal(_ bytes: [UInt8], context: [UInt8]) throws -> [UInt8] {
        try sealing { [UInt8](try ChaChaPoly.seal(bytes, using: key.symmetric, authenticating: context).combined) }
    }

    /// Decrypts bytes.
    ///
    /// - Throws: ``EncryptionError/notAuthentic``.
    public func open(_ sealed: [UInt8], context: [UInt8]) throws -> [UInt8] {
        try opening {
            [UInt8](try ChaChaPoly.open(.init(combined: sealed), using: key.symmetric, authenticating: context))
        }
    }
}

private func sealing(_ body: () throws -> [UInt8]) throws(EncryptionError) -> [UInt8] {
    do {
        return try body()
    } catch {
        throw .failed("\(error)")
    }
}

/// Reports every failure as bytes that are not authentic.
private func opening(_ body: () throws -> [UInt8]) throws(EncryptionError) -> [UInt8] {
    do {
        return try body()
    } catch {
        throw .notAuthentic
    }
}
#endif
