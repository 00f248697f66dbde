import CGTK
import Foundation
internal import VitrineGTK

/// Measures the frame times of a window.
@MainActor
package final class FrameMeter {
    private var beginnings: [Int64] = []
    private var paints: [Double] = []
    private var began: Int64 = 0
    private var clock: GTKObject?

    init() {}

    /// Starts a measurement.
    func attach(to widget: Widget) {
        guard clock == nil, let pointer = gtk_widget_get_frame_clock(widget.widget) else { return }
        let clock = GTKObject(sinking: pointer)
        self.clock = clock
        clock.on("before-paint") { [weak self] in self?.began = Int64(g_get_monotonic_time()) }
        clock.on("after-paint") { [weak self] in
            guard let self else { return }
            beginnings.append(began)
            paints.append(Double(Int64(g_get_monotonic_time()) - began) / 1000)
        }
    }

    /// Discards all frames and starts again.
    package func reset() { (beginnings, paints) = ([], []) }

    /// The measured statistics.
    package var report: FrameReport {
        FrameReport(gaps: zip(beginnings.dropFirst(), beginnings).map { Double($0 - $1) / 1000 }, paints: paints)
    }
}

/// Frame statistics of a period in which every frame changed.
package struct FrameReport: CustomStringConvertible {
    private let gaps: [Double]
    private let paints: [Double]

    init(gaps: [Double], paints: [Double]) {
        self.gaps = gaps.sorted()
        self.paints = paints.sorted()
    }

    /// The number of gaps between the starts of frames. A slow frame delays the next one.
    package var count: Int { gaps.count }
    /// The longest gap, in milliseconds.
    package var longest: Double { gaps.last ?? 0 }

    /// Returns the share of gaps, from 0 to 1, up to a number of milliseconds.
    package func share(upTo milliseconds: Double) -> Double {
        gaps.isEmpty ? 0 : Double(gaps.count { $0 <= milliseconds }) / Double(gaps.count)
    }

    package var description: String {
        func quantiles(_ values: [Double]) -> String {
            [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1)].map { name, share in
                let value = values.isEmpty ? 0 : values[min(values.count - 1, Int(Double(values.count) * share))]
                return "\(name) \(value.text)"
            }.joined(separator: " ")
        }
        return """
            \(count) frames; gaps in ms: \(quantiles(gaps)); up to 20 ms: \((100 * share(upTo: 20)).text) %; \
            painting in ms: \(quantiles(paints))
            """
    }
}

extension Double {
    /// The number with one decimal digit.
    package var text: String { String(format: "%.1f", self) }
}

extension Duration {
    /// The duration in milliseconds.
    package var milliseconds: Double { Double(components.seconds) * 1000 + Double(components.attoseconds) / 1e15 }
}
