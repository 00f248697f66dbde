import CVitrineSandbox
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The source of an image's bytes.
public enum ImageInput: Sendable {
    /// A regular file, by its path. Opened for each read.
    case file(String)
    /// Bytes in memory, with a name for errors.
    case bytes([UInt8], name: String = "data")

    /// Returns a file as input. VitrineNetwork loads URLs of other schemes.
    ///
    /// - Precondition: `url` is a `file:` URL.
    public static func file(_ url: URL) -> ImageInput {
        precondition(url.isFileURL, "\(url) is not a file URL")
        return .file(url.path)
    }

    /// Returns bytes in memory as input, with a name for errors.
    public static func data(_ data: Data, name: String = "data") -> ImageInput { .bytes([UInt8](data), name: name) }

    /// The path, or the name given with the bytes. Errors contain it.
    package var name: String {
        switch self {
        case .file(let path): path
        case .bytes(_, let name): name
        }
    }
}

/// An opened ``ImageInput`` with random access to its bytes.
///
/// Files are read with `pread`, never mapped: a file that shrinks while it is read gives an error, not a signal.
public final class ByteSource: Sendable {
    private enum Backing {
        case descriptor(Int32, owned: Bool)
        case bytes([UInt8])
        /// Bytes that another object keeps.
        case storage(PixelStorage)
        /// A run of bytes of another source, from this offset on.
        case part(ByteSource, Int)
        /// Another source, until a token is cancelled.
        case polled(ByteSource, CancellationToken)
    }

    /// The name of the input in errors.
    public let name: String
    /// The number of bytes when the input was opened.
    public let count: Int
    private let backing: Backing

    /// Opens `input`.
    ///
    /// - Throws: ``ImageError/unreadable(input:reason:)`` when the file is absent, not readable or not a regular file.
    public convenience init(_ input: ImageInput) throws(ImageError) {
        switch input {
        case .bytes(let bytes, let name):
            self.init(bytes: bytes, name: name)
        case .file(let path):
            // O_NONBLOCK: opening a FIFO without a writer must not wait for ever.
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else { throw .unreadable(input: path, reason: ByteSource.message(errno)) }
            do {
                try self.init(descriptor: descriptor, name: path, owned: true)
            } catch {
                close(descriptor)
                throw error
            }
        }
    }

    /// Creates a source of bytes in memory.
    package init(bytes: [UInt8], name: String) {
        self.name = name
        count = bytes.count
        backing = .bytes(bytes)
    }

    /// Creates a source of bytes that do not change while `storage` exists. Copies nothing.
    package init(storage: PixelStorage, name: String) {
        self.name = name
        count = storage.count
        backing = .storage(storage)
    }

    /// Creates a source of the beginning of an input that has `count` bytes in all. Bytes behind it cannot be read.
    package init(beginning bytes: [UInt8], count: Int, name: String) {
        self.name = name
        self.count = max(count, bytes.count)
        backing = .bytes(bytes)
    }

    /// Whether this range cannot be read to its end, as only the beginning of the input is there.
    package func lacks(_ range: Range<Int>) -> Bool {
        if case .polled(let source, _) = backing { return source.lacks(range) }
        guard case .bytes(let bytes) = backing else { return false }
        return bytes.count < count && range.upperBound > bytes.count
    }

    /// Creates a source of the same bytes whose reads fail with ``ImageError/cancelled(input:)`` once a token is
    /// cancelled. Copies nothing.
    ///
    /// A deadline thus stops everything that reads foreign bytes, such as headers and the search for covers.
    package init(_ source: ByteSource, polling cancellation: CancellationToken) {
        name = source.name
        count = source.count
        backing = .polled(source, cancellation)
    }

    /// Throws ``ImageError/cancelled(input:)`` once the work that reads this source is to stop. For loops that read
    /// nothing, and for results of readers that pass over errors.
    package func poll() throws(ImageError) {
        switch backing {
        case .polled(let source, let token):
            if token.isCancelled { throw .cancelled(input: name) }
            try source.poll()
        case .part(let whole, _): try whole.poll()
        case .descriptor, .bytes, .storage: break
        }
    }

    /// Creates a source of a range of another one, cut at its end. Copies nothing.
    package init(_ range: Range<Int>, of source: ByteSource) {
        let clipped = range.clamped(to: 0..<source.count)
        name = source.name
        count = clipped.count
        // Parts of parts read from the whole.
        if case .part(let whole, let start) = source.backing {
            backing = .part(whole, start + clipped.lowerBound)
        } else {
            backing = .part(source, clipped.lowerBound)
        }
    }

    /// Creates a source of an open regular file; closes it with the source if `owned`.
    package init(descriptor: Int32, name: String, owned: Bool) throws(ImageError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw .unreadable(input: name, reason: ByteSource.message(errno))
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw .unreadable(input: name, reason: "is a directory")
        default: throw .unreadable(input: name, reason: "is not a regular file")
        }
        self.name = name
        count = Int(status.st_size)
        backing = .descriptor(descriptor, owned: owned)
    }

    deinit {
        if case .descriptor(let descriptor, owned: true) = backing { close(descriptor) }
    }

    /// The descriptor of a file input, for other processes; nil for bytes in memory and for a part of a file.
    package var descriptor: Int32? {
        switch backing {
        case .descriptor(let descriptor, _): descriptor
        case .polled(let source, _): source.descriptor
        case .bytes, .storage, .part: nil
        }
    }

    /// Reads up to `buffer.count` bytes at `offset`, fewer only at the end of the input.
    ///
    /// - Returns: The number of bytes read; 0 at or behind the end, and for a negative offset.
    /// - Throws: ``ImageError/unreadable(input:reason:)`` when the system reports a read error.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ImageError) -> Int {
        // Offsets of custom decoders may come from a file.
        guard offset >= 0 else { return 0 }
        switch backing {
        case .bytes(let bytes):
            return bytes.withUnsafeBytes { Self.copy($0, from: offset, to: buffer) }
        case .storage(let storage):
            return storage.withUnsafeBytes { Self.copy($0, from: offset, to: buffer) }
        case .part(let whole, let start):
            let n = min(buffer.count, max(0, count - offset))
            guard n > 0 else { return 0 }
            return try whole.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<n]), at: start + offset)
        case .polled(let source, let token):
            if token.isCancelled { throw .cancelled(input: name) }
            return try source.read(into: buffer, at: offset)
        case .descriptor(let descriptor, _):
            var done = 0
            while done < buffer.count {
                let n = pread(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset + done))
                if n > 0 { done += n; continue }
                if n == 0 { break }
                if errno == EINTR { continue }
                throw .unreadable(input: name, reason: ByteSource.message(errno))
            }
            return done
        }
    }

    /// Returns a copy of at most `length` bytes at `offset`: fewer at the end of the input, none for negative numbers.
    ///
    /// - Throws: ``ImageError/unreadable(input:reason:)`` when the system reports a read error.
    public func bytes(at offset: Int, count length: Int) throws(ImageError) -> [UInt8] {
        guard offset >= 0, offset < count, length > 0 else { return [] }
        let wanted = min(length, count - offset)
        return try [UInt8](unsafeUninitializedCapacity: wanted) { buffer, n throws(ImageError) in
            n = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
    }

    /// Returns the whole input, for decoders that need it in one piece. Does not copy bytes in memory.
    ///
    /// - Throws: ``ImageError/unreadable(input:reason:)`` when the system reports a read error.
    package func allBytes() throws(ImageError) -> [UInt8] {
        switch backing {
        case .bytes(let bytes): return bytes
        case .polled(let source, let token):
            if token.isCancelled { throw .cancelled(input: name) }
            return try source.allBytes()
        case .descriptor, .storage, .part: return try bytes(at: 0, count: count)
        }
    }

    private static func copy(
        _ bytes: UnsafeRawBufferPointer, from offset: Int, to buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        let n = min(buffer.count, max(0, bytes.count - offset))
        if n > 0 { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + n)])) }
        return n
    }

    private static func message(_ code: Int32) -> String { String(cString: strerror(code)) }
}

extension ByteSource {
    /// Returns a source with a descriptor: of the file itself, or of a sealed copy of bytes in memory. The copy keeps
    /// one ``documentIdentity`` for all requests.
    ///
    /// - Throws: ``ImageError/workerFailed(input:reason:)`` when there is no room for a copy.
    package func withDescriptor() throws(ImageError) -> ByteSource {
        guard descriptor == nil else { return self }
        let bytes = try allBytes()
        var copy: Int32 = -1
        let code = bytes.withUnsafeBytes { csandbox_sealed_copy($0.baseAddress, $0.count, &copy) }
        guard code == 0 else {
            let error = SystemCallError(call: "copying the input", code: code)
            throw .workerFailed(input: name, reason: error.description)
        }
        return try ByteSource(descriptor: copy, name: name, owned: true)
    }
}
