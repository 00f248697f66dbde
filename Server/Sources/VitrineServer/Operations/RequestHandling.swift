import Foundation
import HTTPTypes
package import Hummingbird
package import HummingbirdCore
package import Logging
package import NIOCore
import NIOHTTP1
import Synchronization
import Tracing

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
    func note(_ request: Request, status: Int, seconds: Double) {
        state.withLock { state in
            guard status >= 400 || state.notable.isSlow(seconds) else { return }
            let path = String(request.uri.path.prefix(2048))
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
            if known.second != second { known = (second, HTTPTime.text(Int64(second))) }
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
package final class RequestHandler: Sendable {
    private struct Settings {
        var locator: ClientLocator
        var logsRequests: Bool
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
    private let immediateAnswers: ServerMetrics.ImmediateAnswers

    package init(
        responder: any HTTPResponder<ServerRequestContext>, immediate: ImmediateResponder?,
        configuration: ServerConfiguration, logger: Logger,
        metrics: ServerMetrics, limiter: RateLimiter, tracer: OTLPTracer?, drain: DrainState,
        inFlight: RequestsInFlight
    ) {
        self.responder = responder
        images = immediate
        immediateAnswers = metrics.immediateAnswers()
        self.logger = logger
        self.metrics = metrics
        self.limiter = limiter
        self.tracer = tracer
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

    /// Answers a request of a connection.
    package func respond(
        to request: Request, writer: consuming ResponseWriter, channel: any Channel
    ) async throws {
        // Not counted, limited or logged: monitors ask often, and an answer must not wait for anything.
        if let response = health(request) {
            try await write(response, writer)
            return
        }
        let started = monotonicNanoseconds()
        let settings = settings.withLock { $0 }
        // The address of a stream of HTTP/2 is that of its connection.
        let peer = ClientAddress(channel.remoteAddress ?? channel.parent?.remoteAddress) ?? .unix
        let client = settings.locator.client(peer: peer, forwarded: request.headers[values: .forwardedFor])
        let id = RequestIdentifier.identifier(request.headers[.requestID])
        var logger = logger
        logger[metadataKey: "request_id"] = .string(id)
        var context = ServerRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        (context.client, context.peer) = (client, peer)
        context.requestID = id
        let number = inFlight.add(
            .init(
                id: id, method: request.method.rawValue, path: request.uri.path, client: client.description,
                started: started))
        metrics.inFlight.increment(by: 1.0)
        defer {
            inFlight.remove(number)
            metrics.inFlight.decrement(by: 1.0)
        }

        var response: Response
        var span: OTLPSpan?
        if let wait = limiter.admit(client, now: started) {
            metrics.refused(.rateLimit)
            response = .error(
                RequestError(429, code: "rate-limit", reason: "There are too many requests of this client."))
            response.headers[.retryAfter] = String(max(Int(wait.rounded(.up)), 1))
        } else if let tracer {
            let started = Self.span(of: request, tracer, client)
            span = started
            response = try await InstrumentationContext.$current.withValue(started.context) {
                try await answer(request, context)
            }
        } else if let passed = Self.passedTrace(of: request) {
            // No span of its own: sources see that of the client.
            response = try await InstrumentationContext.$current.withValue(passed) {
                try await answer(request, context)
            }
        } else {
            response = try await answer(request, context)
        }
        response.headers[.date] = dates.now
        response.headers[.requestID] = id

        let status = Int(response.status.code)
        let bytes = response.body.contentLength ?? 0
        var failure: (any Error)?
        do {
            try await write(response, writer)
        } catch {
            failure = error
        }
        let seconds = Double(monotonicNanoseconds() - started) / 1e9
        let route = context.coreContext.endpointPath.value ?? "image"
        // Streams of changes end with their pages.
        if response.headers[.contentType] != "text/event-stream" {
            inFlight.note(request, status: status, seconds: seconds)
        }
        metrics.answered(route: route, status: status, seconds: seconds, bytes: failure == nil ? bytes : 0)
        if let span {
            span.updateAttributes { $0["http.response.status_code"] = status }
            if status >= 500 { span.setStatus(SpanStatus(code: .error)) }
            span.end()
        }
        if settings.logsRequests {
            var fields = Self.logFields(
                request.method.rawValue, path: request.uri.path, status: status, bytes: bytes, seconds: seconds,
                client: client)
            fields["route"] = .string(route)
            if failure != nil { fields["aborted"] = .stringConvertible(true) }
            if let trace = span?.context.trace { fields["trace_id"] = .string(trace.traceID) }
            if (400..<500).contains(status) || failure != nil {
                // Strangers cause these for nothing.
                if let left = refusals.admit() {
                    fields["path"] = .string(String(request.uri.path.prefix(512)))
                    if left > 0 { fields["left_out"] = .stringConvertible(left) }
                    logger.info("request", metadata: fields)
                }
            } else {
                logger.info("request", metadata: fields)
            }
        }
        if let failure { throw failure }
    }

    private static func logFields(
        _ method: String, path: String, status: Int, bytes: Int, seconds: Double, client: ClientAddress
    ) -> Logger.Metadata {
        [
            "method": .string(method), "path": .string(String(path.prefix(2048))),
            "status": .stringConvertible(status), "bytes": .stringConvertible(bytes),
            "milliseconds": .stringConvertible((seconds * 100_000).rounded() / 100),
            "client": .string(client.description),
        ]
    }

    /// Answers monitors, and requests for images that take no waiting, on the event loop of their connection; nil for a
    /// request that ``respond(to:writer:channel:)`` is to answer.
    package func immediate(_ request: ImmediateRequest) -> ImmediateAnswer? {
        if let answer = immediateHealth(request) { return answer }
        // A span is more than this saves.
        guard tracer == nil, let images else { return nil }
        let started = monotonicNanoseconds()
        guard var answer = images(request) else { return nil }
        let settings = settings.withLock { $0 }
        var client: ClientAddress?
        if settings.logsRequests || limiter.isOn {
            let peer = ClientAddress(request.channel.remoteAddress) ?? .unix
            let known = settings.locator.client(peer: peer, forwarded: request.fields.forwardedFor)
            // Refused there, with its own answer.
            guard limiter.admit(known, now: started) == nil else { return nil }
            client = known
        }
        let id = RequestIdentifier.identifier(request.fields.requestID)
        answer.add("Date", dates.now)
        answer.add("X-Request-ID", id)
        let seconds = Double(monotonicNanoseconds() - started) / 1e9
        immediateAnswers.count(
            status: answer.status, level: answer.origin == .disk ? .disk : .memory, seconds: seconds,
            bytes: answer.bodyCount)
        if settings.logsRequests, let client {
            var fields = Self.logFields(
                request.isHead ? "HEAD" : "GET", path: String(request.target.prefix { $0 != "?" }),
                status: answer.status,
                bytes: answer.bodyCount, seconds: seconds, client: client)
            fields["route"] = "image"
            fields["request_id"] = .string(id)
            logger.info("request", metadata: fields)
        }
        return answer
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

    private func immediateHealth(_ request: ImmediateRequest) -> ImmediateAnswer? {
        let answer: (status: HTTPResponse.Status, text: String)
        switch request.target {
        case "/health": answer = (.ok, "ok\n")
        case "/ready": answer = drain.isDraining ? (.serviceUnavailable, "draining\n") : (.ok, "ready\n")
        default: return nil
        }
        let lines = ImmediateAnswer.Lines(
            answer.status,
            [
                .contentType: "text/plain", .cacheControl: "no-store",
                .contentLength: String(answer.text.utf8.count),
            ])
        return ImmediateAnswer(
            lines, status: answer.status.code, body: request.isHead ? nil : ByteBuffer(string: answer.text),
            allocator: request.channel.allocator)
    }

    private func health(_ request: Request) -> Response? {
        let response: Response
        switch request.uri.path {
        case "/health": response = .text(.ok, "ok\n")
        case "/ready":
            response = drain.isDraining ? .text(.serviceUnavailable, "draining\n") : .text(.ok, "ready\n")
        default: return nil
        }
        return request.method == .head ? response.createHeadResponse() : response
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
