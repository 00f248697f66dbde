import Foundation
import VitrineCore
import VitrineNetwork

/// Lines on standard error that say how far each running transfer is; silent unless standard error is a terminal.
final class ProgressDisplay: Sendable {
    private struct Line {
        var name: String
        var progress: TransferProgress
        var meter = TransferMeter()
    }

    private struct State {
        var lines: [Int: Line] = [:]
        var drawnCount = 0
    }

    private let isVisible: Bool
    private let state = Locked(State())

    init() { isVisible = isatty(STDERR_FILENO) == 1 }

    /// Shows a transfer from now on.
    func add(_ number: Int, name: String, _ progress: TransferProgress) {
        guard isVisible else { return }
        state.withLock { $0.lines[number] = Line(name: Printable.line(name), progress: progress) }
    }

    /// Shows a transfer no more.
    func remove(_ number: Int) {
        guard isVisible else { return }
        state.withLock { $0.lines[number] = nil }
    }

    /// Draws again and again, until the task is cancelled.
    func run() async {
        guard isVisible else { return }
        while (try? await Task.sleep(for: .milliseconds(100))) != nil { draw() }
    }

    /// Takes the lines away, before other output.
    func clear() {
        guard isVisible else { return }
        state.withLock { state in
            write(Self.erasure(of: state.drawnCount))
            state.drawnCount = 0
        }
    }

    private func draw() {
        let width = TerminalSize.columns(of: STDERR_FILENO), now = ContinuousClock.now
        state.withLock { state in
            var text = Self.erasure(of: state.drawnCount)
            for number in state.lines.keys.sorted() {
                guard var line = state.lines[number] else { continue }
                let step = line.progress.current
                line.meter.add(step.received, at: now)
                state.lines[number] = line
                text += Self.text(line.name, step, line.meter, width: width) + "\n"
            }
            state.drawnCount = state.lines.count
            write(text)
        }
    }

    // MARK: Text

    private static let barWidth = 20

    private static func text(
        _ name: String, _ step: TransferProgress.Step, _ meter: TransferMeter, width: Int
    ) -> String {
        var parts: [String] = []
        if let fraction = step.fraction {
            let filled = min(max(0, Int(Double(barWidth) * fraction)), barWidth)
            let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: barWidth - filled)
            parts.append("\(bar) \(Int(fraction * 100)) %")
        }
        let received = ByteCount(step.received).formatted()
        parts.append(step.total.map { "\(received) of \(ByteCount($0).formatted())" } ?? received)
        if let speed = meter.speed { parts.append("\(ByteCount(clamping: speed).formatted())/s") }
        let rest = step.total.map { ByteCount($0) - ByteCount(step.received) }
        if let rest, let seconds = meter.secondsLeft(for: rest.bytes) {
            parts.append("\(TransferMeter.text(seconds: seconds)) left")
        }
        let state = parts.joined(separator: "  ")
        let room = max(8, width - 1 - state.count - 2)
        let shown = name.count <= room ? name : "…" + name.suffix(room - 1)
        // A line that is too long would wrap, and its second half stay.
        return String((shown + "  " + state).prefix(max(1, width - 1)))
    }

    /// Goes back up over lines and removes them.
    private static func erasure(of count: Int) -> String {
        count == 0 ? "" : "\u{1B}[\(count)A\r\u{1B}[0J"
    }

    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        Diagnostics.draw(text)
    }
}
