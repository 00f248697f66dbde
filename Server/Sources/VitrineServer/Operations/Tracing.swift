import Foundation
package import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
package import Tracing

/// The position of a request in a trace, as `traceparent` of W3C Trace Context says it.
package struct TraceContext: Sendable, Hashable {
    /// 32 hexadecimal digits in lower case, not all zero.
    package var traceID: String
    /// 16 hexadecimal digits in lower case, not all zero.
    package var spanID: String
    package var isSampled: Bool
    /// The value of `tracestate`, passed on as it is.
    package var state = ""

    package init(traceID: String, spanID: String, isSampled: Bool, state: String = "") {
        (self.traceID, self.spanID, self.isSampled, self.state) = (traceID, spanID, isSampled, state)
    }

    /// Nil unless the text is a valid `traceparent`. Later versions than 00 may have more fields.
    package init?(traceparent text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        func isHexadecimal(_ part: Substring.UTF8View, _ count: Int) -> Bool {
            part.count == count
                && part.allSatisfy {
                    ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9"))
                        || ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "f"))
                }
        }
        let fields = parts.map { Substring($0) }
        guard fields.count >= 4, isHexadecimal(fields[0].utf8, 2), fields[0] != "ff",
            fields[0] != "00" || fields.count == 4, isHexadecimal(fields[1].utf8, 32),
            isHexadecimal(fields[2].utf8, 16), isHexadecimal(fields[3].utf8, 2),
            fields[1].contains(where: { $0 != "0" }), fields[2].contains(where: { $0 != "0" }),
            let flags = UInt8(fields[3], radix: 16)
        else { return nil }
        self.init(traceID: String(fields[1]), spanID: String(fields[2]), isSampled: flags & 1 == 1)
    }

    package var traceparent: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    /// A random identifier with this number of bytes.
    static func identifier(bytes: Int) -> String {
        var result = ""
        for _ in 0..<bytes / 8 {
            // Never 0, which means “none”.
            let digits = String(UInt64.random(in: 1...UInt64.max), radix: 16)
            result += String(repeating: "0", count: 16 - digits.count) + digits
        }
        return result
    }
}

private enum TraceContextKey: InstrumentationContextKey {
    typealias Value = TraceContext
}

private enum TracerKey: InstrumentationContextKey {
    typealias Value = OTLPTracer
}

extension InstrumentationContext {
    /// The span that the current work belongs to.
    package var trace: TraceContext? {
        get { self[TraceContextKey.self] }
        set { self[TraceContextKey.self] = newValue }
    }

    /// The tracer of that span; nil if traces are only passed on.
    package var tracer: OTLPTracer? {
        get { self[TracerKey.self] }
        set { self[TracerKey.self] = newValue }
    }
}

/// A tracer that sends its spans to an OpenTelemetry collector: OTLP over HTTP with JSON.
package final class OTLPTracer: Tracer {
    package typealias Span = OTLPSpan

    private let exporter: OTLPExporter
    private let ratio: Double

    /// - Parameter ratio: The part of traces to record, of those that no client decides about.
    package init(exporter: OTLPExporter, ratio: Double) {
        self.exporter = exporter
        self.ratio = ratio
    }

    package func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> InstrumentationContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> OTLPSpan {
        var context = context()
        let parent = context.trace
        context.tracer = self
        context.trace = TraceContext(
            traceID: parent?.traceID ?? TraceContext.identifier(bytes: 16),
            spanID: TraceContext.identifier(bytes: 8),
            isSampled: parent?.isSampled ?? (ratio >= 1 || Double.random(in: 0..<1) < ratio),
            state: parent?.state ?? "")
        return OTLPSpan(
            operationName, kind: kind, context: context, parent: parent?.spanID,
            start: instant().nanosecondsSinceEpoch, exporter: exporter)
    }

    package func forceFlush() {}

    package func extract<Carrier, Extract>(
        _ carrier: Carrier, into context: inout InstrumentationContext, using extractor: Extract
    ) where Extract: Extractor, Extract.Carrier == Carrier {
        Self.read(carrier, into: &context, using: extractor)
    }

    /// Reads the fields of W3C Trace Context.
    static func read<Carrier, Extract>(
        _ carrier: Carrier, into context: inout InstrumentationContext, using extractor: Extract
    ) where Extract: Extractor, Extract.Carrier == Carrier {
        guard let text = extractor.extract(key: "traceparent", from: carrier),
            var trace = TraceContext(traceparent: text)
        else { return }
        let state = extractor.extract(key: "tracestate", from: carrier) ?? ""
        trace.state = state.utf8.count <= 512 ? state : ""
        context.trace = trace
    }

    package func inject<Carrier, Inject>(
        _ context: InstrumentationContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject: Injector, Inject.Carrier == Carrier {
        guard let trace = context.trace else { return }
        injector.inject(trace.traceparent, forKey: "traceparent", into: &carrier)
        if !trace.state.isEmpty { injector.inject(trace.state, forKey: "tracestate", into: &carrier) }
    }
}

/// A span that is exported when it ends, if its trace is sampled.
package final class OTLPSpan: Tracing.Span {
    private struct State {
        var name: String
        var attributes: SpanAttributes = [:]
        var status: SpanStatus?
        var events: [SpanEvent] = []
        var links: [SpanLink] = []
        var isEnded = false
    }
    package let context: InstrumentationContext
    private let state: Mutex<State>
    private let kind: Int
    private let parent: String?
    private let start: UInt64
    private let exporter: OTLPExporter

    fileprivate init(
        _ name: String, kind: SpanKind, context: InstrumentationContext, parent: String?, start: UInt64,
        exporter: OTLPExporter
    ) {
        self.context = context
        self.parent = parent
        self.start = start
        self.exporter = exporter
        // SpanKind of opentelemetry/proto/trace/v1/trace.proto.
        self.kind =
            switch kind {
            case .internal: 1
            case .server: 2
            case .client: 3
            case .producer: 4
            case .consumer: 5
            }
        state = Mutex(State(name: name))
    }

    package var operationName: String {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }
    package var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { state.withLock { $0.attributes = newValue } }
    }
    package var isRecording: Bool { context.trace?.isSampled == true && !state.withLock { $0.isEnded } }
    package func setStatus(_ status: SpanStatus) { state.withLock { $0.status = status } }

    // At most 32 of each: a span is kept until it is sent.
    package func addEvent(_ event: SpanEvent) {
        state.withLock { if $0.events.count < 32 { $0.events.append(event) } }
    }
    package func addLink(_ link: SpanLink) {
        state.withLock { if $0.links.count < 32 { $0.links.append(link) } }
    }

    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        var attributes = attributes
        attributes.set("exception.type", value: .string(String(describing: type(of: error))))
        addEvent(SpanEvent(name: "exception", at: instant(), attributes: attributes))
    }

    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        let ended: State? = state.withLock { state in
            guard !state.isEnded else { return nil }
            state.isEnded = true
            return state
        }
        guard let ended, let trace = context.trace, trace.isSampled else { return }
        exporter.add(json(of: ended, trace, end: instant().nanosecondsSinceEpoch))
    }

    /// The message Span in the JSON encoding of OTLP: lowerCamelCase, identifiers in hexadecimal, 64-bit numbers as
    /// strings.
    private func json(of state: State, _ trace: TraceContext, end: UInt64) -> String {
        var text = "{\"traceId\":\"\(trace.traceID)\",\"spanId\":\"\(trace.spanID)\","
        if let parent { text += "\"parentSpanId\":\"\(parent)\"," }
        if !trace.state.isEmpty { text += "\"traceState\":\(JSONText.quoted(trace.state))," }
        text += "\"name\":\(JSONText.quoted(state.name)),\"kind\":\(kind),"
        text += "\"startTimeUnixNano\":\"\(start)\",\"endTimeUnixNano\":\"\(max(end, start))\""
        text += ",\"attributes\":\(Self.json(state.attributes))"
        if !state.events.isEmpty {
            let events = state.events.map {
                "{\"timeUnixNano\":\"\($0.nanosecondsSinceEpoch)\",\"name\":\(JSONText.quoted($0.name)),"
                    + "\"attributes\":\(Self.json($0.attributes))}"
            }
            text += ",\"events\":[\(events.joined(separator: ","))]"
        }
        let links = state.links.compactMap { link in
            link.context.trace.map {
                "{\"traceId\":\"\($0.traceID)\",\"spanId\":\"\($0.spanID)\","
                    + "\"attributes\":\(Self.json(link.attributes))}"
            }
        }
        if !links.isEmpty { text += ",\"links\":[\(links.joined(separator: ","))]" }
        if let status = state.status {
            let message = status.message.map { ",\"message\":\(JSONText.quoted($0))" } ?? ""
            text += ",\"status\":{\"code\":\(status.code == .ok ? 1 : 2)\(message)}"
        }
        return text + "}"
    }

    static func json(_ attributes: SpanAttributes) -> String {
        var parts: [String] = []
        attributes.forEach { name, value in
            parts.append("{\"key\":\(JSONText.quoted(name)),\"value\":\(json(value))}")
        }
        return "[" + parts.sorted().joined(separator: ",") + "]"
    }

    private static func json(_ value: SpanAttribute) -> String {
        func array(_ values: [SpanAttribute]) -> String {
            "{\"arrayValue\":{\"values\":[\(values.map(json).joined(separator: ","))]}}"
        }
        switch value {
        case .int32(let value): return "{\"intValue\":\"\(value)\"}"
        case .int64(let value): return "{\"intValue\":\"\(value)\"}"
        case .double(let value): return "{\"doubleValue\":\(JSONText.number(value))}"
        case .bool(let value): return "{\"boolValue\":\(value)}"
        case .string(let value): return "{\"stringValue\":\(JSONText.quoted(value))}"
        case .int32Array(let values): return array(values.map { .int32($0) })
        case .int64Array(let values): return array(values.map { .int64($0) })
        case .doubleArray(let values): return array(values.map { .double($0) })
        case .boolArray(let values): return array(values.map { .bool($0) })
        case .stringArray(let values): return array(values.map { .string($0) })
        case .stringConvertible(let value): return "{\"stringValue\":\(JSONText.quoted(value.description))}"
        case .stringConvertibleArray(let values): return array(values.map { .string($0.description) })
        default: return "{\"stringValue\":\"\"}"
        }
    }
}

/// Sends spans in batches; drops them if the collector is away or slower than they come.
package final class OTLPExporter: Sendable {
    private struct State {
        var waiting: [String] = []
        var dropped = 0
        /// Ends when the interval is over; cancelled when a batch is full.
        var pause: Task<Void, Never>?
    }
    private let state = Mutex(State())
    private let endpoint: Endpoint
    private let headers: [String: String]
    private let resource: String
    private let interval: Duration
    private let capacity: Int
    private let logger: Logger
    /// Spans in one request.
    private static let batch = 512

    private struct Endpoint: Sendable {
        var host: String
        var port: Int
        var path: String
        var isTLS: Bool
    }

    /// - Parameters:
    ///   - endpoint: The base URL of the collector; `/v1/traces` is added as the specification says.
    ///   - interval: The longest time that a span waits.
    ///   - capacity: The spans that may wait. Further ones are dropped.
    /// - Throws: ``SettingError`` if the URL has no host.
    package init(
        endpoint: String, headers: [String: String] = [:], serviceName: String, interval: Duration = .seconds(5),
        capacity: Int = 4096, logger: Logger
    ) throws {
        guard let url = URLComponents(string: endpoint), let host = url.host, !host.isEmpty else {
            throw SettingError("it is not an http or https URL")
        }
        let isTLS = url.scheme == "https"
        let path = url.percentEncodedPath
        self.endpoint = Endpoint(
            host: host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host,
            port: url.port ?? (isTLS ? 443 : 4318),
            path: (path.hasSuffix("/") ? String(path.dropLast()) : path) + "/v1/traces", isTLS: isTLS)
        self.headers = headers
        self.interval = interval
        self.capacity = capacity
        self.logger = logger
        resource = "{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":"
            + "\(JSONText.quoted(serviceName))}}]}"
    }

    /// The spans that no collector took.
    package var dropped: Int { state.withLock { $0.dropped } }

    fileprivate func add(_ span: String) {
        let pause: Task<Void, Never>? = state.withLock { state in
            guard state.waiting.count < capacity else {
                state.dropped += 1
                return nil
            }
            state.waiting.append(span)
            return state.waiting.count >= Self.batch ? state.pause : nil
        }
        pause?.cancel()
    }

    /// Sends until the task is cancelled, then sends the spans that still wait.
    package func run() async {
        while !Task.isCancelled {
            await pause()
            // In a task of its own: the end of this one must not break a request off.
            await Task { await flush() }.value
        }
    }

    /// Until a batch is full or the interval is over.
    private func pause() async {
        let pause = Task { [interval] in _ = try? await Task.sleep(for: interval) }
        let isFull = state.withLock { state in
            state.pause = pause
            return state.waiting.count >= Self.batch
        }
        if isFull { pause.cancel() }
        await withTaskCancellationHandler { await pause.value } onCancel: { pause.cancel() }
    }

    /// Sends all spans that wait. A batch that fails is not sent again: its spans would displace newer ones.
    package func flush() async {
        while true {
            let spans = state.withLock { state in
                let spans = Array(state.waiting.prefix(Self.batch))
                state.waiting.removeFirst(spans.count)
                return spans
            }
            guard !spans.isEmpty else { return }
            let body =
                "{\"resourceSpans\":[{\"resource\":\(resource),\"scopeSpans\":[{\"scope\":{\"name\":\"vitrine\"},"
                + "\"spans\":[\(spans.joined(separator: ","))]}]}]}"
            do {
                let status = try await post(body)
                if !(200..<300).contains(status) { drop(spans.count, "the collector answered \(status)") }
            } catch {
                drop(spans.count, "the collector cannot be reached")
            }
        }
    }

    private func drop(_ count: Int, _ reason: String) {
        let total = state.withLock { state in
            state.dropped += count
            return state.dropped
        }
        logger.warning("Spans are dropped", metadata: ["reason": "\(reason)", "dropped": .stringConvertible(total)])
    }

    /// One request on a connection of its own, at most every interval: no pool is worth its code here.
    private func post(_ body: String) async throws -> Int {
        let endpoint = endpoint
        let tls = endpoint.isTLS ? try NIOSSLContext(configuration: .makeClientConfiguration()) : nil
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.seconds(5))
            .connect(host: endpoint.host, port: endpoint.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let isAddress = ClientAddress(endpoint.host) != nil
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : endpoint.host))
                    }
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let deadline = channel.channel.eventLoop.scheduleTask(in: .seconds(10)) {
            channel.channel.close(promise: nil)
        }
        defer { deadline.cancel() }
        let host = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
        var head = "POST \(endpoint.path) HTTP/1.1\r\nHost: \(host):\(endpoint.port)\r\n"
        head += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n"
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) { head += "\(name): \(value)\r\n" }
        let request = ByteBuffer(string: head + "\r\n" + body)
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(request)
            var line = ""
            for try await part in inbound {
                line += String(buffer: part)
                if line.contains("\r\n") || line.utf8.count > 1024 { break }
            }
            let words = line.prefix { $0 != "\r\n" && $0 != "\r" }.split(separator: " ")
            guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else {
                throw SettingError("the collector does not speak HTTP/1")
            }
            return status
        }
    }
}
