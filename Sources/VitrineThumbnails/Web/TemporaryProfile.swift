import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A new directory that only this user can read, removed with the object.
final class TemporaryProfile {
    let path: String

    init() throws(FileError) {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? ""
        var template = Array(FilePath.join(parent.isEmpty ? "/tmp" : parent, "vitrine-page-XXXXXX").utf8CString)
        let isMade = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) } != nil }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard isMade else { throw FileError(operation: "mkdtemp", path: path, code: errno) }
    }

    deinit {
        // Processes that were killed may make another file before they end.
        for _ in 0..<20 {
            try? FileManager.default.removeItem(atPath: path)
            guard access(path, F_OK) == 0 else { return }
            usleep(5_000)
        }
    }
}
