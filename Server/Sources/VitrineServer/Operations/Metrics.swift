import Foundation
package import Metrics
import Synchronization

/// Metrics of swift-metrics as text for Prometheus.
///
/// Names are those of swift-metrics with `_` for every character that Prometheus does not allow. Counters end in
/// `_total`; timers become histograms of seconds.
package final class PrometheusRegistry: MetricsFactory {
    package enum Kind: String, Sendable { case counter, gauge, histogram }

    /// Upper bounds in seconds.
    package static let latencyBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

    private struct Family {
        var kind: Kind
        var series: [String: any Series] = [:]
    }
    private struct State {
        var families: [String: Family] = [:]
        var collectors: [@Sendable (PrometheusRegistry) -> Void] = []
    }
    private let state = Mutex(State())
    private let help: [String: String]
    private let maximumSeries: Int

    /// - Parameters:
    ///   - help: The meaning of metrics by their names.
    ///   - maximumSeries: The labels' combinations of one metric. Further ones count as one without labels.
    package init(help: [String: String] = [:], maximumSeries: Int = 1000) {
        self.help = help
        self.maximumSeries = maximumSeries
    }

    /// Calls `collector` before each text is made, to set gauges.
    package func onCollect(_ collector: @escaping @Sendable (PrometheusRegistry) -> Void) {
        state.withLock { $0.collectors.append(collector) }
    }

    package func setGauge(_ name: String, _ labels: [(String, String)] = [], to value: Double) {
        gauge(name, labels).set(value)
    }

    package func setCounter(_ name: String, _ labels: [(String, String)] = [], to value: Double) {
        counter(name, labels).set(value)
    }

    package func counter(_ name: String, _ labels: [(String, String)] = []) -> PrometheusNumber {
        series(Self.counterName(name), kind: .counter, labels: labels, make: PrometheusNumber.init)
            ?? PrometheusNumber()
    }

    package func gauge(_ name: String, _ labels: [(String, String)] = []) -> PrometheusNumber {
        series(Self.sanitized(name), kind: .gauge, labels: labels, make: PrometheusNumber.init) ?? PrometheusNumber()
    }

    package func histogram(
        _ name: String, _ labels: [(String, String)] = [], buckets: [Double] = latencyBuckets
    ) -> PrometheusHistogram {
        series(Self.sanitized(name), kind: .histogram, labels: labels) { PrometheusHistogram(buckets: buckets) }
            ?? PrometheusHistogram(buckets: buckets)
    }

    /// The series with these labels, made if there is none; nil if the name is one of another kind.
    private func series<S: Series>(
        _ name: String, kind: Kind, labels: [(String, String)], make: () -> S
    ) -> S? {
        let text = Self.text(of: labels)
        return state.withLock { state in
            var family = state.families[name] ?? Family(kind: kind)
            guard family.kind == kind else { return nil }
            let key = family.series[text] != nil || family.series.count < maximumSeries ? text : ""
            if let series = family.series[key] { return series as? S }
            let series = make()
            family.series[key] = series
            state.families[name] = family
            return series
        }
    }

    /// The exposition format 0.0.4 of Prometheus, sorted.
    package func text() -> String {
        for collector in state.withLock({ $0.collectors }) { collector(self) }
        let families = state.withLock { $0.families }
        var text = ""
        for name in families.keys.sorted() {
            guard let family = families[name] else { continue }
            let meaning = (help[name] ?? "A metric of a library.").replacing("\\", with: "\\\\")
                .replacing("\n", with: "\\n")
            text += "# HELP \(name) \(meaning)\n# TYPE \(name) \(family.kind.rawValue)\n"
            for labels in family.series.keys.sorted() {
                family.series[labels]?.write(name, labels, to: &text)
            }
        }
        return text
    }

    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    static func sanitized(_ name: String) -> String {
        let characters = name.utf8.map { byte -> Character in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                Character(Unicode.Scalar(byte))
            default: "_"
            }
        }
        return characters.first.map { $0.isNumber } ?? true ? "_" + String(characters) : String(characters)
    }

    private static func counterName(_ name: String) -> String {
        let name = sanitized(name)
        return name.hasSuffix("_total") ? name : name + "_total"
    }

    private static func text(of labels: [(String, String)]) -> String {
        labels.sorted { $0.0 < $1.0 }.map { name, value in
            let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
                .replacing("\n", with: "\\n")
            return "\(sanitized(name))=\"\(escaped)\""
        }.joined(separator: ",")
    }

    // MARK: MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        counter(label, dimensions)
    }

    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        counter(label, dimensions)
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(label, dimensions)
    }

    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else { return gauge(label, dimensions) }
        let powersOfEight = (0...9).map { Double(sign: .plus, exponent: $0 * 3, significand: 1) }
        return histogram(label, dimensions, buckets: powersOfEight)
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let name = label.hasSuffix("seconds") ? label : label + "_seconds"
        return histogram(name, dimensions)
    }

    // Series stay: a counter that starts anew would look like a restart of the process.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}
}

private protocol Series: AnyObject, Sendable {
    func write(_ name: String, _ labels: String, to text: inout String)
}

/// A value that is set or grows.
package final class PrometheusNumber: Series, CounterHandler, FloatingPointCounterHandler, MeterHandler,
    RecorderHandler
{
    private let value = Mutex(0.0)

    package var current: Double { value.withLock { $0 } }
    package func increment(by amount: Int64) { increment(by: Double(amount)) }
    package func increment(by amount: Double) { value.withLock { $0 += amount } }
    package func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    package func reset() { set(0.0) }
    package func set(_ value: Int64) { set(Double(value)) }
    package func set(_ new: Double) { value.withLock { $0 = new } }
    package func record(_ value: Int64) { set(Double(value)) }
    package func record(_ value: Double) { set(value) }

    fileprivate func write(_ name: String, _ labels: String, to text: inout String) {
        text += "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(Self.text(current))\n"
    }

    fileprivate static func text(_ value: Double) -> String {
        value.isNaN ? "NaN" : value.isInfinite ? (value > 0 ? "+Inf" : "-Inf") : JSONText.number(value)
    }
}

/// Counts of values by upper bounds.
package final class PrometheusHistogram: Series, TimerHandler, RecorderHandler {
    private struct State {
        var counts: [Int]
        var sum = 0.0
    }
    private let buckets: [Double]
    private let state: Mutex<State>

    init(buckets: [Double]) {
        self.buckets = buckets
        state = Mutex(State(counts: Array(repeating: 0, count: buckets.count + 1)))
    }

    package func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    package func record(_ value: Int64) { record(Double(value)) }
    package func record(_ value: Double) {
        let bucket = buckets.firstIndex { value <= $0 } ?? buckets.count
        state.withLock {
            $0.counts[bucket] += 1
            $0.sum += value
        }
    }

    package var count: Int { state.withLock { $0.counts.reduce(0, +) } }

    fileprivate func write(_ name: String, _ labels: String, to text: inout String) {
        let state = state.withLock { $0 }
        var total = 0
        for (index, count) in state.counts.enumerated() {
            total += count
            let bound = index < buckets.count ? PrometheusNumber.text(buckets[index]) : "+Inf"
            text += "\(name)_bucket{\(labels.isEmpty ? "" : labels + ",")le=\"\(bound)\"} \(total)\n"
        }
        let braces = labels.isEmpty ? "" : "{\(labels)}"
        text += "\(name)_sum\(braces) \(PrometheusNumber.text(state.sum))\n\(name)_count\(braces) \(total)\n"
    }
}

/// The metrics of the server.
package struct ServerMetrics: Sendable {
    /// A part of the time of a request.
    package enum Stage: String, Sendable, CaseIterable { case queue, fetch, decode, encode }
    /// Where a result came from.
    package enum CacheLevel: String, Sendable, CaseIterable { case memory, disk, made, coalesced, stale, shared, store }
    /// Why a request was refused, as in the code of its error.
    package enum Refusal: String, Sendable, CaseIterable {
        case rateLimit = "rate-limit"
        case overloaded
        case deadline = "deadline-exceeded"
        case signature = "invalid-signature"
    }

    /// Every metric of the server, for the documentation and for HELP lines.
    package static let table: [(name: String, kind: PrometheusRegistry.Kind, labels: [String], help: String)] = [
        ("vitrine_requests_total", .counter, ["route", "status"], "Requests that were answered."),
        ("vitrine_requests_in_flight", .gauge, [], "Requests under way."),
        (
            "vitrine_request_duration_seconds", .histogram, ["route"],
            "Time from the head of a request to the end of its answer."
        ),
        (
            "vitrine_stage_duration_seconds", .histogram, ["stage"],
            "Time of renders: waits for a place (queue), for the source (fetch), decode with processing, encode."
        ),
        ("vitrine_cache_results_total", .counter, ["level"], "Results by where they came from."),
        (
            "vitrine_refusals_total", .counter, ["reason"],
            "Requests that were refused: rate-limit, overloaded, deadline-exceeded, invalid-signature."
        ),
        ("vitrine_response_bytes_total", .counter, [], "Bytes of bodies of answers."),
        ("vitrine_source_bytes_total", .counter, [], "Bytes of sources that were downloaded."),
        ("vitrine_connections", .gauge, ["listener"], "Open connections."),
        ("vitrine_renders_in_flight", .gauge, [], "Renders under way."),
        ("vitrine_render_queue_length", .gauge, [], "Requests that wait for a render."),
        ("vitrine_render_memory_bytes", .gauge, [], "Memory of renders under way, as estimated."),
        ("vitrine_loads_in_flight", .gauge, [], "Sources that are being loaded."),
        ("vitrine_load_queue_length", .gauge, [], "Requests that wait for a load."),
        ("vitrine_source_memory_bytes", .gauge, [], "Bytes of sources that are held until their renders."),
        ("vitrine_workers", .gauge, [], "Processes that decode."),
        ("vitrine_workers_resident_memory_bytes", .gauge, [], "Memory of the processes that decode."),
        (
            "vitrine_cache_bytes", .gauge, ["level"],
            "The size of results in memory and on disk, and of the bytes of sources on disk (sources)."
        ),
        ("vitrine_answer_bytes", .gauge, [], "Bytes of long answers that wait for their clients."),
        ("vitrine_draining", .gauge, [], "1 while the server stops, else 0."),
        ("vitrine_reloads_total", .counter, ["result"], "Reloads of the configuration."),
        ("vitrine_spans_dropped_total", .counter, [], "Spans that no collector took."),
        ("vitrine_tier_up", .gauge, [], "1 while results are shared with other nodes, else 0."),
        (
            "vitrine_tier_lookups_total", .counter, ["result"],
            "Look-ups in the tier: a fresh value (hit), a stale one, the right to make it (lease), no help (bypass)."
        ),
        (
            "vitrine_tier_writes_total", .counter, ["result"],
            "Results for the tier: stored; fenced after a purge or a lapsed lease; dropped; oversized."
        ),
        ("vitrine_tier_refreshes_total", .counter, [], "Results that this node was to make anew for all."),
        ("vitrine_tier_waits_total", .counter, [], "Look-ups that waited for another node."),
        ("vitrine_tier_failures_total", .counter, [], "Commands of the tier that failed."),
        ("vitrine_tier_damaged_values_total", .counter, [], "Values of the tier that are damaged or foreign."),
        ("vitrine_tier_invalidations_total", .counter, [], "Purges of all nodes that were received."),
        ("vitrine_tier_outages_total", .counter, [], "How often a server of the tier was found not to answer."),
        ("vitrine_store_up", .gauge, [], "1 while the store of results answers, else 0."),
        ("vitrine_store_queue_bytes", .gauge, [], "Bytes of results that wait to be written to the store."),
        (
            "vitrine_store_lookups_total", .counter, ["result"],
            "Look-ups in the store of results: hit, miss, purged, damaged, failed."
        ),
        (
            "vitrine_store_writes_total", .counter, ["result"],
            "Results for the store: stored, existing from another node, failed, dropped."
        ),
        ("process_resident_memory_bytes", .gauge, [], "Memory of the process, without its workers."),
        ("process_cpu_seconds_total", .counter, [], "Processor time of the process."),
        ("process_open_fds", .gauge, [], "Open descriptors."),
        ("process_start_time_seconds", .gauge, [], "When the process started, in seconds since 1970."),
    ]

    package let registry: PrometheusRegistry
    package let inFlight: PrometheusNumber
    package let responseBytes: PrometheusNumber
    package let sourceBytes: PrometheusNumber
    private let stages: [Stage: PrometheusHistogram]
    private let results: [CacheLevel: PrometheusNumber]
    private let refusals: [Refusal: PrometheusNumber]
    private let answers = Answers()

    /// The series of answers, so that no label is made into text at every request.
    private final class Answers: Sendable {
        struct Key: Hashable {
            var route: String
            var status: Int
        }
        private let known = Mutex<[Key: (count: PrometheusNumber, seconds: PrometheusHistogram)]>([:])

        func series(
            _ registry: PrometheusRegistry, route: String, status: Int
        ) -> (count: PrometheusNumber, seconds: PrometheusHistogram) {
            known.withLock { known in
                let key = Key(route: route, status: status)
                if let series = known[key] { return series }
                let series = (
                    count: registry.counter(
                        "vitrine_requests_total", [("route", route), ("status", String(status))]),
                    seconds: registry.histogram("vitrine_request_duration_seconds", [("route", route)])
                )
                known[key] = series
                return series
            }
        }
    }

    package init() {
        let registry = PrometheusRegistry(
            help: Dictionary(uniqueKeysWithValues: Self.table.map { ($0.name, $0.help) }))
        self.registry = registry
        inFlight = registry.gauge("vitrine_requests_in_flight")
        responseBytes = registry.counter("vitrine_response_bytes_total")
        sourceBytes = registry.counter("vitrine_source_bytes_total")
        func each<Key: Hashable, Value>(_ keys: [Key], _ make: (Key) -> Value) -> [Key: Value] {
            Dictionary(uniqueKeysWithValues: keys.map { ($0, make($0)) })
        }
        stages = each(Stage.allCases) {
            registry.histogram("vitrine_stage_duration_seconds", [("stage", $0.rawValue)])
        }
        results = each(CacheLevel.allCases) {
            registry.counter("vitrine_cache_results_total", [("level", $0.rawValue)])
        }
        refusals = each(Refusal.allCases) {
            registry.counter("vitrine_refusals_total", [("reason", $0.rawValue)])
        }
        let started = Date().timeIntervalSince1970
        registry.onCollect { registry in
            registry.setGauge("process_start_time_seconds", to: started)
            let usage = ProcessUsage.now()
            registry.setCounter("process_cpu_seconds_total", to: usage.cpuSeconds)
            if let bytes = usage.residentBytes { registry.setGauge("process_resident_memory_bytes", to: Double(bytes)) }
            if let files = usage.openFiles { registry.setGauge("process_open_fds", to: Double(files)) }
        }
    }

    /// Counts an answer.
    ///
    /// - Parameter route: A word of the program, never a part of the URL.
    package func answered(route: String, status: Int, seconds: Double, bytes: Int) {
        let series = answers.series(registry, route: route, status: status)
        series.count.increment(by: 1.0)
        series.seconds.record(seconds)
        responseBytes.increment(by: Double(bytes))
    }

    package func took(_ stage: Stage, _ seconds: Double) { stages[stage]?.record(seconds) }
    package func found(_ level: CacheLevel) { results[level]?.increment(by: 1.0) }
    package func refused(_ reason: Refusal) { refusals[reason]?.increment(by: 1.0) }
}
