#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// Downloads a body into a part file with as many requests as necessary. Resumes after interruptions, and starts over
/// if the source has changed.
struct PartialTransfer {
    private enum Step {
        case whole(CompletedTransfer)
        /// Send another request in a different form.
        case again
        /// The body was interrupted.
        case interrupted(NetworkError)
    }

    private let loader: NetworkLoader
    private let request: HTTPRequest
    private let file: PartialFile
    private let progress: TransferProgress?
    private let arriving: ArrivingBytes?
    private let executor: BlockingExecutor
    /// The URL in errors.
    private let url: String
    /// Whether the body has a content coding, so that it cannot be resumed.
    private var isCoded = false
    /// The number of bytes to compare although there is a validator; not 0 after a partial response without it.
    private var overlap = 0
    private var resumedLength = 0
    /// How often the body was begun anew, by this transfer and before it.
    var restarts = 0
    private static let longestOverlap = 64 << 10

    init(
        _ loader: NetworkLoader, request: HTTPRequest, file: PartialFile, progress: TransferProgress?,
        executor: BlockingExecutor, arriving: ArrivingBytes? = nil
    ) {
        self.loader = loader
        self.request = request
        self.file = file
        self.progress = progress
        self.arriving = arriving
        self.executor = executor
        url = SourceURL.withoutCredentials(request.url.absoluteString)
    }

    // MARK: Requests

    mutating func run(beginningWith first: DatedResponse?) async throws(NetworkError) -> CompletedTransfer {
        guard request.range == nil, !request.headers.contains("Range") else {
            throw .invalidRequest(url: url, reason: "a download must not have a range")
        }
        let retries = loader.configuration.retries
        let limit = HTTPSyntax.isIdempotent(request.method) ? retries.limit : 0
        var first = first
        resumedLength = file.length
        var furthest = file.length, failures = 0, turns = 0
        while true {
            let mayContinue = first == nil && request.method == "GET" && !isCoded
            let continuation = mayContinue ? file.continuation(comparingAlways: overlap) : nil
            let step: Step
            if let given = first.take() {
                step = try await take(given, nil)
            } else {
                show(continuation)
                step = try await take(try await ask(continuation), continuation)
            }
            let hasProgressed = file.length > furthest
            if hasProgressed {
                furthest = file.length
                (failures, turns) = (0, 0)
            }
            switch step {
            case .whole(let transfer): return transfer
            case .again:
                turns += 1
                // Each kind of response changes the next request; stop if the server always finds another one.
                guard turns <= 4 else {
                    throw .invalidResponse(url: url, reason: "the response changes with every request")
                }
            case .interrupted(let error):
                failures += 1
                // A body that is loaded from its start again has lost its progress.
                let mayResume = retries.resumesAfterProgress && hasProgressed && file.isResumable
                guard error.isWorthResuming, failures <= limit || mayResume else { throw error }
                try await loader.wait(retries.delay(before: failures), url)
                progress?.update { $0.retries += 1 }
            }
        }
    }

    private func ask(_ continuation: ResumableDownload?) async throws(NetworkError) -> DatedResponse {
        var asked = request
        if let continuation { asked.maximumBodySize -= ByteCount(continuation.start) }
        do throws(NetworkError) {
            let range = continuation.map { Range.toEnd(from: $0.start) }
            return try await loader.ask(
                asked, range: range, under: continuation?.validator, isCoded: isCoded, progress: progress)
        } catch .bodyTooLarge {
            throw .bodyTooLarge(url: url, limit: request.maximumBodySize)
        }
    }

    // MARK: Responses

    private mutating func take(
        _ dated: DatedResponse, _ continuation: ResumableDownload?
    ) async throws(NetworkError) -> Step {
        let head = dated.response.head
        var asked = request
        if let continuation { asked.range = .toEnd(from: continuation.start) }
        let failure = ResponseCheck.failure(head, to: asked, policy: loader.configuration.policy)
        if case .contentType(_, _)? = failure { return try refuse(dated, failure) }
        if head.isWithoutContent { return try refuse(dated, failure) }
        guard let continuation else { return try await begin(dated, failure) }
        let isSamePlace = failure == nil && head.source.isSamePlace(as: file.head?.source)
        let isComparing = continuation.overlap > 0
        switch continuation.continuation(status: head.status, headers: head.headers) {
        case .append(let total?) where isSamePlace && (isComparing || head.source == file.head?.source):
            return try await append(dated, total, comparing: continuation.overlap)
        case .append(_?) where isSamePlace, .unconfirmed where isSamePlace:
            // The part may belong to another version or query, so request it again with bytes to compare.
            dated.response.body.cancel()
            overlap = Self.longestOverlap
            return .again
        case .restart where failure == nil && continuation.isContradicted(by: head):
            let reason = "it has the same entity tag as the received part, but another length"
            return try refuse(dated, .invalidResponse(url: url, reason: reason))
        case .restart:
            restarts += 1
            return try await begin(dated, failure)
        case .complete:
            dated.response.body.cancel()
            return .whole(completed(dated, headers: file.head?.response.headers ?? head.headers))
        case .failed(discarding: false) where failure != nil: return try refuse(dated, failure)
        case .failed(discarding: true) where head.status == 404 || head.status == 410:
            try await executor.onFiles { [file] () throws(FileError) in try file.empty() }
            return try refuse(dated, failure)
        case .append, .unconfirmed, .failed:
            // Another range than requested, or another version.
            dated.response.body.cancel()
            return try await startOver()
        }
    }

    private mutating func startOver() async throws(NetworkError) -> Step {
        restarts += 1
        try await executor.onFiles { [file] () throws(FileError) in try file.empty() }
        return .again
    }

    private func refuse(_ dated: DatedResponse, _ failure: NetworkError?) throws(NetworkError) -> Step {
        dated.response.body.cancel()
        throw failure ?? .status(url: url, dated.response.head)
    }

    private mutating func begin(_ given: DatedResponse, _ failure: NetworkError?) async throws(NetworkError) -> Step {
        // A 304 has no body.
        if failure != nil || given.response.head.status == 304 { return try refuse(given, failure) }
        var dated = given
        if !isCoded, given.response.head.decodedFrom == nil, given.response.head.hasCodingToUndo {
            // The server compressed the body unasked.
            isCoded = true
            #if os(Linux)
            dated = try given.decoded(as: request, at: url)
            #else
            // Request it again to decode it.
            given.response.body.cancel()
            return .again
            #endif
        }
        let head = dated.response.head
        resumedLength = 0
        let stored = dated.stored, source = head.source, isWhole = head.decodedFrom == nil && request.method == "GET"
        try await executor.onFiles { [file] () throws(FileError) in
            try file.begin(stored, from: source, isWhole: isWhole)
        }
        let total = head.contentLength
        progress?.update { step in
            step.received = 0
            step.total = total
        }
        arriving?.begin()
        if case .broken(let error) = try await read(dated.response.body) { return .interrupted(error) }
        return .whole(completed(dated, headers: head.headers))
    }

    private mutating func append(
        _ dated: DatedResponse, _ total: Int, comparing overlap: Int
    ) async throws(NetworkError) -> Step {
        guard total <= request.maximumBodySize.bytes else {
            dated.response.body.cancel()
            throw .bodyTooLarge(url: url, limit: request.maximumBodySize)
        }
        progress?.update { $0.total = total }
        let length = file.length
        switch try await read(dated.response.body, comparing: overlap) {
        case .broken(let error): return .interrupted(error)
        case .other: return try await startOver()
        case .ended: break
        }
        // A server may send less than the requested range (RFC 9110, section 15.3.7). If nothing new was received,
        // compare less.
        if self.overlap > 0, file.length == length { self.overlap = max(1, overlap / 2) }
        guard file.length == total else { return .again }
        let stored = file.head?.response.headers ?? HTTPHeaders()
        return .whole(completed(dated, headers: HTTPCache().merged(stored, with: dated.response.head.headers)))
    }

    /// The result of reading a body.
    private enum Reading {
        case ended
        case broken(NetworkError)
        /// Its first bytes differ from the received ones.
        case other
    }

    private enum Obstacle: Error {
        case file(FileError)
        case other
    }

    /// Writes a body to the file, on a thread that may block.
    ///
    /// - Parameters:
    ///   - body: The body.
    ///   - overlap: The number of first bytes that must equal the last ones of the file.
    private func read(_ body: ResponseBody, comparing overlap: Int = 0) async throws(NetworkError) -> Reading {
        let (file, progress, arriving) = (file, progress, arriving)
        typealias End = Result<Result<Void, Obstacle>, NetworkError>
        let result = await withTaskExecutorPreference(executor) { () async -> End in
            var rest = overlap
            do throws(NetworkError) {
                return .success(
                    try await body.read { bytes throws(Obstacle) in
                        try Self.take(bytes, into: file, comparing: &rest, arriving)
                        let length = file.length
                        progress?.update { $0.received = length }
                    })
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success(.success): return .ended
        case .success(.failure(.other)): return .other
        case .success(.failure(.file(let error))): throw .file(error)
        case .failure(.bodyTooLarge): throw .bodyTooLarge(url: url, limit: request.maximumBodySize)
        case .failure(let error): return .broken(error)
        }
    }

    /// Compares the first bytes and appends the others.
    private static func take(
        _ bytes: UnsafeRawBufferPointer, into file: PartialFile, comparing rest: inout Int, _ arriving: ArrivingBytes?
    ) throws(Obstacle) {
        let count = min(rest, bytes.count)
        let isKnown: Bool
        do throws(FileError) {
            let known = UnsafeRawBufferPointer(rebasing: bytes[..<count])
            isKnown = try file.matches(known, at: file.length - rest)
            if isKnown, count < bytes.count {
                try file.append(UnsafeRawBufferPointer(rebasing: bytes[count...]))
                arriving?.append(Array(bytes[count...]))
            }
        } catch {
            throw .file(error)
        }
        guard isKnown else { throw .other }
        rest -= count
    }

    // MARK: Result

    private func completed(_ dated: DatedResponse, headers: HTTPHeaders) -> CompletedTransfer {
        CompletedTransfer(
            dated, headers: headers, length: file.length, resumedLength: resumedLength, restarts: restarts)
    }

    private func show(_ continuation: ResumableDownload?) {
        let received = continuation?.length ?? 0, total = continuation?.total
        progress?.update { step in
            step.received = received
            step.total = total
        }
    }
}

/// A complete body in a ``PartialFile``.
package struct CompletedTransfer: Sendable {
    /// The head of the whole body. Its status is 200, also after a resumption.
    package let head: HTTPResponseHead
    /// The time of the last request, since 1970.
    package let requestTime: Duration
    /// The time of its response, since 1970.
    package let responseTime: Duration
    /// The redirects that led to its response.
    let redirects: [HTTPResponseHead]
    /// The number of bytes that earlier transfers received.
    package let resumedLength: Int
    /// The number of restarts after a change of the source.
    package let restarts: Int

    /// Creates the result of a transfer.
    ///
    /// - Parameters:
    ///   - last: The last response.
    ///   - headers: The header fields of the whole body.
    ///   - length: The length of the body.
    ///   - resumedLength: The number of bytes that earlier transfers received.
    ///   - restarts: The number of restarts.
    init(_ last: DatedResponse, headers: HTTPHeaders, length: Int, resumedLength: Int, restarts: Int) {
        var head = last.response.head
        head.status = [206, 416].contains(head.status) ? 200 : head.status
        head.headers = headers
        head.headers.remove("Content-Range")
        if head.decodedFrom == nil { head.headers["Content-Length"] = String(length) }
        self.head = head
        redirects = last.response.redirects
        (requestTime, responseTime) = (last.requestTime, last.responseTime)
        (self.resumedLength, self.restarts) = (resumedLength, restarts)
    }
}

/// A response with the times of its exchange.
package struct DatedResponse: Sendable {
    package let response: HTTPResponse
    /// The time of the request, since 1970.
    package let requestTime: Duration
    /// The time of the response, since 1970.
    package let responseTime: Duration

    package init(_ response: HTTPResponse, requestTime: Duration, responseTime: Duration) {
        self.response = response
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    #if os(Linux)
    /// Returns the response without the content codings of its body.
    fileprivate func decoded(as request: HTTPRequest, at url: String) throws(NetworkError) -> DatedResponse {
        do throws(NetworkError) {
            let decoded = try response.decoded(as: request, at: url)
            return DatedResponse(decoded ?? response, requestTime: requestTime, responseTime: responseTime)
        } catch {
            response.body.cancel()
            throw error
        }
    }
    #endif

    /// The head to store beside the body.
    var stored: StoredResponse {
        StoredResponse(
            status: response.head.status, headers: HTTPCache().storableFields(response.head.headers),
            requestTime: requestTime, responseTime: responseTime, selecting: [])
    }
}
