import Foundation
import HTTPTypes
import ServerTestSupport
import Synchronization
import Testing
import VitrineCore
import VitrineServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `vitrine-server` with the samples and with sources on loopback.
struct ImageServerProcess {
    let process: ServerProcess
    let main: Int
    let admin: Int

    static let loopback = ["--bind", "127.0.0.1:0", "--admin-bind", "127.0.0.1:0", "--lame-duck", "0"]

    static func start(
        _ arguments: [String] = [], environment: [String: String] = [:], root: String = Samples.directory
    ) async throws -> Self {
        let process = try ServerProcess(
            loopback + ["--local-root", root, "--allow-loopback-sources"] + arguments,
            environment: environment)
        let ports = try await process.ports()
        return Self(process: process, main: ports.main, admin: ports.admin)
    }

    /// The path of a source at a width.
    static func path(_ source: String, _ width: Int = 60) -> String { "/insecure/rs:fit:\(width):0/plain/\(source)" }

    func image(_ source: String, _ width: Int = 60, _ fields: [String: String] = [:]) async throws -> PlainClient.Answer {
        try await get(main, Self.path(source, width), fields)
    }

    func purge(_ body: String) async throws -> PlainClient.Answer {
        try await get(admin, "/purge", method: "POST", ["Content-Type": "application/json"], body: body)
    }

    var metrics: String { get async throws { try await get(admin, "/metrics").body } }

    func end() async throws {
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 0, "\(process.output)")
    }
}

/// A directory that ends with the test.
final class TemporaryDirectory: Sendable {
    let path: String
    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ text: String, to name: String) throws { try Data(text.utf8).write(to: URL(filePath: path + "/" + name)) }
}

private func executable(_ name: String) -> String? {
    ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/"].map { $0 + name }.first(where: FileManager.default.isExecutableFile)
}

// MARK: - Reports

@Suite(.serialized) struct ImageReportTests {
    @Test func metricsCountTheWorkOfRequests() async throws {
        let origin = try await Origin.samples()
        let directory = try TemporaryDirectory()
        let server = try await ImageServerProcess.start(["--disk-cache", directory.path])
        for _ in 0..<3 { #expect(try await server.image(origin.url("lake.jpg")).status == 200) }
        #expect(try await server.image(origin.url("missing.jpg")).status == 404)
        try await eventually("sizes are known") {
            try await server.metrics.contains(/vitrine_cache_bytes\{level="sources"\} [1-9]/)
        }
        let text = try await server.metrics
        let size = try Samples.bytes("lake.jpg").count
        for line in [
            "vitrine_cache_results_total{level=\"made\"} 1", "vitrine_cache_results_total{level=\"memory\"} 2",
            "vitrine_stage_duration_seconds_count{stage=\"queue\"} 1",
            "vitrine_stage_duration_seconds_count{stage=\"fetch\"} 1",
            "vitrine_stage_duration_seconds_count{stage=\"decode\"} 1",
            "vitrine_stage_duration_seconds_count{stage=\"encode\"} 1", "vitrine_renders_in_flight 0",
            "vitrine_loads_in_flight 0", "vitrine_render_queue_length 0", "vitrine_load_queue_length 0",
            "vitrine_requests_total{route=\"image\",status=\"200\"} 3",
        ] {
            #expect(text.contains(line + "\n"), "\(line)\n\(text)")
        }
        for name in ["memory", "disk"] {
            #expect(text.contains(try Regex("vitrine_cache_bytes\\{level=\"\(name)\"\\} [1-9]")), "\(name)\n\(text)")
        }
        // The body of the error is a part of it.
        let received = try #require(text.firstMatch(of: /vitrine_source_bytes_total (\d+)\n/).flatMap { Int($0.1) })
        #expect(received >= size && received < size + 10_000)
        #expect(text.contains(/\nvitrine_workers [1-9]/) && text.contains(/workers_resident_memory_bytes [1-9]\d{5}/))
        // Every name in the table is there, and no other of the server.
        let types = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
        let names = Set(types.map { String($0.split(separator: " ")[2]) })
        let alone = ServerMetrics.table.map(\.name)
            .filter { !$0.hasPrefix("vitrine_tier_") && !$0.hasPrefix("vitrine_store_") }
        #expect(
            Set(alone).subtracting(names)
                == ["vitrine_reloads_total", "vitrine_spans_dropped_total"])
        try await server.end()
    }

    @Test func metricsCountRefusals() async throws {
        let gate = OpenSignal()
        let origin = try await Origin.start { _ in
            await gate.wait()
            return .init(status: 404)
        }
        let server = try await ImageServerProcess.start([
            "--downloads", "1", "--queue-limit", "0", "--key", "00", "--salt", "00", "--trusted-signatures", "open",
        ])
        let wrong = try await server.image("local:///lake.jpg")
        #expect(wrong.status == 403 && wrong.body.contains("\"invalid-signature\""))
        let port = server.main, slow = origin.url("slow"), other = origin.url("other")
        let first = Task { try await get(port, "/open/plain/\(slow)") }
        try await eventually("the first is under way") { !origin.requests.isEmpty }
        let refused = try await get(port, "/open/plain/\(other)")
        #expect(refused.status == 503 && refused.fields["retry-after"] != nil)
        gate.open()
        #expect(try await first.value.status == 404)
        let text = try await server.metrics
        #expect(text.contains("vitrine_refusals_total{reason=\"overloaded\"} 1\n"))
        #expect(text.contains("vitrine_refusals_total{reason=\"invalid-signature\"} 1\n"))
        try await server.end()
    }

    @Test(.enabled(
        if: executable("promtool") != nil && executable("prometheus") != nil,
        "prometheus is not installed: apt-get install prometheus"))
    func prometheusScrapesTheServer() async throws {
        let server = try await ImageServerProcess.start()
        #expect(try await server.image("local:///lake.jpg").status == 200)
        let directory = try TemporaryDirectory()
        try directory.write(try await server.metrics, to: "metrics")
        let promtool = try #require(executable("promtool"))
        let checked = try await run("/bin/sh", ["-c", "\(promtool) check metrics < \(directory.path)/metrics"])
        #expect(checked.status == 0 && checked.output.isEmpty, "\(checked.output)")

        try directory.write(
            """
            scrape_configs:
              - job_name: vitrine
                scrape_interval: 200ms
                scrape_timeout: 200ms
                static_configs: [{targets: ["127.0.0.1:\(server.admin)"]}]
            """, to: "prometheus.yml")
        let (descriptor, port) = try listeningSocket()
        close(descriptor)
        let prometheus = try Program(
            try #require(executable("prometheus")),
            [
                "--config.file=\(directory.path)/prometheus.yml", "--storage.tsdb.path=\(directory.path)/data",
                "--web.listen-address=127.0.0.1:\(port)",
            ])
        let query = "/api/v1/query?query=vitrine_cache_results_total%7Blevel%3D%22made%22%7D"
        try await eventually("Prometheus knows the metric") {
            let answer = try? await get(port, query)
            return answer?.body.contains("\"level\":\"made\"") == true && answer?.body.contains(",\"1\"]") == true
        }
        prometheus.send(SIGTERM)
        await prometheus.waitUntilEnd()
        try await server.end()
    }

    @Test func spansOfTheStepsAreBelowTheRequest() async throws {
        let origin = try await Origin.samples()
        try await withCollector { collector in
            let server = try await ImageServerProcess.start([
                "--otlp-endpoint", "http://127.0.0.1:\(collector.port)",
            ])
            let trace = "0af7651916cd43dd8448eb211c80319c"
            let answer = try await server.image(
                origin.url("lake.jpg"), 60,
                ["traceparent": "00-\(trace)-b7ad6b7169203331-01", "tracestate": "a=b"])
            #expect(answer.status == 200)
            // Sends what waits.
            try await server.end()
            var spans: [[String: Any]] = []
            for request in collector.requests {
                let body = try #require(request.components(separatedBy: "\r\n\r\n").last)
                let object = try #require(
                    try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: [[String: Any]]])
                let scope = try #require((object["resourceSpans"]?.first?["scopeSpans"] as? [[String: Any]])?.first)
                spans += try #require(scope["spans"] as? [[String: Any]])
            }
            func span(_ name: String) throws -> [String: Any] {
                try #require(spans.first { $0["name"] as? String == name }, "\(name) of \(spans)")
            }
            let request = try span("GET image")
            #expect(request["parentSpanId"] as? String == "b7ad6b7169203331")
            #expect(spans.allSatisfy { $0["traceId"] as? String == trace })
            let times = try ["queue", "fetch", "decode", "encode"].map { name -> (start: UInt64, end: UInt64) in
                let step = try span(name)
                #expect(step["parentSpanId"] as? String == request["spanId"] as? String, "\(name)")
                let start = (step["startTimeUnixNano"] as? String).flatMap { UInt64($0) }
                let end = (step["endTimeUnixNano"] as? String).flatMap { UInt64($0) }
                return (try #require(start), try #require(end))
            }
            // In the order of the work; the clocks of spans agree to a millisecond.
            for (one, next) in zip(times, times.dropFirst()) { #expect(one.start <= next.start + 1_000_000) }
            let sent = try #require(origin.requests.first?.headers)
            let fetch = try #require(try span("fetch")["spanId"] as? String)
            #expect(sent[.init("traceparent")!] == "00-\(trace)-\(fetch)-01")
            #expect(sent[.init("tracestate")!] == "a=b")
        }
    }

    @Test func tracesOfClientsArePassedOnWithoutACollector() async throws {
        let origin = try await Origin.samples()
        let server = try await ImageServerProcess.start(["--user-agent", "picture fetcher"])
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        #expect(try await server.image(origin.url("lake.jpg"), 60, ["traceparent": parent]).status == 200)
        #expect(try await server.image(origin.url("lake-grey.jpg")).status == 200)
        let requests = origin.requests
        #expect(requests.map { $0.headers[.init("traceparent")!] } == [parent, nil])
        #expect(requests.allSatisfy { $0.headers[values: .userAgent] == ["picture fetcher"] })
        try await server.end()
    }
}

// MARK: - Settings

@Suite(.serialized) struct ImageSettingTests {
    @Test func reloadReachesResultsAnswersAndLimits() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("presets.a = \"w:50\"\nserver-timing = false\n", to: "a.toml")
        let origin = try await Origin.samples()
        let server = try await ImageServerProcess.start(["--config", directory.path + "/a.toml"])
        let first = try await get(server.main, "/insecure/pr:a/plain/local:///lake.jpg")
        #expect(first.status == 200 && first.fields["server-timing"] == nil)
        #expect(first.fields["cache-control"]?.contains("max-age=31536000") == true)
        #expect(try await server.image(origin.url("lake.jpg")).status == 200)
        #expect(try await server.image("local:///lake.jpg", 300).status == 200)
        try directory.write(
            """
            quality = 5
            presets.a = "w:50"
            presets.b = "w:40"
            ttl = 77
            server-timing = true
            max-source-bytes = 1000
            max-result-dimension = 200
            allow-origin = "*"
            """, to: "a.toml")
        server.process.send(SIGHUP)
        try await eventually("the configuration is reloaded") { server.process.output.contains("is reloaded") }
        let second = try await get(server.main, "/insecure/pr:a/plain/local:///lake-grey.jpg")
        #expect(second.status == 413, "\(second)")
        #expect(try await get(server.main, "/insecure/pr:b/plain/\(origin.url("lake-grey.jpg"))").status == 413)
        // Results in memory are of the quality that they were made with.
        let again = try await get(server.main, "/insecure/pr:a/q:80/plain/local:///lake.jpg")
        #expect(again.status == 413)
        try directory.write("quality = 5\nttl = 77\npresets.a = \"w:50\"\nallow-origin = \"*\"\n", to: "a.toml")
        server.process.send(SIGHUP)
        try await eventually("the configuration is reloaded") {
            server.process.output.components(separatedBy: "is reloaded").count == 3
        }
        let third = try await get(server.main, "/insecure/pr:a/plain/local:///lake.jpg")
        #expect(third.status == 200 && third.body.utf8.count < first.body.utf8.count)
        #expect(third.fields["cache-control"]?.contains("max-age=77") == true)
        #expect(third.fields["access-control-allow-origin"] == "*")
        try await server.end()
    }

    @Test func pictureSettingsHaveAnEffect() async throws {
        let plain = try await ImageServerProcess.start()
        let other = try await ImageServerProcess.start([
            "--skip-processing", "jpeg", "--fallback-image", Samples.directory + "/lake-grey.jpg",
            "--fallback-status", "203", "--fallback-ttl", "9",
        ])
        let size = try Samples.bytes("lake.jpg").count
        #expect(try await plain.image("local:///lake.jpg").fields["content-length"] != "\(size)")
        #expect(try await other.image("local:///lake.jpg").fields["content-length"] == "\(size)")
        #expect(try await plain.image("local:///missing.jpg").status == 404)
        let fallback = try await other.image("local:///missing.jpg")
        #expect(fallback.status == 203 && fallback.fields["content-type"] == "image/jpeg")
        #expect(fallback.fields["cache-control"]?.contains("max-age=9") == true)
        try await plain.end()
        try await other.end()
    }

    @Test func aHostOfSourcesGetsNoMoreRequestsThanItsLimit() async throws {
        let gate = OpenSignal()
        let running = Mutex((now: 0, most: 0))
        let body = try Samples.bytes("lake.jpg")
        let origin = try await Origin.start { _ in
            running.withLock { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
            await gate.wait()
            running.withLock { $0.now -= 1 }
            return .init(body: body)
        }
        let server = try await ImageServerProcess.start(["--downloads-per-host", "2"])
        let port = server.main
        let tasks = (0..<6).map { number in
            let path = ImageServerProcess.path(origin.url("\(number).jpg"))
            return Task { try await get(port, path).status }
        }
        try await eventually("the others wait") {
            try await get(server.admin, "/metrics").body.contains("vitrine_load_queue_length 4\n")
        }
        try await eventually("two have reached the origin") { running.withLock { $0.now } == 2 }
        // Sources without a network are not concerned.
        #expect(try await server.image("local:///lake.jpg").status == 200)
        gate.open()
        for task in tasks { #expect(try await task.value == 200) }
        #expect(running.withLock { $0.most } == 2)
        try await server.end()
    }

    /// A setting that nothing reads does not exist.
    @Test func everySettingIsReadByAPart() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/VitrineServer")
        var text = ""
        for folder in ["Gallery", "IIIF", "Operations", "Program"] {
            for file in try FileManager.default.contentsOfDirectory(atPath: sources.path + "/" + folder)
            where !["ServerSettings.swift", "SettingKind.swift", "ServerConfiguration.swift"].contains(file) {
                text += try String(contentsOf: sources.appending(path: "\(folder)/\(file)"), encoding: .utf8)
            }
        }
        // These become others when the configuration is loaded, and permit an address.
        let own: Set = ["keyFile", "saltFile", "allowUnsigned"]
        for child in Mirror(reflecting: ServerConfiguration()).children {
            let name = try #require(child.label)
            let word = try Regex("\\b\(name)\\b").wordBoundaryKind(.simple)
            #expect(own.contains(name) || text.contains(word), "\(name)")
        }
    }
}
