import Foundation
import VitrineCore
import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A file that stays open as long as this object.
final class OpenedFile: Sendable {
    let descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// A path to the file that stays valid if the file is renamed or replaced.
    var path: String { "/dev/fd/\(descriptor)" }
}

/// Headers of local sources, and names in folders.
extension SourceTable {
    /// The original of a local image whose header alone was read.
    func original(of header: LocalRoot.Header) -> Original {
        Original(
            bytes: [], version: header.version, expires: clock.now + configuration.localFreshness, isStorable: true,
            isStale: false, lastModified: header.lastModified, isLocal: true)
    }

    /// The names of the files in a folder of local sources, in their order; nil if it is no folder.
    ///
    /// Names that begin with a dot are left out, and those that are no UTF-8.
    func names(inFolder path: String) async throws(RequestError) -> [String]? {
        guard let root else { return nil }
        let names = path.split(separator: "/").map(String.init)
        // Hidden folders, “.” and “..” among them.
        guard !names.contains(where: { $0.hasPrefix(".") }), !path.utf8.contains(0) else { throw .sourceNotFound }
        if let prefixes = configuration.allowedPrefixes {
            // A folder of which some files are not allowed is not listed.
            let folder = "local:///" + names.map { $0 + "/" }.joined()
            guard prefixes.contains(where: folder.hasPrefix) else { throw .sourceNotFound }
        }
        return await executor.run { root.fileNames(in: names) }
    }
}

extension LocalRoot {
    struct Header: Sendable {
        let header: SourceHeader
        let version: String
        let lastModified: String
        /// Whether parts of the image can be decoded without the others.
        let hasParts: Bool

        /// Whether it may be compressed without loss.
        var isLossless: Bool {
            switch header.format {
            case .jpeg, .heic, .avif: false
            default: true
            }
        }
    }

    /// The header of an image; nil for documents, videos and all else.
    func header(
        of names: [String], _ limits: ImageLimits, upTo limit: ByteCount
    ) throws(RequestError) -> Header? {
        let descriptor = try open(names)
        defer { close(descriptor) }
        let status = try Self.status(descriptor)
        guard Int(status.st_size) <= limit.bytes else { throw .sourceTooLarge(limit) }
        // The file that is open, whatever its name leads to by now.
        let file = "/dev/fd/\(descriptor)"
        do throws(ImageError) {
            guard ImageFormat.detect(try ByteSource(.file(file)).bytes(at: 0, count: 4_096)) != nil else { return nil }
            let info = try ImageInfo(of: .file(file), limits: limits)
            let source = try ByteSource(.file(file))
            let hasParts = info.orientation == .up && PartedFile.hasParts(source, info)
            return Header(
                header: SourceHeader(info), version: version(of: status), lastModified: Self.lastModified(status),
                hasParts: hasParts)
        } catch {
            throw RequestError(rendering: error)
        }
    }

    /// Opens a regular file.
    func opened(_ names: [String]) throws(RequestError) -> OpenedFile {
        let file = OpenedFile(try open(names))
        _ = try Self.status(file.descriptor)
        return file
    }

    /// The names of regular files, sorted; nil if there is no such folder. Links are left out.
    func fileNames(in names: [String]) -> [String]? {
        guard let descriptor = try? open(names) else { return nil }
        guard let directory = fdopendir(descriptor) else {
            close(descriptor)
            return nil
        }
        defer { closedir(directory) }
        var found: [String] = []
        while let entry = readdir(directory) {
            let type = Int32(entry.pointee.d_type)
            guard type == Int32(DT_REG) || type == Int32(DT_UNKNOWN) else { continue }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                let start = UnsafeRawPointer(pointer).assumingMemoryBound(to: UInt8.self)
                return String(validating: UnsafeBufferPointer(start: start, count: strlen(start)), as: UTF8.self)
            }
            if let name, !name.hasPrefix(".") { found.append(name) }
        }
        return found.sorted()
    }
}

/// Files of which parts can be decoded alone.
enum PartedFile {
    static func hasParts(_ source: ByteSource, _ info: ImageInfo) -> Bool {
        switch info.format {
        case .jpeg: !info.isProgressive
        case .tiff: (try? hasTiles(tiff: source)) ?? false
        case .jp2: (try? hasTiles(jp2: source)) ?? false
        default: false
        }
    }

    private static func bytes(_ source: ByteSource, at offset: Int, _ count: Int) throws(ImageError) -> [UInt8]? {
        guard offset >= 0, offset <= source.count, count <= source.count - offset else { return nil }
        return try source.bytes(at: offset, count: count)
    }

    /// Whether the first image has the tag `TileWidth`.
    private static func hasTiles(tiff source: ByteSource) throws(ImageError) -> Bool {
        guard let head = try bytes(source, at: 0, 16) else { return false }
        let isLittle = head[0] == 0x49
        func number(_ bytes: ArraySlice<UInt8>) -> Int {
            let digits = isLittle ? Array(bytes.reversed()) : Array(bytes)
            return Int(truncatingIfNeeded: digits.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
        let isBig = number(head[2..<4]) == 43
        let at = number(isBig ? head[8..<16] : head[4..<8])
        guard let start = try bytes(source, at: at, isBig ? 8 : 2) else { return false }
        let count = number(start[...]), length = isBig ? 20 : 12
        guard (1...4_096).contains(count), let entries = try bytes(source, at: at + start.count, count * length) else {
            return false
        }
        return stride(from: 0, to: entries.count, by: length).contains { number(entries[$0..<($0 + 2)]) == 322 }
    }

    /// Whether the image is larger than its tiles, by the segment `SIZ`.
    private static func hasTiles(jp2 source: ByteSource) throws(ImageError) -> Bool {
        guard let head = try bytes(source, at: 0, min(source.count, 64 << 10)) else { return false }
        let mark: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51]
        guard let at = head.indices.first(where: { head[$0...].starts(with: mark) }), at + 32 <= head.count else {
            return false
        }
        func number(_ offset: Int) -> Int { head[(at + offset)..<(at + offset + 4)].reduce(0) { $0 << 8 | Int($1) } }
        return number(24) < number(8) || number(28) < number(12)
    }
}
