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

/// Where the bytes of a picture come from.
public enum ImageInput: Sendable {
    /// A regular file. Opened when it is read, never kept open.
    case file(String)
    /// Bytes in memory, with the name that errors give them.
    case bytes([UInt8], name: String = "data")

    /// A file by URL. Traps unless it is a `file:` URL; VitrineNetwork loads others.
    public static func file(_ url: URL) -> ImageInput {
        precondition(url.isFileURL, "\(url) is not a file URL")
        return .file(url.path)
    }

    /// Bytes in memory, with the name that errors give them.
    public static func data(_ data: Data, name: String = "data") -> ImageInput { .bytes([UInt8](data), name: name) }

    /// The path, or the name given with the bytes: what errors call the input.
    public var name: String {
        switch self {
        case .file(let path): path
        case .bytes(_, let name): name
        }
    }
}

/// An opened ``ImageInput``: random access to its bytes.
///
/// Files are read with `pread`, never mapped: a file that shrinks while it is read gives an error, not a signal.
public final class ByteSource: Sendable {
    private enum Backing {
        case descriptor(Int32, owned: Bool)
        case bytes([UInt8])
    }

    /// What errors call the input.
    public let name: String
    /// Bytes in the input when it was opened.
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
            // O_NONBLOCK: opening a FIFO nobody writes to must not wait for ever.
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

    /// Bytes already in memory.
    public init(bytes: [UInt8], name: String) {
        self.name = name
        count = bytes.count
        backing = .bytes(bytes)
    }

    /// An open descriptor of a regular file; closed with the source if `owned`.
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

    /// The descriptor of a file input, for handing to another process; nil for bytes in memory.
    package var descriptor: Int32? {
        if case .descriptor(let descriptor, _) = backing { descriptor } else { nil }
    }

    /// Reads up to `buffer.count` bytes at `offset`, fewer only at the end of the input.
    ///
    /// - Returns: The bytes read; 0 at or behind the end.
    /// - Throws: ``ImageError/unreadable(input:reason:)`` when the system reports a read error.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ImageError) -> Int {
        precondition(offset >= 0, "an offset is not negative")
        switch backing {
        case .bytes(let bytes):
            let n = min(buffer.count, max(0, bytes.count - offset))
            if n > 0 {
                bytes.withUnsafeBytes {
                    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<(offset + n)]))
                }
            }
            return n
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

    /// A copy of at most `length` bytes at `offset`; shorter at the end of the input.
    public func bytes(at offset: Int, count length: Int) throws(ImageError) -> [UInt8] {
        let wanted = max(0, min(length, count - offset))
        guard wanted > 0 else { return [] }
        return try [UInt8](unsafeUninitializedCapacity: wanted) { buffer, n throws(ImageError) in
            n = try read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
    }

    /// The whole input, for decoders that need it in one piece. Bytes in memory are not copied.
    public func allBytes() throws(ImageError) -> [UInt8] {
        if case .bytes(let bytes) = backing { return bytes }
        return try bytes(at: 0, count: count)
    }

    private static func message(_ code: Int32) -> String { String(cString: strerror(code)) }
}

extension ByteSource {
    /// The same bytes as a descriptor: a file itself, or a sealed copy of bytes in memory, which is the same document
    /// (``documentIdentity``) to a worker whenever it is handed over.
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
