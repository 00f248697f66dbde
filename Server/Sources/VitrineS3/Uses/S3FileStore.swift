import Foundation
public import VitrineCore

/// A store of named files in a bucket.
///
/// ```swift
/// let letters = S3FileStore(bucket, prefix: "letters")
/// try await letters.save(bytes, as: "Änderung.txt")     // in the store when it returns
/// let again = try await letters.load("Änderung.txt")
/// ```
///
/// It takes the place of a `FileStore` in all code that is written for `FileStoring`. `copyFiles(to:replacing:)` moves
/// files between them.
///
/// - A save is atomic, and durable when it returns.
/// - **Names** are one path component in any Unicode, up to 255 bytes of UTF-8. Names are compared by their bytes.
/// - Several programs may use one prefix at the same time. Two calls differ from those of a directory:
///   ``rename(_:to:replacing:)`` copies and deletes, and saves that must not replace need a server with conditional
///   writes to exclude each other.
public struct S3FileStore: FileStoring {
    /// The errors of the store.
    public typealias Failure = S3Error

    private let bucket: S3Bucket
    /// Empty, or with a slash at the end.
    private let prefix: String

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - bucket: The bucket.
    ///   - prefix: The names of directories above the files, separated by slashes. Default: none.
    public init(_ bucket: S3Bucket, prefix: String = "") {
        self.bucket = bucket
        self.prefix = prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/"
    }

    private func key(_ name: String) throws(S3Error) -> String {
        let count = name.utf8.count
        guard !name.isEmpty, name != ".", name != "..", count <= 255, !name.utf8.contains(UInt8(ascii: "/")),
            !name.utf8.contains(0)
        else {
            throw .invalidName(
                S3Error.line(name), reason: "a name has 1 to 255 bytes, no slash and no zero byte, and is not . or ..")
        }
        return prefix + name
    }

    // MARK: Saving

    /// Saves bytes under a name.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - name: The name of the file.
    ///   - replacing: Whether to replace an existing file. If false and the server has no conditional writes, the store
    ///     looks for the file first; of two saves at the same time, the later one then replaces the other. Default
    ///     true.
    /// - Throws: ``S3Error/alreadyExists(_:)`` and others; the store is then unchanged.
    public func save(_ bytes: [UInt8], as name: String, replacing: Bool = true) async throws(S3Error) {
        let key = try key(name)
        guard !replacing else {
            try await bucket.put(bytes, as: key)
            return
        }
        do throws(S3Error) {
            try await bucket.put(bytes, as: key, replacing: false)
        } catch .notSupported {
            try await checkAbsence(of: key)
            try await bucket.put(bytes, as: key)
        }
    }

    private func checkAbsence(of key: String) async throws(S3Error) {
        guard try await !bucket.exists(key) else { throw .alreadyExists(bucket.address(key)) }
    }

    /// Saves bytes under a new name that sorts by time: microseconds since 1970, random digits and an extension.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - fileExtension: The extension without a dot. Default nil: none.
    /// - Returns: The name.
    public func save(_ bytes: [UInt8], fileExtension: String? = nil) async throws(S3Error) -> String {
        let time = Int64(WallClock.system.now / .microseconds(1))
        let random = String(UInt32.random(in: .min ... .max), radix: 16)
        let name =
            "\(time)-" + String(repeating: "0", count: 8 - random.count) + random
            + (fileExtension.map { $0.isEmpty ? "" : "." + $0 } ?? "")
        try await bucket.put(bytes, as: try key(name))
        return name
    }

    /// Saves a sequence of chunks. A few parts of an upload are in memory.
    ///
    /// - Parameters:
    ///   - chunks: The contents. If the sequence throws or the task is cancelled, the store stays unchanged.
    ///   - name: The name of the file.
    ///   - replacing: As for ``save(_:as:replacing:)``. Default true.
    /// - Returns: The number of saved bytes.
    /// - Throws: ``S3Error``, or the error of `chunks`.
    @discardableResult
    public func save<Chunks: AsyncSequence & Sendable>(
        chunks: Chunks, as name: String, replacing: Bool = true
    ) async throws -> Int where Chunks.Element == [UInt8] {
        let key = try key(name)
        // The chunks can be read once, so the answer has to be known before.
        if !replacing { try await checkAbsence(of: key) }
        let isConditional = !replacing && bucket.client.supportsConditions(bucket.name)
        return try await bucket.put(chunks: chunks, as: key, replacing: !isConditional)
    }

    // MARK: Loading

    /// Returns the bytes of a file.
    ///
    /// - Throws: ``S3Error/notFound(_:)``, ``S3Error/tooLarge(_:limit:)`` and others.
    public func load(_ name: String) async throws(S3Error) -> [UInt8] { try await bucket.get(try key(name)).bytes }

    /// Returns the bytes of a file in chunks, which are loaded on demand; see ``S3Bucket/chunks(of:size:)``.
    public func chunks(of name: String, size: ByteCount = .mebibytes(8)) throws(S3Error) -> S3Chunks {
        bucket.chunks(of: try key(name), size: size)
    }

    // MARK: Managing

    /// Deletes a file.
    ///
    /// - Returns: false if there was no file, which is not an error.
    @discardableResult
    public func delete(_ name: String) async throws(S3Error) -> Bool {
        let key = try key(name)
        guard try await bucket.exists(key) else { return false }
        try await bucket.delete(key)
        return true
    }

    /// Renames a file of up to 5 GB. The file has both names for a moment.
    ///
    /// - Parameters:
    ///   - name: The current name.
    ///   - newName: The new name.
    ///   - replacing: Whether to replace an existing file. If false, the store looks for the file first. Default false.
    /// - Throws: ``S3Error/notFound(_:)``, ``S3Error/alreadyExists(_:)`` and others.
    public func rename(_ name: String, to newName: String, replacing: Bool = false) async throws(S3Error) {
        let key = try key(name)
        let newKey = try self.key(newName)
        guard key != newKey else {
            guard try await bucket.exists(key) else { throw .notFound(bucket.address(key)) }
            return
        }
        if !replacing { try await checkAbsence(of: newKey) }
        try await bucket.copy(key, to: newKey)
        try await bucket.delete(key)
    }

    /// Returns whether there is a file with this name; false for an invalid name.
    public func exists(_ name: String) async throws(S3Error) -> Bool {
        guard let key = try? key(name) else { return false }
        return try await bucket.exists(key)
    }

    /// Returns the files, in the order of the bytes of their names. Their ``S3Object/key`` is the name.
    public func list() async throws(S3Error) -> [S3Object] {
        var objects: [S3Object] = []
        var token: String?
        repeat {
            let page = try await bucket.page(prefix: prefix, delimiter: "/", after: token)
            for var object in page.objects {
                object.key = String(decoding: object.key.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
                // Some programs store an object for the directory itself.
                if !object.key.isEmpty, !object.key.utf8.contains(UInt8(ascii: "/")) { objects.append(object) }
            }
            token = page.next
        } while token != nil
        return objects.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    /// The names of the files, in the order of their bytes.
    public var names: [String] {
        get async throws(S3Error) { try await list().map(\.key) }
    }
}
