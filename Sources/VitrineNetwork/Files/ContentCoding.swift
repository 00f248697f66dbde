#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Which bodies are files in themselves, although their header speaks of a coding.
enum ContentCoding {
    /// Whether a body has to be decoded before it is what its address names.
    ///
    /// Servers send `archive.tar.gz` with `Content-Encoding: gzip` although the file itself is meant; browsers keep
    /// such files as they are, and so does this.
    static func isToBeUndone(_ head: HTTPResponseHead) -> Bool {
        let codings = HTTPList.names(head.headers.all("Content-Encoding")).filter { $0 != "identity" }
        guard !codings.isEmpty else { return false }
        let path = head.url.path(percentEncoded: true).lowercased()
        guard codings.count == 1, let endings = endings[codings[0]] else { return true }
        return !endings.contains { path.hasSuffix($0) }
    }

    private static let endings: [String: [String]] = [
        "gzip": [".gz", ".tgz", ".svgz"], "x-gzip": [".gz", ".tgz", ".svgz"], "br": [".br"], "zstd": [".zst", ".tzst"],
        "compress": [".z"], "x-compress": [".z"],
    ]
}
