#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// Loads one resource with regard to the stored response.
struct CachedLoad: Sendable {
    /// The result for the cache.
    enum Answer: Sendable {
        /// New bytes with the levels that may store them, and the keys of other values that are outdated.
        case body([UInt8], timeToLive: Duration?, validator: [UInt8], CacheLevels, outdated: [CacheKey] = [])
        /// The stored value, which the server has confirmed, with the levels that may keep it.
        case unchanged(timeToLive: Duration, validator: [UInt8], CacheLevels)
        /// The stored value, although it is stale.
        case stale(refreshing: Bool)
        /// No value. The stored value is removed.
        case gone(NetworkError)
    }

    /// Media types that are sent as `Accept`. Any other is asked for in general, at the lowest priority.
    private static let maximumAccepted = 16

    var request: HTTPRequest
    let key: CacheKey
    var options: FetchOptions
    let progress: TransferProgress?
    /// Receives the body while it is transferred; nil for none.
    let arriving: ArrivingBytes?
    /// See ``NetworkFetcher/willHold``.
    var willHold: (@Sendable (Int) async throws(NetworkError) -> Void)?
    /// See ``NetworkFetcher/excerpt``.
    var excerpt: BodyExcerpt?
    let cache: HTTPCache

    init(
        _ request: HTTPRequest, key: CacheKey, options: FetchOptions, progress: TransferProgress?,
        arriving: ArrivingBytes? = nil
    ) {
        self.request = request
        self.key = key
        self.options = options
        self.progress = progress
        self.arriving = arriving
        cache = HTTPCache(policy: options.caching)
        self.request.maximumBodySize = min(request.maximumBodySize, options.maximumBodySize)
        // The cache sends its own conditions.
        self.request.ifRange = nil
        self.request.headers.removeAll { HTTPSyntax.conditionFields.contains($0.name.lowercased()) }
        self.request.totalTimeout = request.totalTimeout ?? options.totalTimeout
        if !options.contentTypes.isEmpty, !request.headers.contains("Accept") {
            var types = options.contentTypes
            if types.count > Self.maximumAccepted { types = types.prefix(Self.maximumAccepted) + ["*/*;q=0.1"] }
            self.request.headers.append("Accept", types.joined(separator: ", "))
        }
    }

    /// Sends a request, unless the stored response can be used.
    func answer(_ context: FetchContext, _ resource: Resource) async throws(NetworkError) -> Answer {
        var load = self
        load.request.priority = context.priority
        do throws(NetworkError) {
            return try await load.exchanged(context, resource)
        } catch .status(let url, let head) where head.status == 404 || head.status == 410 {
            return .gone(.status(url: url, head))
        }
    }

    private func exchanged(_ context: FetchContext, _ resource: Resource) async throws(NetworkError) -> Answer {
        let load = self
        guard resource == .http else { return try await load.local() }
        let stored = context.stored.flatMap { try? StoredResponse(bytes: $0.validator) }
        if stored == nil, isWhole, let excerpt, let answer = try await load.answer(excerpt, context) { return answer }
        return try await load.exchange(stored, context)
    }

    /// Loads from a source other than HTTP, to which caching rules do not apply.
    private func local() async throws(NetworkError) -> Answer {
        let response = try await options.loader.load(request, progress: progress)
        // Files have no media type.
        if response.head.contentType != nil { try check(response.head) }
        let body = arriving.map { response.body.copied(to: $0) } ?? response.body
        return .body(try await body.collect(), timeToLive: nil, validator: [], .all)
    }

    // MARK: HTTP

    var wanted: CacheRequest {
        CacheRequest(method: request.method, url: request.url, headers: options.loader.fields(of: request))
    }

    private func exchange(
        _ stored: StoredResponse?, _ context: FetchContext
    ) async throws(NetworkError) -> Answer {
        let wanted = wanted
        var sent = request
        var isConditional = false
        switch cache.decide(wanted, stored: stored.map { [$0] } ?? [], now: options.clock.now) {
        case .serve(_, let freshness) where !freshness.isFresh && !context.isRefresh: return .stale(refreshing: false)
        case .serveAndRevalidate where !context.isRefresh: return .stale(refreshing: true)
        case .serve, .serveAndRevalidate, .revalidate:
            // The cache entry has expired or is to be refreshed, whatever the response declares.
            guard let stored else { break }
            sent.headers = cache.conditions(for: stored, wanted)
            sent.conditionalTarget = stored.redirection?.target ?? digest(of: request.url)
            isConditional = true
        case .forward: break
        case .unavailable:
            throw .unavailable(url: displayURL, reason: "the request permits only stored responses, and there is none")
        }
        if context.isRefresh, !context.isBackground, !sent.headers.contains("Cache-Control") {
            // Intermediate caches have to revalidate as well.
            sent.headers.append("Cache-Control", "no-cache")
        }
        do throws(NetworkError) {
            // An interrupted transfer is newer than the stored response.
            if let answer = try await resumed() { return answer }
            let requestTime = options.clock.now
            let response = try await options.loader.start(sent, checks: .nothing, progress: progress)
            let dated = DatedResponse(response, requestTime: requestTime, responseTime: options.clock.now)
            return try await answer(dated, to: sent, stored: isConditional ? stored : nil, context: context)
        } catch .file where options.resumesLargeBodies {
            // The disk is full or failing: load without a file.
            var load = self
            load.options.resumesLargeBodies = false
            return try await load.exchange(stored, context)
        } catch {
            guard let stored, !context.isRefresh, error.isWithoutAnswer,
                cache.canServeStale(stored, to: wanted, afterFailureAt: options.clock.now)
            else { throw error }
            return .stale(refreshing: false)
        }
    }

    /// Handles a response.
    ///
    /// - Parameters:
    ///   - dated: The response.
    ///   - sent: The request.
    ///   - stored: The revalidated response.
    ///   - context: The context of the fetch.
    func answer(
        _ dated: DatedResponse, to sent: HTTPRequest, stored: StoredResponse?, context: FetchContext
    ) async throws(NetworkError) -> Answer {
        let head = dated.response.head, body = dated.response.body
        var exchange = exchange(
            head, redirects: dated.response.redirects, requestTime: dated.requestTime, responseTime: dated.responseTime)
        exchange.stored = stored.map { [$0] } ?? []
        // A redirect may have led to another URL, whose 304 confirms nothing.
        let isConfirmable = head.status != 304 || dated.response.answersConditions
        exchange.revalidated = stored != nil && isConfirmable ? 0 : nil
        let update = cache.update(after: exchange)
        switch (update.answer, stored) {
        case (.confirmed(let index), let stored?):
            await body.discard()
            let confirmed = update.refreshed[index] ?? stored
            return .unchanged(
                timeToLive: timeToLive(of: confirmed), validator: confirmed.validator,
                update.removed.contains(index) ? .none : .all)
        case (.stale, _) where !context.isRefresh:
            await body.discard()
            return .stale(refreshing: false)
        case (.repetition, _):
            await body.discard()
            return try await self.exchange(nil, context)
        default: break
        }
        var failure = ResponseCheck.failure(head, to: sent, policy: options.loader.configuration.policy)
        // A response without content has no value.
        if failure == nil, head.status == 304 || head.isWithoutContent { failure = .status(url: displayURL, head) }
        if let failure {
            await body.discard()
            // It replaces the stored response, but is no value.
            if !update.removed.isEmpty, case .status = failure { return .gone(failure) }
            throw failure
        }
        do throws(NetworkError) { try check(head) } catch {
            body.cancel()
            throw error
        }
        if let answer = try await resumable(dated, sent) { return answer }
        return kept(try await collected(dated.response), update)
    }

    /// Returns the exchange of a response for the rules of caching.
    func exchange(
        _ head: HTTPResponseHead, redirects: [HTTPResponseHead], requestTime: Duration, responseTime: Duration
    ) -> CacheExchange {
        var exchange = CacheExchange(
            request: wanted, status: head.status, headers: head.headers, requestTime: requestTime,
            responseTime: responseTime)
        if head.answersCredentials, cache.policy.isShared, !exchange.request.headers.contains("Authorization") {
            // From the URL, a modifier or the authentication. The digest of a constant stands for it.
            exchange.request.headers.append("Authorization", "credentials")
        }
        exchange.redirects = redirects
        if !redirects.isEmpty { exchange.target = digest(of: head.url) }
        return exchange
    }

    /// Returns the digest of a URL, as ``SourceURL/digest``; nil for one that is not HTTP.
    private func digest(of url: URL) -> String? { (try? SourceURL(url.absoluteString))?.digest }

    private var displayURL: String { SourceURL.withoutCredentials(request.url.absoluteString) }

    /// The limit of the times on disk: a hundred years.
    private static let longestLife = Duration.seconds(3_155_760_000)

    /// Returns the remaining time without revalidation.
    private func timeToLive(of response: StoredResponse) -> Duration {
        let policy = cache.policy
        let (directives, _) = policy.directives(of: response.headers)
        if policy.requiresValidation(response, directives) { return .zero }
        return min(policy.freshness(of: response, now: options.clock.now).remaining, Self.longestLife)
    }
}

extension NetworkError {
    /// Whether there was no complete response.
    fileprivate var isWithoutAnswer: Bool {
        switch self {
        case .nameNotResolved, .notConnected, .insecure, .timedOut, .tookTooLong, .truncated, .unavailable: true
        default: false
        }
    }
}

// MARK: Bodies

extension CachedLoad {
    private func collected(_ response: HTTPResponse) async throws(NetworkError) -> [UInt8] {
        var body = arriving.map { response.body.copied(to: $0) } ?? response.body
        let total = response.head.contentLength
        if let willHold {
            let declared = response.head.decodedFrom == nil ? total : nil
            do throws(NetworkError) {
                if let declared { try await willHold(declared) }
            } catch {
                body.cancel()
                throw error
            }
            body = body.announced(beyond: declared ?? 0, willHold)
        }
        guard let progress else { return try await body.collect() }
        progress.update { $0.total = total }
        return try await body.counted(by: progress).collect()
    }

    /// Returns a complete body with the levels that may store it.
    func kept(_ bytes: [UInt8], _ update: CacheUpdate) -> Answer {
        guard case .storing(var stored) = update.answer else {
            return .body(bytes, timeToLive: nil, validator: [], .none, outdated: outdated(by: update))
        }
        stored.bodyLength = bytes.count
        return .body(
            bytes, timeToLive: timeToLive(of: stored), validator: stored.validator, .all,
            outdated: outdated(by: update))
    }

    /// Returns the keys of the values that a response to an unsafe method outdates: those of its own URL and of the
    /// URLs that it names (RFC 9111, section 4.4).
    private func outdated(by update: CacheUpdate) -> [CacheKey] {
        guard wanted.isUnsafe else { return [] }
        return ([request.url] + update.invalidated).map { url in
            LoadIdentity(HTTPRequest(url: url), id: nil, options: options).key
        }
    }

    // MARK: Large bodies

    private var isWhole: Bool { request.method == "GET" && request.body == nil && request.range == nil }

    /// Resumes the transfer of an earlier request; nil if there is none.
    private func resumed() async throws(NetworkError) -> Answer? {
        guard isWhole, let partials = options.partials, await partials.mayHave(key),
            let file = await partials.open(key)
        else { return nil }
        return try await load(nil, sent: request, file: file, partials: partials)
    }

    /// Receives a large body into a file, so that it can be resumed; nil for other bodies.
    private func resumable(
        _ dated: DatedResponse, _ sent: HTTPRequest
    ) async throws(NetworkError) -> Answer? {
        let head = dated.response.head
        guard isWhole, head.status == 200, head.decodedFrom == nil, let length = head.contentLength,
            length >= PartialDirectory.smallestBody, let partials = options.partials,
            let file = await partials.open(key)
        else { return nil }
        return try await load(dated, sent: sent, file: file, partials: partials)
    }

    private func load(
        _ first: DatedResponse?, sent: HTTPRequest, file: PartialFile, partials: PartialDirectory
    ) async throws(NetworkError) -> Answer? {
        do throws(NetworkError) {
            if first == nil, let arriving, file.pieces == nil, file.length <= arriving.limit {
                // The part of an earlier, interrupted transfer.
                let bytes = try await BlockingExecutor.shared.onFiles { () throws(FileError) in try file.contents() }
                arriving.begin()
                arriving.append(bytes)
            }
            let whole = try await options.loader.load(
                sent, into: file, beginningWith: first, progress: progress, arriving: arriving)
            try check(whole.head)
            let bytes = try await BlockingExecutor.shared.onFiles { () throws(FileError) in try file.contents() }
            await partials.close(file, isDone: true)
            // The head of the whole body differs from that of its last part.
            let exchange = exchange(
                whole.head, redirects: whole.redirects, requestTime: whole.requestTime, responseTime: whole.responseTime
            )
            return kept(bytes, cache.update(after: exchange))
        } catch {
            await partials.close(file, isDone: error.isFinal)
            throw error
        }
    }

    /// Checks the media type before anything is stored.
    func check(_ head: HTTPResponseHead) throws(NetworkError) {
        let types = options.contentTypes
        guard !types.isEmpty, !URLAccessPolicy.accepts(contentType: head.contentType, among: types) else { return }
        if options.sniffsContent, URLAccessPolicy.saysNothing(contentType: head.contentType) { return }
        throw .contentType(url: displayURL, type: head.contentType)
    }
}

extension NetworkError {
    /// Whether the received part of a body is of no use after this error.
    fileprivate var isFinal: Bool {
        switch self {
        case .contentType, .bodyTooLarge, .file: true
        default: false
        }
    }
}

/// A directory with the files of interrupted transfers, each named by the digest of its key.
final class PartialDirectory: Sendable {
    /// Smaller bodies are not received into a file.
    fileprivate static let smallestBody = 1_000_000
    /// Older files are removed.
    private static let longestWait = Duration.seconds(7 * 86_400)
    private static let known = Locked<[String: PartialDirectory]>([:])

    /// Returns the directory at a path, which the whole process shares.
    static func at(_ path: String) -> PartialDirectory {
        known.withLock { known in
            if let directory = known[path] { return directory }
            let directory = PartialDirectory(path)
            known[path] = directory
            return directory
        }
    }

    private let path: String
    /// The known files; nil until the directory has been read.
    private let files = Locked<Set<String>?>(nil)

    private init(_ path: String) { self.path = path }

    private func file(_ key: CacheKey) -> String {
        PartialFile.path(for: FilePath.join(path, Hexadecimal.text(SHA256Digest.digest(of: key.identity))))
    }

    /// Returns whether there may be a file for a key. Reads the directory once.
    fileprivate func mayHave(_ key: CacheKey) async -> Bool {
        let known = files.withLock { $0 }
        if let known { return !known.isEmpty && known.contains(file(key)) }
        let found = await BlockingExecutor.shared.run { [path] in
            _ = try? PartialFile.removeAbandoned(in: path, olderThan: Self.longestWait)
            let names = (try? Directory.names(ofFilesIn: path)) ?? []
            return Set(names.map { FilePath.join(path, $0) })
        }
        files.withLock { $0 = ($0 ?? []).union(found) }
        return found.contains(file(key))
    }

    /// Opens the file of a key.
    ///
    /// - Returns: nil if another load has it open or it cannot be opened. The load then continues without a file.
    func open(_ key: CacheKey) async -> PartialFile? {
        let file = file(key)
        let opened = await BlockingExecutor.shared.run { [path] () -> PartialFile? in
            try? Directory.create(path)
            return (try? PartialFile.open(file, identity: key.identity)) ?? nil
        }
        if opened != nil { files.withLock { _ = $0?.insert(file) } }
        return opened
    }

    /// Releases a file.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - isDone: Whether to remove the file. Otherwise it is kept if it can be resumed.
    func close(_ file: PartialFile, isDone: Bool) async {
        if isDone { files.withLock { _ = $0?.remove(file.path) } }
        await BlockingExecutor.shared.run { isDone ? file.discard() : file.release() }
    }
}
