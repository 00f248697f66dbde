// The only file that imports more of the library than its users see. The rest of the server uses what stands here.
@_spi(Files) import VitrineCore
@_spi(JPEGRows) @_spi(StoredPixels) import VitrineImaging
@_spi(JPEGRows) import VitrineJPEG
@_spi(HTTPCacheEngine) import VitrineNetwork

// MARK: Files

/// Converts between names of files, which are bytes, and text, without loss.
enum FileName {
    /// Returns the text of a name. Bytes that are not UTF-8 become private-use characters.
    static func text(of bytes: some Collection<UInt8>) -> String { FileNameText.text(of: bytes) }

    /// Returns the bytes of a text that ``text(of:)`` has made.
    static func bytes(of text: String) -> [UInt8] { FileNameText.bytes(of: text) }
}

#if !canImport(Darwin)
/// Reports changes of the entries of folders.
struct FolderEvents {
    private let events: DirectoryEvents

    /// Creates events without folders; nil if the system has none left.
    init?() {
        guard let events = DirectoryEvents(kinds: .contents) else { return nil }
        self.events = events
    }

    /// The descriptor that is readable when there are changes.
    var descriptor: Int32 { events.descriptor }

    /// Watches a folder, and returns its number; nil if it cannot be watched.
    func watch(_ path: String) -> Int32? {
        if case .number(let number) = events.watch(path) { number } else { nil }
    }

    /// Stops watching a folder.
    func end(_ number: Int32) { events.end(number) }

    /// Returns the numbers of the folders that have changed; nil if any of them may have.
    func read() -> Set<Int32>? { events.read().map { Set($0.map(\.watch)) } }
}
#endif

// MARK: Sources

extension URLAccessPolicy {
    /// Allows kinds of private addresses. If any is allowed, so are all ports: a private server may use any.
    mutating func allowPrivateAddresses(loopback: Bool, linkLocal: Bool, networks: Bool) {
        if loopback { privateExceptions.insert(.loopback) }
        if linkLocal { privateExceptions.insert(.linkLocal) }
        if networks { privateExceptions.insert(.networks) }
        if !privateExceptions.isEmpty { ports = nil }
    }

    /// Allows only URLs for which a closure returns true, redirects included.
    mutating func permit(_ isPermitted: @escaping @Sendable (_ url: String) -> Bool) { permitsURL = isPermitted }

    /// Tells keys of sources apart by the private addresses that they were loaded under.
    var kindOfSources: String {
        if allowsPrivateAddresses { return "web or private" }
        return privateExceptions.isEmpty ? "web" : "web \(privateExceptions.rawValue)"
    }

    /// Returns a URL as it is requested; nil if it is not valid.
    static func normalizedText(of url: String) -> String? { normalized(url) }
}

extension NetworkFetcher {
    /// Calls a closure before bytes of the body are kept in memory, with their number in all. Its error ends the load.
    mutating func reserve(_ reserve: @escaping @Sendable (_ bytes: Int) async throws(NetworkError) -> Void) {
        willHold = reserve
    }
}

/// The head of a response that the cache of sources has stored.
struct SourceHead: Sendable {
    let headers: HTTPHeaders
    let lastModified: String?

    /// Reads a head from the validator of its bytes; nil for bytes without one.
    init?(validator: [UInt8]) {
        guard let response = try? StoredResponse(bytes: validator) else { return nil }
        (headers, lastModified) = (response.headers, response.lastModified)
    }
}

// MARK: Images

extension ImageMetadata {
    /// The metadata of an image whose pixels keep their stored orientation.
    var forStoredPixels: ImageMetadata { sanitizedForStoredPixels() }
}

extension DecodeOptions {
    /// Options by which the pixels of a reduced JPEG may be means of those of the file.
    static var means: DecodeOptions {
        var options = DecodeOptions()
        options.acceptsMeans = true
        return options
    }
}

/// Where the rows of a JPEG file begin in its compressed data.
struct RowIndex: Sendable {
    private let index: JPEGRowIndex

    fileprivate init?(bytes: [UInt8]) {
        guard let index = JPEGRowIndex(bytes: bytes) else { return nil }
        self.index = index
    }

    /// The stored size of the image.
    var size: PixelSize { index.size }
    /// The bytes that the index takes in memory.
    var byteCount: Int { index.byteCount }

    /// Returns a JPEG file of some rows, and the row that it begins with; nil if there is none.
    func part(
        _ rows: Range<Int>, of input: ImageInput
    ) throws(ImageError) -> (bytes: [UInt8], firstRow: Int)? {
        guard let part = try index.part(rows, of: input) else { return nil }
        return (part.bytes, part.firstRow)
    }
}

extension ImageDecoder {
    /// Decodes a JPEG at a size, and finds in the same pass where its rows begin; a nil index if it has none.
    func surveyed(
        _ input: ImageInput, at size: PixelSize
    ) async throws -> (image: PixelImage, index: RowIndex?) {
        let found = try await survey(input, at: size)
        return (found.image, found.rowIndex.flatMap { RowIndex(bytes: $0) })
    }
}
