import VitrineCore
import VitrineNetwork

/// One attempt of a download: loads the missing bytes, verifies the file, and moves it to its path.
struct DownloadRun: Sendable {
    /// The result of a successful attempt.
    struct Success: Sendable {
        let path: String
        let length: Int
        let restarts: Int
    }

    let engine: DownloadEngine
    let record: DownloadRecord
    let rules: LimitedLoader.Rules

    /// The number of bytes to load twice and compare, if the server does not confirm that the file is unchanged.
    private static let overlap = 64 << 10

    private var request: DownloadRequest { record.request }

    func outcome() async -> Result<Success, DownloadError> {
        do throws(DownloadError) { return .success(try await load()) } catch { return .failure(aboutTarget(error)) }
    }

    /// Replaces the path of the part file in an error by that of the file, which the user knows.
    private func aboutTarget(_ error: DownloadError) -> DownloadError {
        guard case .file(let fileError) = error, fileError.path.hasPrefix(record.partPath) else { return error }
        return .file(fileError.about(record.status.path))
    }

    private func load() async throws(DownloadError) -> Success {
        if let placed = record.placing, await BlockingExecutor.shared.run({ placed.isDone }) {
            // The program was killed after the last step, before the journal had its result.
            await engine.discardPart(of: record)
            return Success(path: placed.path, length: placed.length, restarts: 0)
        }
        let loaded = try await bring()
        do throws(DownloadError) {
            // A carrier does not check this before the transfer.
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
            await Self.release(loaded.part, after: error)
            throw error
        }
    }

    private static func release(_ part: PartialFile, after error: DownloadError) async {
        let isKept = !error.isFinal
        await BlockingExecutor.shared.run { isKept ? part.release() : part.discard() }
    }

    /// Loads the missing bytes, or has the carrier load the file.
    private func bring() async throws(DownloadError) -> LoadedFile {
        try await prepare()
        if let carrier = engine.carrier { return try await carrier.bring(self) }
        let part = try await openPart()
        do throws(DownloadError) {
            let whole = try await transfer(into: part)
            return LoadedFile(part: part, head: whole.head, restarts: whole.restarts)
        } catch {
            if !part.isResumable { engine.state.withLock { $0.entries[record.id]?.hasLostBytes = true } }
            await Self.release(part, after: error)
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
        wanted.totalTimeout = request.maximumTime
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

    /// Shows the progress of a transfer, and ends it before the disk is full.
    func watched<Value: Sendable>(
        _ progress: TransferProgress, _ transfer: @escaping @Sendable () async -> Result<Value, NetworkError>
    ) async throws(DownloadError) -> Value {
        let watcher = DownloadWatcher(record, engine: engine, progress: progress)
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

    /// Verifies the length and the checksum of the file.
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

    /// Moves the file to its path.
    private func place(_ part: PartialFile, _ head: HTTPResponseHead) async throws(DownloadError) -> String {
        let proposed = request.name == nil ? DownloadName.proposed(by: head) : nil
        let name = request.name ?? proposed ?? DownloadName.name(for: request.url)
        // A name that the server chooses must not replace a file.
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

    /// Stores the path that the file is about to get.
    private func note(_ part: PartialFile, _ path: String) async throws(DownloadError) {
        let file = try await DownloadEngine.onFiles { () throws(FileError) in try part.numbers() }
        let placing = DownloadRecord.Placing(
            path: path, device: file.device, inode: file.inode, length: part.length)
        let noted = engine.update(record.id) { entry in
            entry.record.placing = placing
            return true
        }
        // It was cancelled or removed meanwhile.
        guard let noted, !Task.isCancelled else { throw .cancelled }
        try await engine.save(noted)
    }
}
