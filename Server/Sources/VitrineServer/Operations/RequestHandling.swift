import Foundation
import HTTPTypes
package import Hummingbird
package import HummingbirdCore
import Logging
package import NIOCore
import NIOHTTP1
import Synchronization
import Tracing
import VitrineNetwork

/// The context of a request: its logger with the request's identifier, its client, and its connection.
package struct ServerRequestContext: ConnectionRequestContext {
    package var coreContext: CoreRequestContextStorage
    package let channel: any Channel
    /// The address behind trusted proxies.
    package var client: ClientAddress?
    /// The other end of the connection.
    package var peer: ClientAddress?
    /// Identifies the request in logs, and in the answer's X-Request-ID field.
    package var requestID = ""

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

/// Requests under way, for `/debug`.
package final class RequestsInFlight: Sendable {
    package struct Entry: Sendable {
        package var id: String
        package var method: String
        package var path: String
        package var client: String
        package var started: Int64
    }
    private struct State {
        var next: UInt64 = 0
        var entries: [UInt64: Entry] = [:]
        var notable = NotableAnswers()
    }
    private let state = Mutex(State())

    package init() {}

    func add(_ entry: Entry) -> UInt64 {
        state.withLock { state in
            state.next += 1
            state.entries[state.next] = entry
            return state.next
        }
    }

    func remove(_ number: UInt64) { state.withLock { _ = $0.entries.removeValue(forKey: number) } }

    /// Keeps an answer that took long or is an error.
    func note(_ path: Substring, status: Int, seconds: Double) {
        state.withLock { state in
            guard status >= 400 || state.notable.isSlow(seconds) else { return }
            let path = String(path.prefix(2048))
            state.notable.note(.init(path: path, status: status, seconds: seconds, time: Int64(time(nil))))
        }
    }

    var notable: NotableAnswers { state.withLock { $0.notable } }

    package var count: Int { state.withLock { $0.entries.count } }

    /// The oldest first.
    package var entries: [Entry] { state.withLock { $0.entries.values.sorted { $0.started < $1.started } } }
}

/// The text of Date fields, made once a second.
final class DateText: Sendable {
    private let known = Mutex<(second: Int, text: String)>((0, ""))

    var now: String {
        let second = time(nil)
        return known.withLock { known in
            if known.second != second { known = (second, HTTPDate.text(Int64(second))) }
            return known.text
        }
    }
}

/// Identifiers of requests: a random part of the process and a count.
private enum RequestIdentifier {
    private static let prefix = String(UInt64.random(in: UInt64.max / 2...UInt64.max), radix: 16)
    private static let count = Atomic<UInt64>(0)

    /// The client's own, if it can stand in a log line, else a new one.
    static func identifier(_ proposed: String?) -> String {
        if let proposed, (1...128).contains(proposed.utf8.count), proposed.utf8.allSatisfy(isPlain) { return proposed }
        return "\(prefix)-\(String(count.add(1, ordering: .relaxed).newValue, radix: 16))"
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

extension HTTPField.Name {
    private static func name(_ text: String) -> HTTPField.Name {
        // Every name here is a literal of this file.
        guard let name = HTTPField.Name(text) else { preconditionFailure("“\(text)” is not the name of a field") }
        return name
    }
    static let forwardedFor = name("X-Forwarded-For")
    static let traceparent = name("traceparent")
}

extension Response {
    /// A short text.
    static func text(_ status: HTTPResponse.Status, _ text: String, type: String = "text/plain") -> Response {
        Response(
            status: status, headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    /// An error with a stable code: `{"code":…,"reason":…}`.
    static func error(_ error: RequestError) -> Response {
        var response = text(
            HTTPResponse.Status(code: error.status),
            "{\"code\":\(JSONText.quoted(error.code)),\"reason\":\(JSONText.quoted(error.reason))}\n",
            type: "application/json")
        if let seconds = error.retryAfter { response.headers[.retryAfter] = String(seconds) }
        return response
    }
}

/// Surrounds the work on every request of the main listeners with health, limits, traces, metrics and logs.
///
/// Answers that need no task are made on the event loop of their connection, others by a task. Both ways begin with
/// ``begin(from:forwarded:proposedID:at:)`` and end with ``end(_:_:)``, where all is done that requests share.
package final class RequestHandler: Sendable {
    private struct Settings {
        var locator: ClientLocator
        var logsRequests: Bool
    }

    /// A request from its first byte to its log line.
    private struct Record {
        let started: Int64
        let id: String
        let client: ClientAddress
        let peer: ClientAddress
        let isLogged: Bool
        /// How long the client has to wait, if it has asked too often.
        let wait: Double?
    }

    /// The end of a request.
    private struct Outcome {
        var method: String
        /// The target without its query.
        var path: Substring
        /// A word of the program for metrics and logs.
        var route: String
        var status: Int
        var bytes: Int
        /// Whether the client left before all of the answer was sent.
        var isAborted = false
        /// Whether it is a stream of changes, which ends with its page.
        var isStream = false
        var trace: String?
    }

    /// The receivers of reports about requests.
    package struct Reports: Sendable {
        let logger: Logger
        let metrics: ServerMetrics
        /// Nil for no traces.
        let tracer: OTLPTracer?
    }

    private let responder: any HTTPResponder<ServerRequestContext>
    private let images: ImmediateResponder?
    private let logger: Logger
    private let metrics: ServerMetrics
    private let limiter: RateLimiter
    private let tracer: OTLPTracer?
    private let drain: DrainState
    private let inFlight: RequestsInFlight
    private let refusals = RefusalLog()
    private let dates = DateText()
    private let settings: Mutex<Settings>

    package init(
        _ hooks: ImageServer.Hooks, configuration: ServerConfiguration, reports: Reports, limiter: RateLimiter,
        drain: DrainState, inFlight: RequestsInFlight
    ) {
        responder = hooks.responder
        images = hooks.immediate
        logger = reports.logger
        metrics = reports.metrics
        tracer = reports.tracer
        self.limiter = limiter
        self.drain = drain
        self.inFlight = inFlight
        settings = Mutex(Self.settings(configuration))
    }

    private static func settings(_ configuration: ServerConfiguration) -> Settings {
        Settings(
            locator: ClientLocator(trustedProxies: configuration.trustedProxies),
            logsRequests: configuration.logRequests)
    }

    package func configure(_ configuration: ServerConfiguration) {
        let new = Self.settings(configuration)
        settings.withLock { $0 = new }
    }

    /// The client of a connection.
    package func client(_ peer: SocketAddress?, _ forwarded: [String]) -> ClientAddress {
        settings.withLock { $0.locator }.client(peer: ClientAddress(peer) ?? .unix, forwarded: forwarded)
    }

    // MARK: What all requests share

    private func begin(
        from address: SocketAddress?, forwarded: [String], proposedID: String?,
        at started: Int64 = monotonicNanoseconds()
    ) -> Record {
        let settings = settings.withLock { $0 }
        let peer = ClientAddress(address) ?? .unix
        let client = settings.locator.client(peer: peer, forwarded: forwarded)
        return Record(
            started: started, id: RequestIdentifier.identifier(proposedID), client: client, peer: peer,
            isLogged: settings.logsRequests, wait: limiter.admit(client, now: started))
    }

    private func end(_ record: Record, _ outcome: Outcome) {
        let seconds = Double(monotonicNanoseconds() - record.started) / 1e9
        // The length of a stream is how long a page was open.
        if !outcome.isStream {
            inFlight.note(outcome.path, status: outcome.status, seconds: seconds)
            metrics.answered(
                route: outcome.route, status: outcome.status, seconds: seconds,
                bytes: outcome.isAborted ? 0 : outcome.bytes)
        }
        if record.isLogged { log(record, outcome, seconds: seconds) }
    }

    private func log(_ record: Record, _ outcome: Outcome, seconds: Double) {
        var fields: Logger.Metadata = [
            "request_id": .string(record.id),
            "method": .string(outcome.method), "path": .string(String(outcome.path.prefix(2048))),
            "status": .stringConvertible(outcome.status), "bytes": .stringConvertible(outcome.bytes),
            "milliseconds": .stringConvertible((seconds * 100_000).rounded() / 100),
            "client": .string(record.client.description), "route": .string(outcome.route),
        ]
        if outcome.isAborted { fields["aborted"] = .stringConvertible(true) }
        if let trace = outcome.trace { fields["trace_id"] = .string(trace) }
        if (400..<500).contains(outcome.status) || outcome.isAborted {
            // Strangers cause these for nothing.
            guard let left = refusals.admit() else { return }
            fields["path"] = .string(String(outcome.path.prefix(512)))
            if left > 0 { fields["left_out"] = .stringConvertible(left) }
        }
        logger.info("request", metadata: fields)
    }

    /// The answer to a monitor. It is not counted, limited or logged: monitors ask often, and an answer must not wait
    /// for anything.
    private func health(_ path: some StringProtocol) -> (status: HTTPResponse.Status, text: String)? {
        switch path {
        case "/health": (.ok, "ok\n")
        case "/ready": drain.isDraining ? (.serviceUnavailable, "draining\n") : (.ok, "ready\n")
        default: nil
        }
    }

    // MARK: Answers by a task

    /// Answers a request of a connection.
    package func respond(
        to request: Request, writer: consuming ResponseWriter, channel: any Channel
    ) async throws {
        if let health = health(request.uri.path) {
            let response = Response.text(health.status, health.text)
            try await write(request.method == .head ? response.createHeadResponse() : response, writer)
            return
        }
        // The address of a stream of HTTP/2 is that of its connection.
        let record = begin(
            from: channel.remoteAddress ?? channel.parent?.remoteAddress,
            forwarded: request.headers[values: .forwardedFor], proposedID: request.headers[.requestID])
        var logger = logger
        logger[metadataKey: "request_id"] = .string(record.id)
        var context = ServerRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        (context.client, context.peer, context.requestID) = (record.client, record.peer, record.id)
        let number = inFlight.add(
            .init(
                id: record.id, method: request.method.rawValue, path: request.uri.path,
                client: record.client.description, started: record.started))
        metrics.inFlight.increment(by: 1.0)
        var isUnderWay = true
        func leave() {
            guard isUnderWay else { return }
            isUnderWay = false
            inFlight.remove(number)
            metrics.inFlight.decrement(by: 1.0)
        }
        defer { leave() }

        var (response, span) = try await answer(request, of: record, context)
        response.headers[.date] = dates.now
        response.headers[.requestID] = record.id
        var outcome = Outcome(
            method: request.method.rawValue, path: request.uri.path[...],
            route: context.coreContext.endpointPath.value ?? "image", status: Int(response.status.code),
            bytes: response.body.contentLength ?? 0,
            isStream: response.headers[.contentType] == "text/event-stream", trace: span?.context.trace?.traceID)
        var failure: (any Error)?
        // A stream of changes lasts as long as its page is open. Nothing is being done for it.
        if outcome.isStream { leave() }
        do {
            try await write(response, writer)
        } catch {
            failure = error
            outcome.isAborted = true
        }
        end(record, outcome)
        if let span {
            span.updateAttributes { $0["http.response.status_code"] = outcome.status }
            if outcome.status >= 500 { span.setStatus(SpanStatus(code: .error)) }
            span.end()
        }
        if let failure { throw failure }
    }

    /// The answer within its limits, and the span that it has while traces are recorded.
    private func answer(
        _ request: Request, of record: Record, _ context: ServerRequestContext
    ) async throws -> (Response, OTLPSpan?) {
        if let wait = record.wait {
            metrics.refused(.rateLimit)
            var response = Response.error(
                RequestError(429, code: "rate-limit", reason: "There are too many requests of this client."))
            response.headers[.retryAfter] = String(max(Int(wait.rounded(.up)), 1))
            return (response, nil)
        }
        let span = tracer.map { Self.span(of: request, $0, record.client) }
        // Without a span of its own, sources see that of the client.
        guard let traced = span?.context ?? Self.passedTrace(of: request) else {
            return (try await answer(request, context), nil)
        }
        let response = try await InstrumentationContext.$current.withValue(traced) {
            try await answer(request, context)
        }
        return (response, span)
    }

    // MARK: Answers on the event loop

    /// Answers monitors, and requests for images that take no waiting, on the event loop of their connection; nil for a
    /// request that ``respond(to:writer:channel:)`` is to answer. While traces are recorded, that is each request.
    package func immediate(_ request: ImmediateRequest) -> ImmediateAnswer? {
        if let health = health(request.target) { return Self.answer(health, to: request) }
        let started = monotonicNanoseconds()
        // A span is more than this saves.
        guard tracer == nil, let images, var answer = images(request) else { return nil }
        let record = begin(
            from: request.channel.remoteAddress, forwarded: request.fields.forwardedFor,
            proposedID: request.fields.requestID, at: started)
        // A task refuses it, with its own answer.
        guard record.wait == nil else { return nil }
        answer.add("Date", dates.now)
        answer.add("X-Request-ID", record.id)
        end(
            record,
            Outcome(
                method: request.isHead ? "HEAD" : "GET", path: request.target.prefix { $0 != "?" }, route: "image",
                status: answer.status, bytes: answer.bodyCount))
        metrics.found(answer.origin == .disk ? .disk : .memory)
        return answer
    }

    private static func answer(
        _ health: (status: HTTPResponse.Status, text: String), to request: ImmediateRequest
    ) -> ImmediateAnswer {
        let lines = ImmediateAnswer.Lines(
            health.status,
            [
                .contentType: "text/plain", .cacheControl: "no-store",
                .contentLength: String(health.text.utf8.count),
            ])
        return ImmediateAnswer(
            lines, status: health.status.code, body: request.isHead ? nil : ByteBuffer(string: health.text),
            allocator: request.channel.allocator)
    }

    private func answer(_ request: Request, _ context: ServerRequestContext) async throws -> Response {
        do {
            return try await responder.respond(to: request, context: context)
        } catch let error as HTTPParserError {
            // The connection answers it.
            throw error
        } catch let error as RequestError {
            return .error(error)
        } catch let error as any HTTPResponseError {
            return try error.response(from: request, context: context)
        } catch is CancellationError {
            return .error(RequestError(503, code: "shutting-down", reason: "The server stops.", retryAfter: 1))
        } catch {
            context.logger.error("A request failed", metadata: ["error": "\(error)"])
            return .error(RequestError(500, code: "internal", reason: "The server failed to answer."))
        }
    }

    private func write(_ response: Response, _ writer: consuming ResponseWriter) async throws {
        do {
            try await writer.write(response: response.head, body: response.body)
        } catch is HTTPParserError {
            // Thrown on, it would be answered a second time.
            throw ChannelError.outputClosed
        }
    }

    private struct HeaderExtractor: Extractor {
        func extract(key: String, from carrier: HTTPFields) -> String? { HTTPField.Name(key).flatMap { carrier[$0] } }
    }

    /// The client's trace; nil if it has none.
    private static func passedTrace(of request: Request) -> InstrumentationContext? {
        guard request.headers.contains(.traceparent) else { return nil }
        var context = InstrumentationContext.topLevel
        OTLPTracer.read(request.headers, into: &context, using: HeaderExtractor())
        return context.trace.map { _ in context }
    }

    private static func span(of request: Request, _ tracer: OTLPTracer, _ client: ClientAddress) -> OTLPSpan {
        var parent = InstrumentationContext.topLevel
        tracer.extract(request.headers, into: &parent, using: HeaderExtractor())
        let span = tracer.startSpan("\(request.method.rawValue) image", context: parent, ofKind: .server)
        if span.isRecording {
            // Not the path: it contains the address of the source.
            span.updateAttributes { attributes in
                attributes["http.request.method"] = request.method.rawValue
                attributes["client.address"] = client.description
            }
        }
        return span
    }
}
