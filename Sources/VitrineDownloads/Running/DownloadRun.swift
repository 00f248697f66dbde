import VitrineCore
import VitrineNetwork

/// One try of a download: loads what is missing, looks whether it is the right file, and gives it its name.
struct DownloadRun: Sendable {
    /// What a try brought.
    struct Success: Sendable {
        let path: String
        let length: Int
        let restarts: Int
    }

    let engine: DownloadEngine
    let record: DownloadRecord
    let rules: LimitedLoader.Rules

    /// How many bytes are loaded twice to be compared, where the server does not say whether the file is the same.
    private static let overlap = 64 << 10

    private var request: DownloadRequest { record.request }

    func outcome() async -> Result<Success, DownloadError> {
        do throws(DownloadError) { return .success(try await load()) } catch { return .failure(aboutTarget(error)) }
    }

    /// The user knows the path of the file, not that of the part file.
    private func aboutTarget(_ error: DownloadError) -> DownloadError {
        guard case .file(let fileError) = error, fileError.path.hasPrefix(record.partPath) else { return error }
        return .file(fileError.about(record.status.path))
    }

    private func load() async throws(DownloadError) -> Success {
        if let placed = record.placing, await BlockingExecutor.shared.run({ placed.isDone }) {
            // The program was killed after the last step, before the journal heard of it.
            await engine.discardPart(of: record)
            return Success(path: placed.path, length: placed.length, restarts: 0)
        }
        let loaded = try await bring()
        do throws(DownloadError) {
            // A carrier does not ask before.
            if let problem = DownloadWatcher.emptinessProblem(loaded.head) {
                await engine.carrier?.discard(record)
                throw problem
            }
            try await verify(loaded.part)
            let length = loaded.part.length
            let path = try await place(loaded.part, loaded.head)
            await engine.carrier?.discard(record)
            return Success(path: path, length: length, restarts: loaded.restarts)
        } catch {
            await Self.giveUp(loaded.part, after: error)
            throw error
        }
    }

    private static func giveUp(_ part: PartialFile, after error: DownloadError) async {
        let isKept = !error.isFinal
        await BlockingExecutor.shared.run { isKept ? part.release() : part.discard() }
    }

    /// Loads what is missing, or has the carrier do it.
    private func bring() async throws(DownloadError) -> LoadedFile {
        try await prepare()
        if let carrier = engine.carrier { return try await carrier.bring(self) }
        let part = try await openPart()
        do throws(DownloadError) {
            let whole = try await transfer(into: part)
            return LoadedFile(part: part, head: whole.head, restarts: whole.restarts)
        } catch {
            await Self.giveUp(part, after: error)
            throw error
        }
    }

    private func prepare() async throws(DownloadError) {
        try await DownloadEngine.onFiles { [record] () throws(FileError) in
            try Directory.create(record.directory, mode: 0o777)
            if record.request.existing == .keep, let name = record.request.name {
                let path = FilePath.join(record.directory, name)
                guard !FilePath.exists(path) else { throw .alreadyExists(path: path) }
            }
        }
    }

    private func openPart() async throws(DownloadError) -> PartialFile {
        let part = try await DownloadEngine.onFiles { [record] () throws(FileError) in
            try PartialFile.open(record.partPath, identity: record.id, comparing: Self.overlap)
        }
        guard let part else {
            throw .network(.busy(url: SourceURL.withoutCredentials(record.url.absoluteString), path: record.partPath))
        }
        return part
    }

    private func transfer(into part: PartialFile) async throws(DownloadError) -> CompletedTransfer {
        var wanted = HTTPRequest(url: record.url, headers: request.headers)
        wanted.maximumBodySize = .unlimited
        wanted.priority = request.priority
        wanted.timeouts.total = request.maximumTime
        let progress = TransferProgress()
        let (loader, executor) = (engine.loader, engine.transfers)
        let connections = min(max(1, request.connections), DownloadRequest.highestConnections)
        return try await watched(progress) { [wanted] in
            do throws(NetworkError) {
                return .success(
                    try await loader.load(
                        wanted, into: part, connections: connections, progress: progress, executor: executor))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Shows how far a transfer is while it runs, and ends it before the disk is full.
    func watched<Value: Sendable>(
        _ progress: TransferProgress, _ transfer: @escaping @Sendable () async -> Result<Value, NetworkError>
    ) async throws(DownloadError) -> Value {
        let watcher = DownloadWatcher(record, engine, progress)
        rules.watcher.withLock { $0 = watcher }
        let work = Task(executorPreference: engine.transfers) { await transfer() }
        let watching = Task { await watcher.run { work.cancel() } }
        let result = await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        watching.cancel()
        await watching.value
        if let error = watcher.failure { throw error }
        switch result {
        case .success(let whole): return whole
        case .failure(.cancelled): throw .cancelled
        case .failure(.file(let error)): throw .file(error)
        case .failure(let error): throw .network(error)
        }
    }

    /// Looks whether it is the file that was meant.
    private func verify(_ part: PartialFile) async throws(DownloadError) {
        if let expected = request.expectedSize, part.length != expected {
            throw .size(path: record.status.path, expected: expected, actual: part.length)
        }
        guard let expected = request.checksum else { return }
        let token = CancellationToken()
        let path = part.path
        let result = await withTaskCancellationHandler {
            await BlockingExecutor.shared.run {
                Result { () throws(FileError) in try Checksum.of(path, expected.algorithm, cancellation: token) }
            }
        } onCancel: {
            token.cancel()
        }
        switch result {
        case .success(let actual) where actual == expected: break
        case .success(let actual): throw .checksum(path: record.status.path, expected: expected, actual: actual)
        case .failure where token.isCancelled: throw .cancelled
        case .failure(let error): throw .file(error)
        }
    }

    /// Gives the file its name.
    private func place(_ part: PartialFile, _ head: HTTPResponseHead) async throws(DownloadError) -> String {
        let proposed = request.name == nil ? DownloadName.proposed(by: head) : nil
        let name = request.name ?? proposed ?? DownloadName.name(for: request.url)
        // Nobody agreed to lose a file whose name the server picks.
        let isChosen = proposed != nil && proposed != DownloadName.name(for: request.url)
        let existing = isChosen && request.existing == .replace ? .number : request.existing
        var number = 1
        while true {
            let path = FilePath.join(record.directory, DownloadName.numbered(name, number))
            try await note(part, path)
            do throws(DownloadError) {
                try await DownloadEngine.onFiles { () throws(FileError) in
                    try part.place(at: path, replaces: existing == .replace, isDurable: true)
                }
                return path
            } catch .file(.alreadyExists) where existing == .number && number < 10_000 {
                number += 1
            }
        }
    }

    /// Tells the journal which name the file is about to get.
    private func note(_ part: PartialFile, _ path: String) async throws(DownloadError) {
        let file = try await DownloadEngine.onFiles { () throws(FileError) in try part.numbers() }
        let placing = DownloadRecord.Placing(
            path: path, device: file.device, inode: file.inode, length: part.length)
        let noted = engine.update(record.id) { entry in
            entry.record.placing = placing
            return true
        }
        // It is not wanted any more.
        guard let noted, !Task.isCancelled else { throw .cancelled }
        try await engine.save(noted)
    }
}
