import VitrineCache
import VitrineCore

/// What is made of a response that brings what was asked for.
extension CachedLoad {
    func collected(_ response: HTTPResponse) async throws(NetworkError) -> [UInt8] {
        let body = arriving.map { response.body.copied(to: $0) } ?? response.body
        guard let progress else { return try await body.collect() }
        let total = response.head.contentLength
        progress.update { $0.total = total }
        return try await body.counted(by: progress).collect()
    }

    /// What may be kept of a whole body.
    func kept(_ bytes: [UInt8], _ update: CacheUpdate) -> Answer {
        guard case .storing(var stored) = update.answer else {
            return .body(bytes, timeToLive: nil, tag: [], .none)
        }
        stored.bodyLength = bytes.count
        return .body(bytes, timeToLive: timeToLive(of: stored), tag: stored.tag, .all)
    }

    // MARK: Large bodies

    private var isWhole: Bool { request.method == "GET" && request.body == nil && request.range == nil }

    /// The body of which an earlier request has left the beginning; nil if none has.
    func goingOn(_ wanted: CacheRequest) async throws(NetworkError) -> Answer? {
        guard isWhole, let partials = options.partials, await partials.mayHave(key),
            let file = await partials.open(key)
        else { return nil }
        return try await load(nil, request, wanted, file, partials)
    }

    /// A body that is large enough to be gone on with if it breaks off; nil for others.
    func resumable(
        _ dated: DatedResponse, _ sent: HTTPRequest, _ wanted: CacheRequest
    ) async throws(NetworkError) -> Answer? {
        let head = dated.response.head
        guard isWhole, head.status == 200, head.decodedFrom == nil, let length = head.contentLength,
            length >= PartialDirectory.smallestBody, let partials = options.partials,
            let file = await partials.open(key)
        else { return nil }
        return try await load(dated, sent, wanted, file, partials)
    }

    private func load(
        _ first: DatedResponse?, _ sent: HTTPRequest, _ wanted: CacheRequest, _ file: PartialFile,
        _ partials: PartialDirectory
    ) async throws(NetworkError) -> Answer? {
        do throws(NetworkError) {
            if first == nil, let arriving, file.pieces == nil, file.length <= arriving.limit {
                // The part that an earlier transfer brought.
                let bytes = try await BlockingExecutor.shared.onFiles { () throws(FileError) in try file.contents() }
                arriving.begin()
                arriving.append(bytes)
            }
            let whole = try await options.loader.load(
                sent, into: file, beginningWith: first, progress: progress, arriving: arriving)
            try check(whole.head)
            let bytes = try await BlockingExecutor.shared.onFiles { () throws(FileError) in try file.contents() }
            await partials.close(file, isDone: true)
            // The head of the whole, which is not the one of its last part.
            let exchange = CacheExchange(
                request: wanted, status: whole.head.status, headers: whole.head.headers,
                requestTime: whole.requestTime, responseTime: whole.responseTime)
            return kept(bytes, cache.update(after: exchange))
        } catch {
            await partials.close(file, isDone: error.isFinal)
            throw error
        }
    }

    /// The content type, before anything is kept (R75).
    func check(_ head: HTTPResponseHead) throws(NetworkError) {
        let types = options.contentTypes
        guard !types.isEmpty, !URLAccessPolicy.accepts(contentType: head.contentType, among: types) else { return }
        throw .contentType(url: displayURL, type: head.contentType)
    }
}

extension NetworkError {
    /// Whether the beginning of a body is of no use after this.
    fileprivate var isFinal: Bool {
        switch self {
        case .contentType, .bodyTooLarge, .file: true
        default: false
        }
    }
}
