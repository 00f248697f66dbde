import Foundation
import Logging
import Metrics
import NIOCore
import NIOPosix
import Synchronization
import Testing
import Tracing

import VitrineServer

/// Lines that a logger wrote.
final class LineCollector: Sendable {
    private let collected = Mutex<[String]>([])
    var lines: [String] { collected.withLock { $0 } }
    func add(_ line: String) { collected.withLock { $0.append(line) } }
    func output(
        _ format: ServerConfiguration.LogFormat = .json, level: Logger.Level = .info, secrets: [String] = []
    ) -> LogOutput {
        LogOutput(format: format, level: level, redactor: Redactor(secrets: secrets)) { self.add($0) }
    }
}

@Suite struct ServerLogTests {
    @Test func everyEventIsOneLineOfJSON() throws {
        let collector = LineCollector()
        var logger = collector.output().logger(label: "a\"b")
        logger[metadataKey: "request_id"] = "r1"
        logger.info(
            "Two\nlines \u{1} “é”",
            metadata: ["n": .stringConvertible(5), "d": ["x": "y"], "l": ["1", .stringConvertible(true)]])
        logger.debug("hidden")
        let line = try #require(collector.lines.first)
        #expect(collector.lines.count == 1)
        #expect(line.hasSuffix("}\n") && line.filter(\.isNewline).count == 1)
        let values = try SettingValue.json(Data(line.utf8))
        #expect(values["message"] == .text("Two\nlines \u{1} “é”"))
        #expect(values["level"] == .text("info"))
        #expect(values["logger"] == .text("a\"b"))
        #expect(values["request_id"] == .text("r1"))
        #expect(values["n"] == .integer(5))
        #expect(values["d"] == .table(["x": .text("y")]))
        #expect(values["l"] == .list([.text("1"), .boolean(true)]))
        guard case .text(let time)? = values["time"] else {
            Issue.record("there is no time")
            return
        }
        #expect(time.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
    }

    @Test func textIsOneLineToo() throws {
        let collector = LineCollector()
        collector.output(.text).logger(label: "a").warning("Two\nlines", metadata: ["k": "v"])
        let line = try #require(collector.lines.first)
        #expect(line.hasSuffix(" warning Two lines k=v\n") && line.filter(\.isNewline).count == 1)
    }

    @Test func levelAndSecretsChangeWhileLoggersExist() {
        let collector = LineCollector()
        let output = collector.output()
        let logger = output.logger(label: "a")
        logger.debug("first")
        output.configure(level: .debug, redactor: Redactor(secrets: ["hunter22"]))
        logger.debug("second hunter22")
        #expect(collector.lines.count == 1)
        #expect(collector.lines.first?.contains("second ***") == true)
    }

    @Test(arguments: [
        ("https://user:pass@example.com/a", "https://***@example.com/a"),
        ("/x/plain/http://u@h/a https://v:w@i/b", "/x/plain/http://***@h/a https://***@i/b"),
        ("/plain/https%3A%2F%2Fu%3Ap%40example.com/a", "/plain/https%3A%2F%2F***%40example.com/a"),
        ("https://h/a?X-Amz-Signature=0123&b=1", "https://h/a?X-Amz-Signature=***&b=1"),
        ("https://h/a?token=t&Signature=s", "https://h/a?token=***&Signature=***"),
        ("https://example.com/a@b", "https://example.com/a@b"), ("no address", "no address"), ("://", "://"),
    ])
    func credentialsOfSourcesAreHidden(_ text: String, _ expected: String) {
        #expect(Redactor()(text) == expected)
    }

    @Test func secretsAreHiddenEverywhereInALine() {
        let collector = LineCollector()
        collector.output(secrets: ["topsecret", "abc"]).logger(label: "a").info(
            "x topsecret", metadata: ["a": "topsecret", "b": ["c": "topsecret", "d": ["topsecret"]]])
        #expect(collector.lines.first?.contains("topsecret") == false)
    }
}

@Suite struct ServerMetricsTests {
    private func sample() -> ServerMetrics {
        let metrics = ServerMetrics()
        metrics.answered(route: "image", status: 200, seconds: 0.003, bytes: 100)
        metrics.answered(route: "image", status: 404, seconds: 20, bytes: 10)
        metrics.took(.decode, 0.0005)
        metrics.found(.memory)
        metrics.refused(.rateLimit)
        let factory: any MetricsFactory = metrics.registry
        factory.makeCounter(label: "library.hits", dimensions: [("a b", "x\"y\\z\nw")]).increment(by: 3)
        factory.makeTimer(label: "library.wait", dimensions: []).recordNanoseconds(2_000_000)
        factory.makeRecorder(label: "library.size", dimensions: [], aggregate: true).record(Int64(7))
        factory.makeRecorder(label: "library.level", dimensions: [], aggregate: false).record(1.5)
        factory.makeMeter(label: "9lives", dimensions: []).set(Int64(9))
        return metrics
    }

    @Test func textHasHelpTypesAndCumulativeBuckets() {
        let text = sample().registry.text()
        for line in [
            "# HELP vitrine_requests_total Requests that were answered.", "# TYPE vitrine_requests_total counter",
            "vitrine_requests_total{route=\"image\",status=\"200\"} 1",
            "vitrine_request_duration_seconds_bucket{route=\"image\",le=\"0.0025\"} 0",
            "vitrine_request_duration_seconds_bucket{route=\"image\",le=\"0.005\"} 1",
            "vitrine_request_duration_seconds_bucket{route=\"image\",le=\"10\"} 1",
            "vitrine_request_duration_seconds_bucket{route=\"image\",le=\"+Inf\"} 2",
            "vitrine_request_duration_seconds_count{route=\"image\"} 2",
            "vitrine_request_duration_seconds_sum{route=\"image\"} 20.003",
            // A bound belongs to its bucket.
            "vitrine_stage_duration_seconds_bucket{stage=\"decode\",le=\"0.0005\"} 1",
            "vitrine_cache_results_total{level=\"memory\"} 1", "vitrine_cache_results_total{level=\"disk\"} 0",
            "vitrine_refusals_total{reason=\"rate-limit\"} 1", "vitrine_response_bytes_total 110",
            "library_hits_total{a_b=\"x\\\"y\\\\z\\nw\"} 3", "library_wait_seconds_sum 0.002",
            "library_size_bucket{le=\"8\"} 1", "library_level 1.5", "_9lives 9",
        ] {
            #expect(text.contains(line + "\n"), "\(line)")
        }
        #expect(text.contains("process_resident_memory_bytes "))
        #expect(text.contains("process_open_fds "))
    }

    @Test func documentedNamesAreTheNamesInUse() {
        let documented = Set(ServerMetrics.table.map(\.name))
        let names = sample().registry.text().split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
            .map { String($0.split(separator: " ")[2]) }.filter { $0.hasPrefix("vitrine_") || $0.hasPrefix("process_") }
        #expect(Set(names).isSubset(of: documented))
        #expect(documented.count == ServerMetrics.table.count)
    }

    @Test func labelsOfOneMetricAreBounded() {
        let registry = PrometheusRegistry(maximumSeries: 10)
        for index in 0..<1000 { registry.counter("many", [("n", "\(index)")]).increment(by: 1.0) }
        let lines = registry.text().split(separator: "\n").filter { $0.hasPrefix("many_total") }
        #expect(lines.count == 11)
        #expect(lines.contains("many_total 990"))
    }

    @Test func aNameOfAnotherKindIsNotReplaced() {
        let registry = PrometheusRegistry()
        registry.gauge("x").set(1.0)
        registry.histogram("x").record(1.0)
        #expect(registry.text().contains("# TYPE x gauge\nx 1\n"))
    }

    @Test func countsOfManyThreadsAddUp() async {
        let registry = PrometheusRegistry()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1000 {
                        registry.counter("c").increment(by: Int64(1))
                        registry.histogram("h").record(0.1)
                    }
                }
            }
        }
        #expect(registry.counter("c").current == 8000)
        #expect(registry.histogram("h").count == 8000)
    }

    static let promtool = ["/usr/bin/promtool", "/usr/local/bin/promtool"].first(
        where: FileManager.default.isExecutableFile)

    @Test(.enabled(if: promtool != nil, "promtool is not installed: apt-get install prometheus"))
    func promtoolAcceptsTheText() async throws {
        let metrics = ServerMetrics()
        metrics.answered(route: "image", status: 200, seconds: 0.003, bytes: 100)
        for stage in ServerMetrics.Stage.allCases { metrics.took(stage, 0.1) }
        let directory = try TemporaryDirectory()
        try directory.write(metrics.registry.text(), to: "metrics")
        let promtool = try #require(Self.promtool)
        let (status, said) = try await run("/bin/sh", ["-c", "\(promtool) check metrics < \(directory.path)/metrics"])
        #expect(status == 0, "\(said)")
        #expect(said.isEmpty, "\(said)")
    }
}

@Suite struct ServerTracingTests {
    @Test(arguments: [
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more",
    ])
    func validTraceparentsAreRead(_ text: String) throws {
        let trace = try #require(TraceContext(traceparent: text))
        #expect(trace.traceID == "0af7651916cd43dd8448eb211c80319c")
        #expect(trace.spanID == "b7ad6b7169203331")
        #expect(trace.isSampled == text.contains("-01"))
    }

    @Test(arguments: [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
        "00-0af7651916cd43dd8448eb211c80319é-b7ad6b7169203331-01",
    ])
    func invalidTraceparentsAreIgnored(_ text: String) {
        #expect(TraceContext(traceparent: text) == nil)
    }

    private struct Fields: Extractor, Injector {
        func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
        func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) { carrier[key] = value }
    }

    @Test func tracesGoOnBehindTheServer() throws {
        let exporter = try OTLPExporter(
            endpoint: "http://127.0.0.1:1", serviceName: "s", logger: LineCollector().output().logger(label: "t"))
        let tracer = OTLPTracer(exporter: exporter, ratio: 0)
        var context = InstrumentationContext.topLevel
        tracer.extract(
            ["traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"],
            into: &context, using: Fields())
        let span = tracer.startSpan("x", context: context)
        var fields: [String: String] = [:]
        tracer.inject(span.context, into: &fields, using: Fields())
        let out = try #require(TraceContext(traceparent: fields["traceparent"] ?? ""))
        #expect(out.traceID == "0af7651916cd43dd8448eb211c80319c")
        #expect(out.spanID != "b7ad6b7169203331")
        #expect(out.isSampled)
        #expect(fields["tracestate"] == "a=b")
        // Without a parent, the ratio decides.
        #expect(!tracer.startSpan("y", context: .topLevel).isRecording)
        #expect(OTLPTracer(exporter: exporter, ratio: 1).startSpan("y", context: .topLevel).isRecording)
    }

    @Test func spansReachTheCollector() async throws {
        try await withCollector { collector in
            let exporter = try OTLPExporter(
                endpoint: "http://127.0.0.1:\(collector.port)/base/", headers: ["X-Token": "t"], serviceName: "test",
                logger: LineCollector().output().logger(label: "t"))
            let tracer = OTLPTracer(exporter: exporter, ratio: 1)
            let parent = tracer.startSpan("parent \"quoted\"", context: .topLevel, ofKind: .server)
            let child = tracer.startSpan("child", context: parent.context)
            child.updateAttributes {
                $0["text"] = "é"
                $0["count"] = 5
                $0["part"] = 0.5
                $0["flag"] = true
                $0["list"] = ["a", "b"]
            }
            child.recordError(RequestError(500, code: "a", reason: "b"))
            child.setStatus(SpanStatus(code: .error, message: "bad"))
            child.end()
            child.end()
            parent.end()
            await exporter.flush()

            let request = try #require(collector.requests.first)
            #expect(collector.requests.count == 1)
            #expect(request.hasPrefix("POST /base/v1/traces HTTP/1.1\r\n"))
            #expect(request.contains("\r\nContent-Type: application/json\r\n"))
            #expect(request.contains("\r\nX-Token: t\r\n"))
            let body = try #require(request.components(separatedBy: "\r\n\r\n").last)
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: [[String: Any]]])
            let resource = try #require(object["resourceSpans"]?.first)
            let scope = try #require((resource["scopeSpans"] as? [[String: Any]])?.first)
            let spans = try #require(scope["spans"] as? [[String: Any]])
            #expect(spans.count == 2)
            let first = try #require(spans.first)
            let second = try #require(spans.last)
            #expect(first["name"] as? String == "child" && second["name"] as? String == "parent \"quoted\"")
            #expect(first["traceId"] as? String == second["traceId"] as? String)
            #expect(first["parentSpanId"] as? String == second["spanId"] as? String)
            #expect(second["parentSpanId"] == nil)
            #expect(second["kind"] as? Int == 2 && first["kind"] as? Int == 1)
            #expect((first["status"] as? [String: Any])?["code"] as? Int == 2)
            #expect((first["events"] as? [[String: Any]])?.first?["name"] as? String == "exception")
            #expect(body.contains("{\"key\":\"count\",\"value\":{\"intValue\":\"5\"}}"))
            #expect(body.contains("{\"key\":\"part\",\"value\":{\"doubleValue\":0.5}}"))
            #expect(body.contains("{\"key\":\"flag\",\"value\":{\"boolValue\":true}}"))
            #expect(body.contains("{\"key\":\"service.name\",\"value\":{\"stringValue\":\"test\"}}"))
            #expect(exporter.dropped == 0)
        }
    }

    @Test func spansAreSentInBatchesWithoutAWait() async throws {
        try await withCollector { collector in
            let exporter = try OTLPExporter(
                endpoint: "http://127.0.0.1:\(collector.port)", serviceName: "s", interval: .seconds(3600),
                logger: LineCollector().output().logger(label: "t"))
            let run = Task { await exporter.run() }
            let tracer = OTLPTracer(exporter: exporter, ratio: 1)
            for index in 0..<600 { tracer.startSpan("s\(index)", context: .topLevel).end() }
            while collector.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            // The rest is sent at the end.
            run.cancel()
            await run.value
            let names = collector.requests.reduce(0) { $0 + $1.components(separatedBy: "\"name\":\"s").count - 1 }
            #expect(names == 600)
        }
    }

    @Test func spansAreDroppedIfTheCollectorIsAway() async throws {
        let collector = LineCollector()
        // Port 1 refuses connections.
        let exporter = try OTLPExporter(
            endpoint: "http://127.0.0.1:1", serviceName: "s", capacity: 100,
            logger: collector.output().logger(label: "t"))
        let tracer = OTLPTracer(exporter: exporter, ratio: 1)
        for _ in 0..<150 { tracer.startSpan("x", context: .topLevel).end() }
        #expect(exporter.dropped == 50)
        await exporter.flush()
        #expect(exporter.dropped == 150)
        #expect(collector.lines.count == 1)
        // Nothing is kept for a collector that comes later.
        await exporter.flush()
        #expect(exporter.dropped == 150)
    }

    @Test func anErrorOfTheCollectorDropsItsBatch() async throws {
        try await withCollector(status: "503 Service Unavailable") { collector in
            let exporter = try OTLPExporter(
                endpoint: "http://127.0.0.1:\(collector.port)", serviceName: "s",
                logger: LineCollector().output().logger(label: "t"))
            OTLPTracer(exporter: exporter, ratio: 1).startSpan("x", context: .topLevel).end()
            await exporter.flush()
            #expect(exporter.dropped == 1)
            #expect(collector.requests.count == 1)
        }
    }
}

/// The requests that a collector of spans received.
final class Collector: Sendable {
    let port: Int
    private let received = Mutex<[String]>([])
    init(port: Int) { self.port = port }
    var requests: [String] { received.withLock { $0 } }
    func add(_ request: String) { received.withLock { $0.append(request) } }
}

/// A receiver of OTLP over HTTP on loopback.
func withCollector(status: String = "200 OK", _ body: (Collector) async throws -> Void) async throws {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .bind(host: "127.0.0.1", port: 0) { channel in
            channel.eventLoop.makeCompletedFuture {
                try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }
        }
    let collector = Collector(port: try #require(server.channel.localAddress?.port))
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
            try await server.executeThenClose { inbound in
                try await withThrowingDiscardingTaskGroup { connections in
                    for try await connection in inbound {
                        connections.addTask {
                            try await connection.executeThenClose { parts, outbound in
                                var request = ""
                                for try await part in parts {
                                    request += String(buffer: part)
                                    guard let end = request.firstRange(of: "\r\n\r\n"),
                                        let field = request.firstRange(of: "Content-Length: "),
                                        let length = Int(request[field.upperBound...].prefix { $0.isNumber })
                                    else { continue }
                                    if request[end.upperBound...].utf8.count >= length { break }
                                }
                                collector.add(request)
                                try await outbound.write(
                                    ByteBuffer(string: "HTTP/1.1 \(status)\r\nContent-Length: 2\r\n\r\n{}"))
                            }
                        }
                    }
                }
            }
        }
        try await body(collector)
        group.cancelAll()
    }
}

@Suite struct RateLimiterTests {
    private func client(_ text: String) throws -> ClientAddress { try #require(ClientAddress(text)) }

    @Test func aBurstPassesThenTheRateDecides() throws {
        let limiter = RateLimiter(rate: 10, burst: 3, clients: 100)
        let client = try client("192.0.2.1")
        let second: Int64 = 1_000_000_000
        for _ in 0..<3 { #expect(limiter.admit(client, now: second) == nil) }
        let wait = try #require(limiter.admit(client, now: second))
        #expect(abs(wait - 0.1) < 1e-6)
        // Refused requests cost nothing.
        for _ in 0..<100 { #expect(limiter.admit(client, now: second) != nil) }
        #expect(limiter.admit(client, now: second + 100_000_000) == nil)
        #expect(limiter.admit(client, now: second + 100_000_000) != nil)
        // Others are not affected.
        #expect(limiter.admit(try self.client("192.0.2.2"), now: second) == nil)
        // After a pause, the burst is there again and not more.
        for _ in 0..<3 { #expect(limiter.admit(client, now: 100 * second) == nil) }
        #expect(limiter.admit(client, now: 100 * second) != nil)
    }

    @Test func overTimeTheRateIsKept() throws {
        let limiter = RateLimiter(rate: 50, burst: 10, clients: 100)
        let client = try client("192.0.2.1")
        let admitted = (0..<10_000).count { limiter.admit(client, now: Int64($0) * 1_000_000) == nil }
        #expect((505...511).contains(admitted))
    }

    @Test func noLimitAdmitsEverything() throws {
        let limiter = RateLimiter(rate: 0, burst: 0, clients: 100)
        let client = try client("192.0.2.1")
        for _ in 0..<1000 { #expect(limiter.admit(client, now: 0) == nil) }
        #expect(limiter.count == 0)
        limiter.configure(rate: 1, burst: 1)
        #expect(limiter.admit(client, now: 0) == nil)
        #expect(limiter.admit(client, now: 0) != nil)
    }

    @Test func theTableIsBounded() throws {
        let limiter = RateLimiter(rate: 1, burst: 1, clients: 100)
        let active = try client("192.0.2.1")
        #expect(limiter.admit(active, now: 0) == nil)
        for index in 0..<10_000 {
            #expect(limiter.admit(ClientAddress(high: UInt64(index + 1), low: 0), now: 0) == nil)
            #expect(limiter.count <= 100)
        }
    }

    @Test func anIPv6NetworkIsOneClient() throws {
        let limiter = RateLimiter(rate: 1, burst: 2, clients: 100)
        #expect(limiter.admit(try client("2001:db8:0:1::1"), now: 0) == nil)
        #expect(limiter.admit(try client("2001:db8:0:1:ffff::2"), now: 0) == nil)
        #expect(limiter.admit(try client("2001:db8:0:1::3"), now: 0) != nil)
        #expect(limiter.admit(try client("2001:db8:0:2::1"), now: 0) == nil)
        // IPv4 in IPv6 notation is the IPv4 client.
        #expect(try client("::ffff:192.0.2.1") == client("192.0.2.1"))
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("192.0.2.1:80", "192.0.2.1"), ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"), ("[::1]", "::1"),
    ])
    func addressesAreRead(_ text: String, _ expected: String) throws {
        #expect(try client(text).description == expected)
    }

    @Test(arguments: ["", "unknown", "_hidden", "192.0.2", "1.2.3.4.5", "::g", "192.0.2.1 "])
    func otherTextsAreNoAddresses(_ text: String) {
        #expect(ClientAddress(text) == nil)
    }

    @Test func rangesContainTheirAddresses() throws {
        #expect(try AddressRange("10.0.0.0/8").contains(client("10.255.0.1")))
        #expect(try !AddressRange("10.0.0.0/8").contains(client("11.0.0.1")))
        #expect(try AddressRange("192.0.2.1").contains(client("192.0.2.1")))
        #expect(try !AddressRange("192.0.2.1").contains(client("192.0.2.2")))
        #expect(try AddressRange("0.0.0.0/0").contains(client("203.0.113.9")))
        #expect(try !AddressRange("0.0.0.0/0").contains(client("2001:db8::1")))
        #expect(try AddressRange("2001:db8::/33").contains(client("2001:db8:7fff::1")))
        #expect(try !AddressRange("2001:db8::/33").contains(client("2001:db8:8000::1")))
        #expect(try AddressRange("2001:db8::/127").contains(client("2001:db8::1")))
        #expect(try !AddressRange("2001:db8::/127").contains(client("2001:db8::2")))
        #expect(try AddressRange("unix").contains(.unix))
        #expect(try !AddressRange("::/0").contains(.unix))
        #expect(try AddressRange("::/0").contains(client("::1")))
    }

    @Test(arguments: [
        // The peer is no proxy: its field is a claim of the client.
        ("203.0.113.5", ["192.0.2.1"], "203.0.113.5"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        // The last that is no proxy; what stands before it is a claim again.
        ("10.0.0.1", ["1.1.1.1, 192.0.2.1, 10.0.0.2"], "192.0.2.1"),
        ("10.0.0.1", ["1.1.1.1", "192.0.2.1", "10.0.0.2"], "192.0.2.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["192.0.2.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["[2001:db8::1]:5"], "2001:db8::1"),
    ] as [(String, [String], String)])
    func clientsBehindTrustedProxiesAreFound(_ peer: String, _ forwarded: [String], _ expected: String) throws {
        let locator = ClientLocator(trustedProxies: [try AddressRange("10.0.0.0/8")])
        #expect(locator.client(peer: try client(peer), forwarded: forwarded).description == expected)
    }
}
