#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

extension NetworkLoader {
    /// Downloads a URL to a file without holding the whole body in memory.
    ///
    /// ```swift
    /// var request = HTTPRequest(url: url)
    /// request.maximumBodySize = .gigabytes(20)
    /// let file = try await loader.download(request, to: "/srv/videos/sintel.mkv")
    /// ```
    ///
    /// The body is written to a part file beside the destination, which replaces the destination when it is complete.
    ///
    /// An interrupted download is resumed: within this call as often as ``NetworkLoader/Configuration/retries``
    /// permits, and by the next call, also after the process was killed. The rest is requested under the validator of
    /// the received part. If the source has changed or does not support ranges, the download starts over. Parts of two
    /// versions are never combined. Part files that can be resumed stay as `name.vitrine-part` and `name.vitrine-head`;
    /// others are removed.
    ///
    /// A body with a content coding is decoded and cannot be resumed.
    ///
    /// - Parameters:
    ///   - request: The request, without a range. The download sets its compression and protocol.
    ///   - path: The destination, whose directory must exist. If it is a symbolic link, its target is replaced.
    ///   - progress: Receives the progress of the file, including the part that earlier calls received.
    /// - Throws: ``NetworkError/busy(url:path:)`` while another task or process downloads to the path,
    ///   ``NetworkError/file(_:)`` if the file cannot be written, ``NetworkError/status(url:_:)`` also for 204 and 205,
    ///   and the errors of ``load(_:progress:)``. The destination is then unchanged.
    public func download(
        _ request: HTTPRequest, to path: String, progress: TransferProgress? = nil
    ) async throws(NetworkError) -> DownloadedFile {
        try await download(request, to: path, options: DownloadOptions(), progress: progress)
    }

    /// Downloads to a file as the options ask; see ``download(_:to:progress:)``.
    package func download(
        _ request: HTTPRequest, to path: String, options: DownloadOptions, progress: TransferProgress? = nil
    ) async throws(NetworkError) -> DownloadedFile {
        let executor = BlockingExecutor.shared
        let file: PartialFile, target: String
        do throws(NetworkError) {
            (file, target) = try await open(request, path: path, options: options, executor: executor)
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
            // Name the destination: the part file is an implementation detail.
            if case .file(let cause) = error { throw .file(cause.named(target)) }
            throw error
        }
    }

    /// Downloads a body into a part file over several connections. The file stays open in any case.
    ///
    /// - Parameters:
    ///   - request: The request, without a range.
    ///   - file: The file. A received part of the same body is resumed.
    ///   - connections: The number of connections, see ``DownloadOptions/connections``.
    ///   - progress: Receives the progress of the file, but not the end.
    ///   - executor: The threads that write.
    package func load(
        _ request: HTTPRequest, into file: PartialFile, connections: Int, progress: TransferProgress?,
        executor: BlockingExecutor
    ) async throws(NetworkError) -> CompletedTransfer {
        guard connections > 1 || file.pieces != nil else {
            var transfer = PartialTransfer(
                self, request: request, file: file, progress: progress, executor: executor)
            return try await transfer.run(beginningWith: nil)
        }
        return try await PiecewiseTransfer(
            self, request: request, file: file, connections: max(1, connections), progress: progress,
            executor: executor
        ).run()
    }

    /// Downloads a body into a part file over one connection. The file stays open in any case.
    ///
    /// - Parameters:
    ///   - request: The request, without a range.
    ///   - file: The file. A received part of the same body is resumed.
    ///   - first: A response to the request that has already been received. The transfer begins with it. It must have
    ///     no content coding if the transfer is to be resumable.
    ///   - progress: Receives the progress of the file, but not the end.
    ///   - arriving: Receives the appended bytes, unless the file has the pieces of several connections.
    func load(
        _ request: HTTPRequest, into file: PartialFile, beginningWith first: DatedResponse?,
        progress: TransferProgress?, arriving: ArrivingBytes?
    ) async throws(NetworkError) -> CompletedTransfer {
        if first == nil, file.pieces != nil {
            return try await load(request, into: file, connections: 1, progress: progress, executor: .shared)
        }
        var transfer = PartialTransfer(
            self, request: request, file: file, progress: progress, executor: .shared, arriving: arriving)
        return try await transfer.run(beginningWith: first)
    }

    private func open(
        _ request: HTTPRequest, path: String, options: DownloadOptions, executor: BlockingExecutor
    ) async throws(NetworkError) -> (PartialFile, target: String) {
        // A part of another user, or from a refused address, is not resumed.
        let identity = LoadIdentity(request, id: options.identity, by: self).key.identity
        let opened = try await executor.onFiles { () throws(FileError) in
            try Self.open(path, identity: identity, options: options)
        }
        guard let file = opened.file else {
            let url = SourceURL.withoutCredentials(request.url.absoluteString)
            throw .busy(url: url, path: opened.target)
        }
        return (file, opened.target)
    }

    private static func open(
        _ path: String, identity: String, options: DownloadOptions
    ) throws(FileError) -> (file: PartialFile?, target: String) {
        let target = options.replacesFile ? try SymbolicLink.target(of: path) : path
        var status = stat()
        if lstat(target, &status) == 0 {
            // Fail before anything is loaded.
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
            // Name the path that the caller knows.
            throw error.named(target)
        }
    }

    /// Sends a request for a part of a body, or for the whole, that is written to a file.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - range: The part, or nil for the whole.
    ///   - validator: The validator of the part.
    ///   - isCoded: Whether the body may have a content coding, so that it cannot be resumed.
    ///   - progress: Receives retries and the response.
    func ask(
        _ request: HTTPRequest, range: Range<Int>?, under validator: String?, isCoded: Bool,
        progress: TransferProgress?
    ) async throws(NetworkError) -> DatedResponse {
        var request = request
        // HTTP/2 is slower for large bodies, and it would use one connection for all parts.
        request.prefersHTTP1 = true
        request.acceptsCompression = isCoded
        if !isCoded { request.headers["Accept-Encoding"] = "identity" }
        request.range = range
        request.ifRange = validator
        let requestTime = wallClock.now
        let response = try await start(request, checks: .nothing, progress: progress)
        return DatedResponse(response, requestTime: requestTime, responseTime: wallClock.now)
    }
}

/// The options of ``NetworkLoader/download(_:to:progress:)``.
package struct DownloadOptions: Sendable {
    /// Whether an existing file at the destination is replaced. If false, it is an error,
    /// `FileError.alreadyExists(path:)`. The default is true.
    package var replacesFile = true
    /// Whether an interrupted download is resumed and its part file is kept. The default is true.
    package var resumes = true
    /// Whether the call returns only after the file and its name have been synchronized to the disk. The default is
    /// false.
    package var isDurable = false
    /// The number of connections, each of which loads pieces of the file. The default is 1.
    ///
    /// More than one helps if each connection is slow. It requires a server with ranges and strong validators, and a
    /// file of at least 2 MB.
    package var connections = 1
    /// The identity of the file, for signed and other changing URLs. A download is resumed by a request with the same
    /// identity. The default is nil, which means the URL.
    package var identity: String?

    /// Creates the default options.
    package init() {}
}

/// A downloaded file.
public struct DownloadedFile: Sendable, Hashable {
    /// The path, with symbolic links resolved.
    public let path: String
    /// The head of the whole body. Its status is 200, also for a resumed download.
    public let head: HTTPResponseHead
    /// The number of bytes.
    public let length: Int
    /// The number of bytes that earlier calls received.
    package let resumedLength: Int
    /// The number of restarts after a change of the source.
    package let restarts: Int
}

extension FileError {
    /// Returns the same error with another path, to hide the names of internal files.
    package func named(_ path: String) -> FileError {
        switch self {
        case .notFound: .notFound(path: path)
        case .alreadyExists: .alreadyExists(path: path)
        case .notPermitted(_, let code): .notPermitted(path: path, code: code)
        case .noSpace: .noSpace(path: path)
        case .notDurable(_, let code): .notDurable(path: path, code: code)
        case .tooLarge(_, let limit): .tooLarge(path: path, limit: limit)
        case .cancelled: .cancelled(path: path)
        case .untrusted(_, let reason): .untrusted(path: path, reason: reason)
        case .system(let operation, _, let code): .system(operation: operation, path: path, code: code)
        }
    }
}

extension BlockingExecutor {
    /// Runs a closure that accesses files on one of the threads.
    func onFiles<T: Sendable>(_ body: @escaping @Sendable () throws(FileError) -> T) async throws(NetworkError) -> T {
        do throws(FileError) { return try await run(body) } catch { throw .file(error) }
    }
}
