internal import VitrineCore

/// A cipher for the values of a store.
///
/// `AESGCMCipher` and `ChaChaPolyCipher` of VitrineModelsEncryption implement it; they need the package's trait
/// `Encryption`. A cipher must authenticate: opening succeeds only with the same key, the same context and unchanged
/// bytes.
public protocol ObjectEncryption: Sendable {
    /// The name of the method. It must never change, because stores record it.
    var name: String { get }
    /// Encrypts and authenticates bytes.
    ///
    /// - Parameters:
    ///   - bytes: The bytes to encrypt.
    ///   - context: Additional authenticated data: the place of the value in the store. It is not part of the result.
    func seal(_ bytes: [UInt8], context: [UInt8]) throws -> [UInt8]
    /// Decrypts bytes that ``seal(_:context:)`` returned.
    ///
    /// - Throws: Any error if the key or the context differs, or if the bytes were changed.
    func open(_ sealed: [UInt8], context: [UInt8]) throws -> [UInt8]
}

/// Converts the values of a store to the bytes in its file, and back.
struct ValueSeal: Sendable {
    let cipher: (any ObjectEncryption)?

    func seal(_ bytes: [UInt8], key: String, group: GroupPath) throws(PersistenceError) -> [UInt8] {
        guard let cipher else { return bytes }
        do {
            return try cipher.seal(bytes, context: Self.context(key, group))
        } catch {
            throw .sealing("\(error)")
        }
    }

    /// Opens a value. A failure means damage, because the key was checked when the store was opened.
    func open(_ sealed: [UInt8], key: String, group: GroupPath) throws(PersistenceError) -> [UInt8] {
        guard let cipher else { return sealed }
        do {
            return try cipher.open(sealed, context: Self.context(key, group))
        } catch {
            throw .damaged
        }
    }

    func seal(
        _ stored: StoredBytes, key: String, group: GroupPath
    ) throws(PersistenceError) -> StoredBytes {
        StoredBytes(bytes: try seal(stored.bytes, key: key, group: group), schemas: stored.schemas)
    }

    /// Returns the place of a value, so that values cannot be exchanged. The length of the group separates group and
    /// key.
    private static func context(_ key: String, _ group: GroupPath) -> [UInt8] {
        let path = Array(group.path.utf8)
        return withUnsafeBytes(of: UInt64(path.count).littleEndian) { Array($0) } + path + Array(key.utf8)
    }

    // MARK: The mark of the store

    private static let mark = Array("vitrine objects".utf8)
    private static let markContext = Array("mark".utf8)

    /// Returns the record of the cipher for a new store; nil without a cipher.
    func mark() throws(PersistenceError) -> (name: String, mark: [UInt8])? {
        guard let cipher else { return nil }
        do {
            return (cipher.name, try cipher.seal(Self.mark, context: Self.markContext))
        } catch {
            throw .sealing("\(error)")
        }
    }

    /// Compares the cipher with the cipher of a store.
    func check(_ known: (name: String, mark: [UInt8])?, path: String) throws(PersistenceError) {
        switch (cipher, known) {
        case (nil, nil): return
        case (nil, let known?):
            throw .wrongKey(path: path, reason: "it is encrypted by \(known.name), and no key was given")
        case (_?, nil): throw .wrongKey(path: path, reason: "it is not encrypted, but a key was given")
        case (let cipher?, let known?):
            guard cipher.name == known.name else {
                throw .wrongKey(path: path, reason: "it is encrypted by \(known.name), not by \(cipher.name)")
            }
            guard (try? cipher.open(known.mark, context: Self.markContext)) == Self.mark else {
                throw .wrongKey(path: path, reason: "it is encrypted with another key")
            }
        }
    }
}
