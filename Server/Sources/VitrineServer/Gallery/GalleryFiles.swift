import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The directories and files below a root. Its own path may contain links; links below it are not followed.
struct GalleryFiles: Sendable {
    /// A file as `stat` tells it apart from others and from its own earlier contents.
    struct Stamp: Sendable, Hashable {
        let device: UInt64
        let file: UInt64
        let bytes: Int64
        let seconds: Int64
        let nanoseconds: Int64

        fileprivate init(_ status: stat) {
            (device, file) = (UInt64(status.st_dev), UInt64(status.st_ino))
            bytes = Int64(status.st_size)
            #if canImport(Darwin)
            (seconds, nanoseconds) = (Int64(status.st_mtimespec.tv_sec), Int64(status.st_mtimespec.tv_nsec))
            #else
            (seconds, nanoseconds) = (Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec))
            #endif
        }
    }

    /// The kinds of files that are shown: all that the pipeline reads.
    typealias Kind = SourceContent.Kind

    /// One item of a directory.
    struct Item: Sendable {
        var name: String
        var stamp: Stamp
        /// Nil for a directory.
        var kind: Kind?
    }

    let root: String

    /// Splits a path below the root.
    ///
    /// - Throws: 400 for `.`, `..` and zero bytes; 404 for hidden names.
    static func names(of path: String) throws(RequestError) -> [String] {
        let names = path.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        for name in names {
            guard name != "..", name != ".", !name.utf8.contains(0) else {
                throw .badSource("the path contains “.”, “..” or a zero byte")
            }
            guard !name.hasPrefix("."), FileName.bytes(of: name).count <= 255 else { throw .sourceNotFound }
        }
        return names
    }

    /// Opens a directory.
    ///
    /// - Throws: 404 if there is none, 403 if the server may not read it.
    func openDirectory(_ names: [String]) throws(RequestError) -> Int32 { try open(names, isDirectory: true) }

    /// Opens a regular file.
    ///
    /// - Throws: 404 if there is none, 403 if the server may not read it.
    func openFile(_ names: [String]) throws(RequestError) -> (descriptor: Int32, stamp: Stamp) {
        guard !names.isEmpty else { throw .sourceNotFound }
        let descriptor = try open(names, isDirectory: false)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .sourceNotFound
        }
        return (descriptor, Stamp(status))
    }

    private func open(_ names: [String], isDirectory: Bool) throws(RequestError) -> Int32 {
        var directory = openAt(AT_FDCWD, name: root, flags: O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        guard directory >= 0 else { throw Self.error(errno) }
        for (index, name) in names.enumerated() {
            let isFile = !isDirectory && index == names.count - 1
            // O_NONBLOCK: opening a FIFO without a writer must not wait for ever.
            let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (isFile ? O_NONBLOCK : O_DIRECTORY)
            let next = openAt(directory, name: name, flags: flags)
            let code = errno
            close(directory)
            guard next >= 0 else { throw Self.error(code) }
            directory = next
        }
        return directory
    }

    private static func error(_ code: Int32) -> RequestError {
        code == EACCES || code == EPERM ? .notReadable : .sourceNotFound
    }

    private func openAt(_ directory: Int32, name: String, flags: Int32) -> Int32 {
        let bytes = FileName.bytes(of: name).map { CChar(truncatingIfNeeded: $0) } + [0]
        var descriptor: Int32
        repeat { descriptor = openat(directory, bytes, flags) } while descriptor < 0 && errno == EINTR
        return descriptor
    }

    /// Calls a body with each directory and each file of a known kind in a directory, in the order of the disk. Hidden
    /// names, links and other things are left out.
    ///
    /// - Parameters:
    ///   - names: The directory below the root.
    ///   - body: Returns false to end.
    /// - Throws: 404 without such a directory, 403 if the server may not read it.
    func forEach(in names: [String], _ body: (Item) -> Bool) throws(RequestError) {
        let descriptor = try openDirectory(names)
        guard let stream = fdopendir(descriptor) else {
            close(descriptor)
            throw .sourceNotFound
        }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let offset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
            let name = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
            // Also “.” and “..”.
            guard name[0] != CChar(truncatingIfNeeded: UInt8(ascii: ".")) else { continue }
            let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
            var kind = Kind(name: bytes)
            #if !canImport(Darwin)
            let type = Int(entry.pointee.d_type)
            // The rest needs no look at the file itself.
            guard type == DT_UNKNOWN || type == DT_DIR || type == DT_REG && kind != nil else { continue }
            #endif
            var status = stat()
            guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                // Names without the right to search the directory lead nowhere.
                if errno == EACCES { throw .notReadable }
                continue
            }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: kind = nil
            case S_IFREG where kind != nil: break
            default: continue
            }
            guard body(Item(name: FileName.text(of: bytes), stamp: Stamp(status), kind: kind)) else { return }
        }
    }

    /// Returns the beginning of a file.
    static func beginning(of descriptor: Int32, count: Int) -> [UInt8] {
        read(descriptor, at: 0, count: count)
    }

    /// Returns bytes of a file; fewer at its end or if it cannot be read.
    static func read(_ descriptor: Int32, at offset: Int64, count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let read = pread(
                    descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(offset) + off_t(filled))
                if read > 0 {
                    filled += read
                } else if read == 0 || errno != EINTR {
                    return
                }
            }
        }
    }
}

/// A file that is open while something refers to it.
final class GalleryOpenFile: Sendable {
    let descriptor: Int32
    let stamp: GalleryFiles.Stamp

    init(_ file: (descriptor: Int32, stamp: GalleryFiles.Stamp)) {
        (descriptor, stamp) = (file.descriptor, file.stamp)
    }

    /// The content; nil for a kind that is not read.
    ///
    /// - Throws: If the file cannot be read.
    func content() throws(ImagePipelineError) -> SourceContent? {
        try SourceContent(of: .file("/dev/fd/\(descriptor)"))
    }

    deinit { close(descriptor) }
}

extension SourceContent.Kind {
    /// The number by which the pages know the kind.
    var number: Int {
        switch self {
        case .image: 0
        case .document: 1
        case .video: 2
        case .recording: 3
        case .font: 4
        case .container: 5
        }
    }

    private static let kinds: [String: Self] = {
        var kinds: [String: Self] = [:]
        for kind in allCases {
            for name in kind.fileExtensions { kinds[name] = kind }
        }
        return kinds
    }()

    /// More than the longest extension has.
    private static let maximumCount = 16

    /// The kind of a file by the end of its name; nil for a name of another kind.
    init?(name: some BidirectionalCollection<UInt8>) {
        // The second time for `fb2.zip`, which has a dot.
        var end = name.endIndex
        for _ in 0..<2 {
            guard let dot = name[..<end].lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex
            else { return nil }
            let ending = name[name.index(after: dot)...]
            guard (1...Self.maximumCount).contains(ending.count) else { return nil }
            let text = String(decoding: ending.map { 65...90 ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
            if let kind = Self.kinds[text] {
                self = kind
                return
            }
            end = dot
        }
        return nil
    }
}

extension RequestError {
    /// The system refuses the server a file or a folder.
    static let notReadable = RequestError(403, code: "not-readable", reason: "The server may not read it.")
}
