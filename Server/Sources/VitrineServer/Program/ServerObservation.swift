import Foundation
import Synchronization
import Tracing
import VitrineCache
import VitrineCore

/// Connects the parts that work on images with the metrics and the traces.
package final class ServerObservation: Sendable {
    /// A renderer references the observation of its transfers.
    private struct Watched: Sendable {
        weak var renderer: Renderer?
    }

    private let metrics: ServerMetrics
    private let watched = Mutex<Watched?>(nil)
    private let diskSizes = Mutex<[String: Int]>([:])

    package init(_ metrics: ServerMetrics) {
        self.metrics = metrics
        metrics.registry.onCollect { [weak self] registry in self?.collect(into: registry) }
    }

    /// Counts an answer.
    package func observe(_ answer: AnswerRecord) {
        if let code = answer.errorCode, let refusal = ServerMetrics.Refusal(rawValue: code) { metrics.refused(refusal) }
        guard let origin = answer.origin else { return }
        let level: ServerMetrics.CacheLevel =
            switch origin {
            case .memory: .memory
            case .disk: .disk
            case .made: .made
            case .coalesced: .coalesced
            case .stale: .stale
            case .shared: .shared
            case .store: .store
            }
        metrics.found(level)
        // Those that shared the work waited for the same times.
        guard origin == .made || origin == .disk else { return }
        for stage in answer.stages {
            guard let known = ServerMetrics.Stage(rawValue: stage.name) else { continue }
            metrics.took(known, stage.duration / .seconds(1))
        }
    }

    /// Counts bytes of a source that were downloaded.
    package func received(_ bytes: Int) { metrics.sourceBytes.increment(by: Double(bytes)) }

    /// Reports on the work of a renderer from now on, in place of an earlier one.
    package func watch(_ new: Renderer) {
        let isFirst = watched.withLock { watched in
            defer { watched = Watched(renderer: new) }
            return watched == nil
        }
        // A renderer after a reload has the caches of the one before.
        guard isFirst else { return }
        if new.configuration.resultDisk.bytes > 0 { follow(new.results.sizeUpdates, "disk") }
        if new.configuration.sourceDisk.bytes > 0 { follow(new.originals.sizeUpdates, "sources") }
    }

    private func follow(_ sizes: AsyncStream<ByteCount?>, _ level: String) {
        Task { [weak self] in
            for await size in sizes { self?.diskSizes.withLock { $0[level] = size?.bytes ?? 0 } }
        }
    }

    private func collect(into registry: PrometheusRegistry) {
        let renderer = watched.withLock { $0?.renderer }
        if let renderer {
            let (renders, loads) = (renderer.admission.renders, renderer.admission.loads)
            registry.setGauge("vitrine_renders_in_flight", to: Double(renders.running))
            registry.setGauge("vitrine_render_queue_length", to: Double(renders.waiting))
            registry.setGauge("vitrine_render_memory_bytes", to: Double(renders.cost))
            registry.setGauge("vitrine_loads_in_flight", to: Double(loads.running))
            registry.setGauge("vitrine_load_queue_length", to: Double(loads.waiting))
            registry.setGauge("vitrine_source_memory_bytes", to: Double(renderer.admission.sources.counts.cost))
            let held = renderer.results.memorySize.bytes
            registry.setGauge("vitrine_cache_bytes", [("level", "memory")], to: Double(held))
        }
        for (level, bytes) in diskSizes.withLock({ $0 }) {
            registry.setGauge("vitrine_cache_bytes", [("level", level)], to: Double(bytes))
        }
        renderer?.remote?.collect(into: registry)
        let workers = ChildProcesses.now()
        registry.setGauge("vitrine_workers", to: Double(workers.count))
        registry.setGauge("vitrine_workers_resident_memory_bytes", to: Double(workers.residentBytes))
    }

    /// Adds spans of the steps of a rendering below the span of the request. The span of the fetch is its own.
    package static func trace(_ times: Rendering.Times) {
        guard let context = InstrumentationContext.current, let tracer = context.tracer,
            context.trace?.isSampled == true
        else { return }
        let clock = SpanClock()
        for (name, step) in times.steps {
            tracer.startSpan(name, context: context, ofKind: .internal, at: clock.time(of: step.began))
                .end(at: clock.time(of: step.began + step.duration))
        }
    }
}

/// The time of day of instants.
private struct SpanClock {
    struct Time: TracerInstant {
        let nanosecondsSinceEpoch: UInt64
        static func < (first: Time, second: Time) -> Bool {
            first.nanosecondsSinceEpoch < second.nanosecondsSinceEpoch
        }
    }

    private let now = ContinuousClock.now
    private let date = Date().timeIntervalSince1970

    func time(of instant: ContinuousClock.Instant) -> Time {
        Time(nanosecondsSinceEpoch: UInt64(max(0, (date - (now - instant) / .seconds(1)) * 1e9)))
    }
}
