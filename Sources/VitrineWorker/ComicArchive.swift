#if canImport(VitrineContainers)
import CVitrineArchive
import CVitrineSandbox
import VitrineContainers
import VitrineImaging

/// Reads the first pages of comics in RAR and 7z archives by libarchive.
///
/// The archive is walked twice: for the names, and for the page. The result is counted, and archives whose pages stand
/// behind much other content are refused.
enum ComicArchive {
    /// Bytes that may have to be decompressed before the page of a solid archive.
    private static let maximumSkipped = 256 << 20

    /// The file of a page, from 0; no bytes if there are fewer pages.
    static func page(of source: ByteSource, number: Int, limits: ImageLimits) throws(ImageError) -> [UInt8] {
        guard source.count <= limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: source.count, allowed: limits.maximumInputBytes)
        }
        var address: UnsafeMutableRawPointer?
        if let descriptor = source.descriptor, csandbox_map_readonly(descriptor, source.count, &address) == 0,
            let address
        {
            defer { csandbox_unmap(address, source.count) }
            return try page(number, of: UnsafeRawBufferPointer(start: address, count: source.count), source.name)
        }
        let bytes = try source.allBytes()
        return try bytes.withUnsafeBytes { buffer in
            Result { () throws(ImageError) in try page(number, of: buffer, source.name) }
        }.get()
    }

    private static func page(
        _ number: Int, of bytes: UnsafeRawBufferPointer, _ name: String
    ) throws(ImageError) -> [UInt8] {
        var choice = ArchivePages()
        try walk(bytes, name: name) { (index, entry, _) throws(ImageError) in
            guard entry.is_file, let path = entry.name else { return true }
            return choice.consider(Array(String(cString: path).utf8), index: index)
        }
        guard number < choice.indices.count else { return [] }
        let chosen = choice.indices[number]
        var result: [UInt8] = []
        var skipped = 0
        try walk(bytes, name: name) { (index, entry, archive) throws(ImageError) in
            guard index == chosen else {
                let (sum, overflow) = skipped.addingReportingOverflow(max(0, Int(entry.size)))
                skipped = overflow ? .max : sum
                guard skipped <= Self.maximumSkipped else {
                    throw .limitExceeded(
                        input: name, limit: .documentBytes, actual: skipped, allowed: Self.maximumSkipped)
                }
                return true
            }
            if entry.is_encrypted { throw Self.error(CARCHIVE_ENCRYPTED, name) }
            result = try Self.content(archive, entry: entry, name: name)
            return false
        }
        return result
    }

    /// Calls `body` with the entries of the archive, until it returns false.
    private static func walk(
        _ bytes: UnsafeRawBufferPointer, name: String,
        body: (Int, carchive_entry, OpaquePointer) throws(ImageError) -> Bool
    ) throws(ImageError) {
        guard let start = bytes.baseAddress, let archive = carchive_open(start, bytes.count) else {
            throw .corrupt(input: name, reason: "it is no archive that libarchive reads")
        }
        defer { carchive_close(archive) }
        var entry = carchive_entry()
        for index in 0..<ArchivePages.maximumEntries {
            let status = carchive_next(archive, &entry)
            if status == CARCHIVE_END { return }
            guard status == CARCHIVE_OK else { throw Self.error(status, name) }
            if try !body(index, entry, archive) { return }
        }
    }

    private static func content(
        _ archive: OpaquePointer, entry: carchive_entry, name: String
    ) throws(ImageError) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(max(0, min(Int(entry.size), ArchivePages.maximumBytes)))
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            var got = 0
            let status = carchive_read(archive, &buffer, buffer.count, &got)
            guard status == CARCHIVE_OK else { throw error(status, name) }
            if got == 0 { return result }
            guard result.count + got <= ArchivePages.maximumBytes else {
                throw .limitExceeded(
                    input: name, limit: .documentBytes, actual: result.count + got, allowed: ArchivePages.maximumBytes)
            }
            result.append(contentsOf: buffer[..<got])
        }
    }

    private static func error(_ status: carchive_status, _ name: String) -> ImageError {
        switch status {
        case CARCHIVE_ENCRYPTED: .unsupported(input: name, reason: "its content is encrypted")
        case CARCHIVE_UNSUPPORTED: .unsupported(input: name, reason: "libarchive does not read its compression")
        case CARCHIVE_MEMORY: .limitExceeded(input: name, limit: .memory, actual: 0, allowed: 0)
        default: .corrupt(input: name, reason: "libarchive cannot read the archive")
        }
    }
}
#endif
