/// Seals what a store holds, with a key of the caller's. `AESGCMCipher` and `ChaChaPolyCipher` of
/// VitrineModelsEncryption are ready to use, with the package's trait `Encryption`.
///
/// What is sealed can be opened with the same key and the same context only, and not at all if a bit of it has changed.
public protocol ObjectEncryption: Sendable {
    /// What the method is called, the same for ever: a store remembers it.
    var name: String { get }
    /// Seals bytes.
    ///
    /// - Parameters:
    ///   - bytes: What to seal.
    ///   - context: Where they belong, which is not stored but must be the same for opening them.
    func seal(_ bytes: [UInt8], context: [UInt8]) throws -> [UInt8]
    /// Opens what ``seal(_:context:)`` made.
    ///
    /// - Throws: Anything, if the key or the context is another or if the bytes were changed.
    func open(_ sealed: [UInt8], context: [UInt8]) throws -> [UInt8]
}

/// Turns a store's values into what its file holds, and back.
struct ValueSeal: Sendable {
    let cipher: (any ObjectEncryption)?

    func seal(_ bytes: [UInt8], _ key: String, _ group: ObjectGroup) throws(PersistenceError) -> [UInt8] {
        guard let cipher else { return bytes }
        do {
            return try cipher.seal(bytes, context: Self.context(key, group))
        } catch {
            throw .sealing("\(error)")
        }
    }

    /// The key was checked when the store was opened: what cannot be opened was changed.
    func open(_ sealed: [UInt8], _ key: String, _ group: ObjectGroup) throws(PersistenceError) -> [UInt8] {
        guard let cipher else { return sealed }
        do {
            return try cipher.open(sealed, context: Self.context(key, group))
        } catch {
            throw .damaged
        }
    }

    func seal(
        _ stored: StoredBytes, _ key: String, _ group: ObjectGroup
    ) throws(PersistenceError) -> StoredBytes {
        StoredBytes(bytes: try seal(stored.bytes, key, group), schemas: stored.schemas)
    }

    /// The place of a value, so that one cannot be put in another's place. The group's length keeps the two apart.
    private static func context(_ key: String, _ group: ObjectGroup) -> [UInt8] {
        let path = Array(group.path.utf8)
        return withUnsafeBytes(of: UInt64(path.count).littleEndian) { Array($0) } + path + Array(key.utf8)
    }

    // MARK: The store's own mark

    private static let mark = Array("vitrine objects".utf8)
    private static let markContext = Array("mark".utf8)

    /// What a new store remembers of its cipher; nil for none.
    func mark() throws(PersistenceError) -> (name: String, mark: [UInt8])? {
        guard let cipher else { return nil }
        do {
            return (cipher.name, try cipher.seal(Self.mark, context: Self.markContext))
        } catch {
            throw .sealing("\(error)")
        }
    }

    /// Compares the cipher with that of a store.
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
