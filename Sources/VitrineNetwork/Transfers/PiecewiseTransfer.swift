import VitrineCore

/// Downloads a body into a part file over several connections, each of which loads pieces.
///
/// This requires a server with ranges, a known length and a strong validator, under which every piece is requested.
/// Other bodies, and small ones, are loaded over one connection.
struct PiecewiseTransfer {
    /// The reason why a piece could not be loaded.
    private enum Obstacle: Error {
        /// The source has changed, or no longer supports ranges.
        case changed
        case failed(NetworkError)
    }

    /// The state that the connections share.
    private final class Work: Sendable {
        /// The pieces that have not been started.
        let open: Locked<[Int]>
        /// The response that the transfer began with. Its body begins with the first piece.
        let first: Locked<DatedResponse?>
        /// The last response.
        let last: Locked<DatedResponse?>

        init(_ pieces: [Int], _ first: DatedResponse?) {
            open = Locked(pieces.reversed())
            self.first = Locked(first)
            last = Locked(first)
        }
    }

    private let loader: NetworkLoader
    private let request: HTTPRequest
    private let file: PartialFile
    private let connections: Int
    private let progress: TransferProgress?
    private let executor: BlockingExecutor
    /// The URL in errors.
    private let url: String

    init(
        _ loader: NetworkLoader, request: HTTPRequest, file: PartialFile, connections: Int,
        progress: TransferProgress?, executor: BlockingExecutor
    ) {
        (self.loader, self.request, self.file, self.connections) = (loader, request, file, connections)
        (self.progress, self.executor) = (progress, executor)
        url = SourceURL.withoutCredentials(request.url.absoluteString)
    }

    func run() async throws(NetworkError) -> CompletedTransfer {
        let resumedLength = file.length
        var first: DatedResponse?
        if file.pieces == nil {
            // Continue an undivided transfer, or one without ranges, as it is.
            guard resumedLength == 0, request.method == "GET" else { return try await whole() }
            let dated = try await loader.ask(
                request, range: .toEnd(from: 0), under: nil, isCoded: false, progress: progress)
            guard try await begin(dated) else { return try await whole(beginningWith: dated) }
            first = dated
        }
        switch await loadPieces(beginningWith: first) {
        case .success(let last): return try await completed(last, resumedLength)
        case .failure(.failed(let error)): throw error
        case .failure(.changed):
            try await executor.onFiles { [file] () throws(FileError) in try file.empty() }
            // Start over without ranges.
            return try await whole(restarts: 1)
        }
    }

    /// Loads the body over one connection.
    private func whole(
        beginningWith dated: DatedResponse? = nil, restarts: Int = 0
    ) async throws(NetworkError) -> CompletedTransfer {
        var transfer = PartialTransfer(
            loader, request: request, file: file, progress: progress, executor: executor)
        transfer.restarts = restarts
        // What is refused for a range of all bytes is refused for the whole.
        if let dated, dated.response.head.status >= 400, dated.response.head.status != 416 {
            return try await transfer.run(beginningWith: dated)
        }
        guard let dated, isWhole(dated.response.head) else {
            dated?.response.body.cancel()
            return try await transfer.run(beginningWith: nil)
        }
        var head = dated.response.head
        head.status = 200
        head.headers.remove("Content-Range")
        return try await transfer.run(
            beginningWith: DatedResponse(
                HTTPResponse(head: head, body: dated.response.body), requestTime: dated.requestTime,
                responseTime: dated.responseTime))
    }

    /// Returns whether a response to an open range from 0 contains the whole body.
    private func isWhole(_ head: HTTPResponseHead) -> Bool {
        guard head.status == 206 else { return head.status == 200 }
        guard let brought = head.headers.contentRange else { return false }
        return brought.range.lowerBound == 0 && brought.range.upperBound == brought.total
    }

    // MARK: Start

    /// Divides the body of the first response.
    ///
    /// - Returns: Whether a division is possible and worthwhile.
    private func begin(_ dated: DatedResponse) async throws(NetworkError) -> Bool {
        let head = dated.response.head
        guard let total = head.headers.contentRange?.total,
            let pieces = PieceTable(dividing: total, among: connections), Self.brings(head, 0..<total, of: total),
            head.decodedFrom == nil, !head.hasCodingToUndo
        else { return false }
        var stored = dated.stored
        stored.status = 200
        stored.headers.remove("Content-Range")
        stored.headers["Content-Length"] = String(total)
        guard ResumableDownload(length: 1, of: stored)?.validator != nil else { return false }
        guard total <= request.maximumBodySize.bytes else {
            dated.response.body.cancel()
            throw .bodyTooLarge(url: url, limit: request.maximumBodySize)
        }
        let source = head.source
        try await executor.onFiles { [stored, file] () throws(FileError) in
            try file.begin(stored, from: source, isWhole: true)
            try file.divide(into: pieces)
        }
        return true
    }

    // MARK: Pieces

    /// Loads the missing pieces.
    ///
    /// - Returns: The last response, or nil if nothing was missing.
    private func loadPieces(beginningWith first: DatedResponse?) async -> Result<DatedResponse?, Obstacle> {
        guard let pieces = file.pieces else { return .success(first) }
        show(pieces)
        let missing = (0..<pieces.count).filter { !pieces.missing(of: $0).isEmpty }
        let work = Work(missing, first)
        let result = await withTaskGroup(of: Result<Void, Obstacle>.self) { group in
            for _ in 0..<min(connections, missing.count) {
                group.addTask(executorPreference: executor) {
                    do throws(Obstacle) { return .success(try await take(work)) } catch { return .failure(error) }
                }
            }
            var result = Result<Void, Obstacle>.success(())
            for await one in group {
                // Later failures are consequences of the first.
                guard case .success = result, case .failure = one else { continue }
                result = one
                group.cancelAll()
            }
            return result
        }
        work.first.withLock { $0?.response.body.cancel() }
        return result.map { work.last.withLock { $0 } }
    }

    /// Loads pieces until none is left.
    private func take(_ work: Work) async throws(Obstacle) {
        while let piece = work.open.withLock({ $0.popLast() }) {
            var first = piece == 0 ? work.first.withLock { $0.take() } : nil
            var failures = 0
            while let missing = file.pieces?.missing(of: piece), !missing.isEmpty {
                let failure = try await load(piece, range: missing, given: first.take(), work: work)
                let hasGrown = file.pieces?.missing(of: piece) != missing
                if failure == nil, hasGrown { continue }
                failures = hasGrown ? 1 : failures + 1
                let retries = loader.configuration.retries
                let mayResume = failures <= retries.limit || retries.resumesAfterProgress && hasGrown
                guard failure?.isWorthResuming ?? true, mayResume else {
                    throw .failed(failure ?? .invalidResponse(url: url, reason: "the partial response is empty"))
                }
                do throws(NetworkError) {
                    try await loader.wait(retries.delay(before: failures), url)
                } catch {
                    throw .failed(error)
                }
                progress?.update { $0.retries += 1 }
            }
        }
    }

    /// Loads a range of a piece.
    ///
    /// - Returns: The error that interrupted the body; nil if the body or the piece has ended.
    private func load(
        _ piece: Int, range: Range<Int>, given: DatedResponse?, work: Work
    ) async throws(Obstacle) -> NetworkError? {
        let dated: DatedResponse
        if let given { dated = given } else { dated = try await answer(range, work) }
        do throws(NetworkError) {
            let result = try await dated.response.body.read { bytes throws(Stop) in
                let hadRoom: Bool
                do throws(FileError) { hadRoom = try file.write(bytes, to: piece) } catch { throw .failed(error) }
                progress?.update { [length = file.length] in $0.received = length }
                if !hadRoom { throw .full }
            }
            if case .failure(.failed(let error)) = result { throw .file(error) }
            return nil
        } catch .file(let error) {
            throw .failed(.file(error))
        } catch {
            return error
        }
    }

    private enum Stop: Error {
        /// The piece is complete.
        case full
        case failed(FileError)
    }

    private func answer(_ range: Range<Int>, _ work: Work) async throws(Obstacle) -> DatedResponse {
        guard let known = file.head, let pieces = file.pieces,
            let validator = ResumableDownload(length: 1, of: known.response)?.validator
        else { throw .changed }
        let dated: DatedResponse
        do throws(NetworkError) {
            dated = try await loader.ask(request, range: range, under: validator, isCoded: false, progress: progress)
        } catch {
            throw .failed(error)
        }
        let head = dated.response.head
        if Self.brings(head, range, of: pieces.total), Self.isSame(head, as: known) {
            work.last.withLock { $0 = dated }
            return dated
        }
        dated.response.body.cancel()
        if [200, 206, 412, 416].contains(head.status) { throw .changed }
        var asked = request
        asked.range = range
        let failure = ResponseCheck.failure(head, to: asked, policy: loader.configuration.policy)
        throw .failed(failure ?? .status(url: url, head))
    }

    /// Returns whether a response contains these bytes, or the first of them.
    private static func brings(_ head: HTTPResponseHead, _ range: Range<Int>, of total: Int) -> Bool {
        guard head.status == 206, let brought = head.headers.contentRange else { return false }
        return brought.range.lowerBound == range.lowerBound && brought.range.upperBound <= range.upperBound
            && brought.total == total && head.headers["Content-Encoding"] == nil
    }

    /// Returns whether a partial response declares the known validator. Servers without `If-Range` send parts of any
    /// version. The query may differ, because a server may sign an address for each piece.
    private static func isSame(_ head: HTTPResponseHead, as known: PartialHead) -> Bool {
        guard head.source.isSamePlace(as: known.source) else { return false }
        return ResumableDownload(length: 1, of: known.response)?.isConfirmed(by: head.headers) ?? false
    }

    // MARK: End

    private func completed(
        _ last: DatedResponse?, _ resumedLength: Int
    ) async throws(NetworkError) -> CompletedTransfer {
        let stored = file.head?.response.headers ?? HTTPHeaders()
        try await executor.onFiles { [file] () throws(FileError) in try file.join() }
        // If nothing was missing, the server still has to confirm the version.
        guard let last else { return try await whole() }
        return CompletedTransfer(
            last, headers: HTTPCache().merged(stored, with: last.response.head.headers), length: file.length,
            resumedLength: resumedLength, restarts: 0)
    }

    private func show(_ pieces: PieceTable) {
        progress?.update { step in
            step.received = pieces.length
            step.total = pieces.total
        }
    }
}
