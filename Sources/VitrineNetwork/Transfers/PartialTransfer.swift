#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// Brings one body to a part file, over as many requests as it takes: goes on where it broke off, and begins anew when
/// the source has changed.
struct PartialTransfer {
    private enum Step {
        case whole(CompletedTransfer)
        /// Something was learned: ask again, in another way.
        case again
        /// The body broke off.
        case interrupted(NetworkError)
    }

    private let loader: NetworkLoader
    private let request: HTTPRequest
    private let file: PartialFile
    private let progress: TransferProgress?
    private let executor: BlockingExecutor
    /// What errors say the address is.
    private let url: String
    /// Whether the body comes in a coding, so that its parts cannot be had.
    private var isCoded = false
    /// How many of the last bytes are compared even under a validator, as the source's parts do not repeat it; 0 while
    /// none has come without.
    private var overlap = 0
    private var resumedLength = 0
    private var restarts: Int
    private static let longestOverlap = 64 << 10

    init(
        _ loader: NetworkLoader, _ request: HTTPRequest, _ file: PartialFile, _ progress: TransferProgress?,
        _ executor: BlockingExecutor, restarts: Int = 0
    ) {
        self.loader = loader
        self.request = request
        self.file = file
        self.progress = progress
        self.executor = executor
        self.restarts = restarts
        url = SourceURL.withoutCredentials(request.url.absoluteString)
    }

    // MARK: All requests

    mutating func run(beginningWith first: DatedResponse?) async throws(NetworkError) -> CompletedTransfer {
        guard request.range == nil, !request.headers.contains("Range") else {
            throw .invalidRequest(url: url, reason: "a file is loaded as a whole, not in parts")
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
            if file.length > furthest {
                furthest = file.length
                (failures, turns) = (0, 0)
            }
            switch step {
            case .whole(let transfer): return transfer
            case .again:
                turns += 1
                // Each kind of answer is met in another way the next time; a server that thinks of new ones is left.
                guard turns <= 4 else { throw .invalidResponse(url: url, reason: "it changes with every request") }
            case .interrupted(let error):
                failures += 1
                guard error.isWorthResuming, failures <= limit else { throw error }
                try await loader.wait(retries.delay(before: failures), url)
                progress?.update { $0.retries += 1 }
            }
        }
    }

    private func ask(_ continuation: ResumableDownload?) async throws(NetworkError) -> DatedResponse {
        var asked = request
        if let continuation { asked.maximumBodySize -= ByteCount(continuation.start) }
        do throws(NetworkError) {
            let range = continuation.flatMap { ByteRange(from: $0.start) }
            return try await loader.ask(asked, range, under: continuation?.validator, isCoded: isCoded, progress)
        } catch .bodyTooLarge {
            throw .bodyTooLarge(url: url, limit: request.maximumBodySize)
        }
    }

    // MARK: One response

    private mutating func take(
        _ dated: DatedResponse, _ continuation: ResumableDownload?
    ) async throws(NetworkError) -> Step {
        let head = dated.response.head
        var asked = request
        if let continuation { asked.range = ByteRange(from: continuation.start) }
        let failure = ResponseCheck.failure(head, to: asked, policy: loader.configuration.policy)
        if case .contentType(_, _)? = failure { return try refuse(dated, failure) }
        if head.isWithoutContent { return try refuse(dated, failure) }
        guard let continuation else { return try await begin(dated, failure) }
        switch continuation.continuation(status: head.status, headers: head.headers) {
        case .append(let total?) where failure == nil && head.source == file.head?.source:
            return try await append(dated, total, comparing: continuation.overlap)
        case .unconfirmed where failure == nil && head.source == file.head?.source:
            // It may be of another version: what is there has to tell, so that is asked for once more.
            dated.response.body.cancel()
            overlap = Self.longestOverlap
            return .again
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
            // Another part than the one missing, or of something else.
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

    private mutating func begin(_ dated: DatedResponse, _ failure: NetworkError?) async throws(NetworkError) -> Step {
        let head = dated.response.head
        // A confirmation brings nothing to keep.
        if failure != nil || head.status == 304 { return try refuse(dated, failure) }
        if !isCoded, head.decodedFrom == nil, head.hasCodingToUndo {
            // It was not wanted so. As the bytes of a coding are nobody's file, it is to be decoded.
            dated.response.body.cancel()
            isCoded = true
            return .again
        }
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
        // A part of the part that was asked for is allowed (RFC 9110, section 15.3.7). One that ended before there was
        // anything new has to compare less.
        if self.overlap > 0, file.length == length { self.overlap = max(1, overlap / 2) }
        guard file.length == total else { return .again }
        let stored = file.head?.response.headers ?? HTTPHeaders()
        return .whole(completed(dated, headers: HTTPCache().merged(stored, with: dated.response.head.headers)))
    }

    /// How a body was read.
    private enum Reading {
        case ended
        case broken(NetworkError)
        /// Its beginning is not what is there already.
        case other
    }

    private enum Obstacle: Error {
        case file(FileError)
        case other
    }

    /// Brings a body to the file, on a thread that may block.
    ///
    /// - Parameter overlap: How many of its first bytes must be the last ones of the file.
    private func read(_ body: ResponseBody, comparing overlap: Int = 0) async throws(NetworkError) -> Reading {
        let (file, progress) = (file, progress)
        typealias End = Result<Result<Void, Obstacle>, NetworkError>
        let result = await withTaskExecutorPreference(executor) { () async -> End in
            var rest = overlap
            do throws(NetworkError) {
                return .success(
                    try await body.read { bytes throws(Obstacle) in
                        try Self.take(bytes, into: file, comparing: &rest)
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

    /// Appends what comes, behind as much of it as is only to be compared.
    private static func take(
        _ bytes: UnsafeRawBufferPointer, into file: PartialFile, comparing rest: inout Int
    ) throws(Obstacle) {
        let count = min(rest, bytes.count)
        let isKnown: Bool
        do throws(FileError) {
            let known = UnsafeRawBufferPointer(rebasing: bytes[..<count])
            isKnown = try file.matches(known, at: file.length - rest)
            if isKnown, count < bytes.count {
                try file.append(UnsafeRawBufferPointer(rebasing: bytes[count...]))
            }
        } catch {
            throw .file(error)
        }
        guard isKnown else { throw .other }
        rest -= count
    }

    // MARK: What comes of it

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

/// A body that lies in a ``PartialFile`` as a whole.
package struct CompletedTransfer: Sendable {
    /// The head of the whole: status 200, also where it came in parts.
    package let head: HTTPResponseHead
    /// When the last request was sent that brought a part of it, since 1970.
    package let requestTime: Duration
    /// When its response arrived, since 1970.
    package let responseTime: Duration
    /// How many bytes were there before.
    package let resumedLength: Int
    /// How many times what was there had to be given up.
    package let restarts: Int

    /// - Parameters:
    ///   - last: The last response that brought a part of it, or said that nothing is missing.
    ///   - headers: The fields of the whole.
    ///   - length: How many bytes are there.
    init(_ last: DatedResponse, headers: HTTPHeaders, length: Int, resumedLength: Int, restarts: Int) {
        var head = last.response.head
        head.status = [206, 416].contains(head.status) ? 200 : head.status
        head.headers = headers
        head.headers.remove("Content-Range")
        if head.decodedFrom == nil { head.headers["Content-Length"] = String(length) }
        self.head = head
        (requestTime, responseTime) = (last.requestTime, last.responseTime)
        (self.resumedLength, self.restarts) = (resumedLength, restarts)
    }
}

/// A response with the times its freshness is counted from.
package struct DatedResponse: Sendable {
    package let response: HTTPResponse
    /// Since 1970.
    package let requestTime: Duration
    /// Since 1970.
    package let responseTime: Duration

    package init(_ response: HTTPResponse, requestTime: Duration, responseTime: Duration) {
        self.response = response
        self.requestTime = requestTime
        self.responseTime = responseTime
    }

    /// What is kept of it beside its body.
    var stored: StoredResponse {
        StoredResponse(
            status: response.head.status, headers: HTTPCache().storableFields(response.head.headers),
            requestTime: requestTime, responseTime: responseTime, selecting: [])
    }
}
