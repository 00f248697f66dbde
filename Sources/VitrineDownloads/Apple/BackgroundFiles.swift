#if canImport(Darwin) && !os(macOS)
import Darwin
import Foundation
import VitrineCore
import VitrineNetwork

/// What is kept of downloads that a background session carries, beside the journal: files that are whole and wait to be
/// looked at, with the names their servers gave them, and what to go on with. All calls block.
struct BackgroundFiles: Sendable {
    private enum Kind: String, CaseIterable {
        /// A whole file.
        case loaded
        /// Its field `Content-Disposition`.
        case named
        /// Data to resume with.
        case resume
    }

    let directory: String

    init(_ configuration: DownloadManager.Configuration) {
        directory = FilePath.join(
            configuration.journalDirectory, FileName.name(for: configuration.identifier) + ".transfers")
    }

    private func path(_ kind: Kind, _ id: String) -> String {
        FilePath.join(directory, FileName.name(for: id) + "." + kind.rawValue)
    }

    /// Takes a whole file over.
    func keep(_ location: String, of id: String, named disposition: String?) throws(FileError) {
        try Directory.create(directory)
        // First, as with the file everything is there.
        if let disposition {
            try AtomicFile.write(Array(disposition.utf8), to: path(.named, id), permissions: 0o600)
        } else {
            unlink(path(.named, id))
        }
        try FileRename.move(location, to: path(.loaded, id), replaces: true)
    }

    /// Keeps what a task can be gone on with. Without it the file is loaded from the beginning.
    func keep(_ data: Data, of id: String) {
        do throws(FileError) {
            try Directory.create(directory)
            try AtomicFile.write([UInt8](data), to: path(.resume, id), permissions: 0o600)
        } catch {
            Log.logger("downloads").warning("A download cannot be gone on with", metadata: ["error": "\(error)"])
        }
    }

    /// A whole file, if there is one.
    ///
    /// - Returns: Nil for the part if somebody else has it open.
    func loaded(_ record: DownloadRecord) throws(FileError) -> (part: PartialFile?, head: HTTPResponseHead)? {
        let path = path(.loaded, record.id)
        guard FilePath.exists(path) else { return nil }
        var headers = HTTPHeaders()
        if let field = read(.named, record.id) {
            headers.append("Content-Disposition", String(decoding: field, as: UTF8.self))
        }
        return (
            try PartialFile.openWhole(path, identity: record.id),
            HTTPResponseHead(status: 200, headers: headers, url: record.url))
    }

    /// What to go on with, which is of use once.
    func takeResumeData(of id: String) -> Data? {
        defer { unlink(path(.resume, id)) }
        return read(.resume, id).map { Data($0) }
    }

    private func read(_ kind: Kind, _ id: String) -> [UInt8]? {
        do throws(FileError) { return try FileContents.read(path(kind, id)) } catch { return nil }
    }

    /// Throws away all that is kept of a download.
    func remove(_ id: String) {
        for kind in Kind.allCases { unlink(path(kind, id)) }
    }

    /// Throws away what is kept of downloads that are not on the list.
    func removeOthers(than ids: Set<String>) {
        let names = Set(ids.map { FileName.name(for: $0) })
        do throws(FileError) {
            for name in try Directory.names(ofFilesIn: directory) {
                let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
                if !names.contains(stem) { unlink(FilePath.join(directory, name)) }
            }
        } catch {
            // Nothing was ever kept.
        }
    }
}
#endif
