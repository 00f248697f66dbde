#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

extension NetworkLoader {
    /// Brings what an address stands for to a file, without ever holding the whole of it in memory.
    ///
    /// ```swift
    /// var request = HTTPRequest(url: url)
    /// request.maximumBodySize = .gigabytes(20)
    /// let file = try await loader.download(request, to: "/srv/films/sintel.mkv")
    /// ```
    ///
    /// It is written to a part file beside the destination and gets its name when it is whole, so what was there
    /// before is there until then. A download that breaks off is gone on with, within this call as often as
    /// ``NetworkLoader/Configuration/retries`` allows without any progress, and at the next call, also after the
    /// process was killed: the rest is asked for under the validator of what is there, and a source that has changed,
    /// or gives no parts, begins anew. Parts of two versions are never put together. Part files that cannot be gone on
    /// with are removed; others stay as `name.vitrine-part`, with `name.vitrine-head` beside them.
    ///
    /// A body that comes in a content coding is decoded, and cannot be gone on with.
    ///
    /// - Parameters:
    ///   - request: What to load, without a range. Its compression and protocol are the download's own affair.
    ///   - path: Where the file is to be; its directory must exist. A symbolic link stays, and what it points to is
    ///     replaced.
    ///   - options: How to treat the file.
    ///   - progress: Told how far the file has come: what was there already counts.
    /// - Throws: Why there is no file; ``NetworkError/busy(url:path:)`` while somebody else, in any process, loads to
    ///   the same path, ``NetworkError/file(_:)`` with the destination's path when it cannot be written,
    ///   ``NetworkError/status(url:_:)`` also for 204 and 205, which bring nothing. The destination is then as it was.
    public func download(
        _ request: HTTPRequest, to path: String, options: DownloadOptions = DownloadOptions(),
        progress: TransferProgress? = nil
    ) async throws(NetworkError) -> DownloadedFile {
        let executor = BlockingExecutor.shared
        let file: PartialFile, target: String
        do throws(NetworkError) {
            (file, target) = try await open(request, path, options, executor)
        } catch {
            progress?.update { $0.isFinished = true }
            throw error
        }
        do throws(NetworkError) {
            let whole = try await load(
                request, into: file, connections: options.connections, progress: progress, executor: executor)
            let length = file.length
            try await executor.onFiles { () throws(FileError) in
                try file.place(at: target, replaces: options.replacesFile, isDurable: options.isDurable)
            }
            progress?.update { step in
                (step.received, step.total) = (length, length)
                (step.isFinished, step.isComplete) = (true, true)
            }
            return DownloadedFile(
                path: target, head: whole.head, length: length, resumedLength: whole.resumedLength,
                restarts: whole.restarts)
        } catch {
            let mayGoOn = options.resumes
            await executor.run { mayGoOn ? file.release() : file.discard() }
            progress?.update { $0.isFinished = true }
            // What lies beside the destination is nobody's business.
            if case .file(let cause) = error { throw .file(cause.named(target)) }
            throw error
        }
    }

    /// Brings a body to a part file, which stays open whatever happens.
    ///
    /// - Parameters:
    ///   - request: What to load, without a range.
    ///   - file: Where to. What is there of the same body is gone on with.
    ///   - connections: How many to use at once, see ``DownloadOptions/connections``.
    ///   - first: A response to the request that is there already, without a coding if the load is to be gone on with:
    ///     then nothing is asked before it breaks off.
    ///   - progress: Told how far the file has come, but not of the end.
    ///   - executor: Whose threads write.
    package func load(
        _ request: HTTPRequest, into file: PartialFile, connections: Int = 1,
        beginningWith first: DatedResponse? = nil, progress: TransferProgress? = nil,
        executor: BlockingExecutor = .shared
    ) async throws(NetworkError) -> CompletedTransfer {
        if first == nil, connections > 1 || file.pieces != nil {
            return try await PiecewiseTransfer(
                self, request, file, connections: max(1, connections), progress, executor
            ).run()
        }
        var transfer = PartialTransfer(self, request, file, progress, executor)
        return try await transfer.run(beginningWith: first)
    }

    private func open(
        _ request: HTTPRequest, _ path: String, _ options: DownloadOptions, _ executor: BlockingExecutor
    ) async throws(NetworkError) -> (PartialFile, target: String) {
        let resource = options.identity ?? SourceURL.withoutCredentials(HTTPCache.identity(of: request.url))
        // A beginning that came from where this loader may not go is not gone on with.
        let identity = configuration.policy.fence.map { resource + "\n" + $0 } ?? resource
        let opened = try await executor.onFiles { () throws(FileError) in
            try Self.open(path, identity, options)
        }
        guard let file = opened.file else {
            let url = SourceURL.withoutCredentials(request.url.absoluteString)
            throw .busy(url: url, path: opened.target)
        }
        return (file, opened.target)
    }

    private static func open(
        _ path: String, _ identity: String, _ options: DownloadOptions
    ) throws(FileError) -> (file: PartialFile?, target: String) {
        let target = options.replacesFile ? try SymbolicLink.target(of: path) : path
        var status = stat()
        if lstat(target, &status) == 0 {
            // Told before anything is loaded.
            guard options.replacesFile else { throw .alreadyExists(path: target) }
            guard status.st_mode & S_IFMT != S_IFDIR else {
                throw .system(operation: "rename", path: target, code: EISDIR)
            }
        }
        do throws(FileError) {
            let file = try PartialFile.open(PartialFile.path(for: target), identity: identity)
            if let file, !options.resumes { try file.empty() }
            return (file, target)
        } catch {
            // Named after what the caller knows: where its directory is missing, for example.
            throw error.named(target)
        }
    }

    /// Sends a request for a part of a body, or for the whole, that is meant for a file.
    ///
    /// - Parameters:
    ///   - range: The part; nil for the whole.
    ///   - validator: What the part is wanted under.
    ///   - isCoded: Whether the body may come in a content coding, whose parts are nobody's bytes.
    func ask(
        _ request: HTTPRequest, _ range: ByteRange?, under validator: String?, isCoded: Bool,
        _ progress: TransferProgress?
    ) async throws(NetworkError) -> DatedResponse {
        var request = request
        // The flow control of HTTP/2 costs a large body more than it saves; and it has one connection for all parts.
        request.prefersHTTP1 = true
        request.acceptsCompression = isCoded
        if !isCoded { request.headers["Accept-Encoding"] = "identity" }
        request.range = range
        request.ifRange = validator
        let requestTime = wallClock.now
        let response = try await start(request, .nothing, progress)
        return DatedResponse(response, requestTime: requestTime, responseTime: wallClock.now)
    }
}
