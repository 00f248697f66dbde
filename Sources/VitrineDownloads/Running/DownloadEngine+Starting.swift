#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// Taking downloads on.
extension DownloadEngine {
    func start(_ request: DownloadRequest, id: String) async throws(DownloadError) -> DownloadStatus {
        try request.check()
        try await open()
        guard DownloadRecord.isIdentifier(id) else { throw .unknown(id: id) }
        if let known = state.withLock({ Self.known(request, id, $0) }) { return try await goOn(known, askedAs: id) }
        let directory = request.directory ?? configuration.directory
        guard FilePath.isAbsolute(directory) else {
            throw .invalidDestination(directory, reason: "the directory is not named from the root")
        }
        try await Self.onFiles { () throws(FileError) in
            try Directory.create(directory, mode: 0o777)
            if request.existing == .keep, let name = request.name {
                let path = FilePath.join(directory, name)
                guard !FilePath.exists(path) else { throw .alreadyExists(path: path) }
            }
        }
        let (record, isNew) = state.withLock { state in
            // Somebody may have been quicker.
            if let known = Self.known(request, id, state) { return (known, false) }
            let entry = Entry(Self.record(request, id, in: directory, state), isNoted: false)
            return (keep(entry, in: &state), true)
        }
        guard isNew else { return try await goOn(record, askedAs: id) }
        do {
            try await save(record)
        } catch {
            state.withLock { $0.entries[record.id] = nil }
            board.remove(record.id)
            throw error
        }
        state.withLock { $0.entries[record.id]?.isNoted = true }
        pump()
        return record.status
    }

    /// - Parameter id: What the download would be known by if it were new: another one if somebody asks for it anew,
    ///   who then wants it to run.
    private func goOn(_ known: DownloadRecord, askedAs id: String) async throws(DownloadError) -> DownloadStatus {
        if id != known.id, let journal = state.withLock({ $0.journal }) {
            state.withLock { $0.entries[known.id]?.isSuspect = false }
            try await journal.forgiveStarts(known.id)
            pump()
        }
        if known.status.state == .paused { try await resume(known.id) }
        return board.status(of: known.id) ?? known.status
    }

    /// The download that was asked for in the same words, or the one of the same address that is not over.
    private static func known(_ request: DownloadRequest, _ id: String, _ state: State) -> DownloadRecord? {
        state.entry(id)?.record
            ?? state.entries.values.first { $0.isUnfinished && $0.record.request.url == request.url }?.record
    }

    private static func record(
        _ request: DownloadRequest, _ id: String, in directory: String, _ state: State
    ) -> DownloadRecord {
        var request = request
        // Absolute, so that it means the same in the next run, wherever that is started.
        request.directory = directory
        let proposed = request.name ?? DownloadName.name(for: request.url)
        // Two that end alike are not to take each other's place.
        var number = 1
        var path = FilePath.join(directory, proposed)
        while state.entries.values.contains(where: { $0.isUnfinished && $0.record.status.path == path }) {
            number += 1
            request.name = DownloadName.numbered(proposed, number)
            // Nobody has asked for this name, so a file that has it stays.
            if request.existing == .replace { request.existing = .number }
            path = FilePath.join(directory, DownloadName.numbered(proposed, number))
        }
        let status = DownloadStatus(
            id: id, url: request.url, path: path, priority: request.priority, added: Date())
        let position = (state.entries.values.lazy.map(\.record.position).max() ?? 0) + 1
        return DownloadRecord(id: id, request: request, status: status, position: position, revision: 0)
    }
}

extension DownloadEngine.Entry {
    /// Whether it is on the list and not over.
    fileprivate var isUnfinished: Bool { wish != .remove && !record.status.state.isOver }
}
