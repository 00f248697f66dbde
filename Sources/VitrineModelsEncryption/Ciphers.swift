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

/// Seals values by AES-256 in Galois/Counter Mode (NIST SP 800-38D): the faster one where processors have instructions
/// for AES.
///
/// ```swift
/// let store = try ObjectStore(at: path, configuration: .init(cipher: AESGCMCipher(key: key)))
/// ```
///
/// Each value gets a nonce of 96 bits by chance. One key should seal no more than 2³² values (section 8.3 there).
public struct AESGCMCipher: ObjectEncryption {
    private let key: EncryptionKey

    public init(key: EncryptionKey) { self.key = key }

    public var name: String { "AES-256-GCM" }

    /// Nonce, ciphertext and tag: 28 bytes more than was given.
    public func seal(_ bytes: [UInt8], context: [UInt8]) throws -> [UInt8] {
        try sealing {
            let box = try AES.GCM.seal(bytes, using: key.symmetric, authenticating: context)
            return [UInt8](box.nonce) + [UInt8](box.ciphertext) + [UInt8](box.tag)
        }
    }

    /// - Throws: ``EncryptionError/notAuthentic``.
    public func open(_ sealed: [UInt8], context: [UInt8]) throws -> [UInt8] {
        try opening {
            [UInt8](try AES.GCM.open(.init(combined: sealed), using: key.symmetric, authenticating: context))
        }
    }
}

/// Seals values by ChaCha20 and Poly1305 (RFC 8439): fast also where processors have no instructions for AES.
///
/// Each value gets a nonce of 96 bits by chance. One key should seal no more than 2³² values.
public struct ChaChaPolyCipher: ObjectEncryption {
    private let key: EncryptionKey

    public init(key: EncryptionKey) { self.key = key }

    public var name: String { "ChaCha20-Poly1305" }

    /// Nonce, ciphertext and tag: 28 bytes more than was given.
    public func seal(_ bytes: [UInt8], context: [UInt8]) throws -> [UInt8] {
        try sealing { [UInt8](try ChaChaPoly.seal(bytes, using: key.symmetric, authenticating: context).combined) }
    }

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

/// Whatever is wrong with sealed bytes, they are not what was sealed.
private func opening(_ body: () throws -> [UInt8]) throws(EncryptionError) -> [UInt8] {
    do {
        return try body()
    } catch {
        throw .notAuthentic
    }
}
#endif
