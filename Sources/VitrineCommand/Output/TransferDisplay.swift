import VitrineCore
import VitrineImaging
import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The progress of running transfers on standard error, a line for each. It draws nothing unless standard error is a
/// terminal.
final class TransferDisplay: Sendable {
    private struct Line {
        var name: String
        var progress: TransferProgress
        var meter = TransferMeter()
    }

    private struct State {
        var lines: [Int: Line] = [:]
        var drawnCount = 0
        var done = 0
    }

    private let total: Int
    private let isVisible: Bool
    private let state = Locked(State())

    /// - Parameter total: How many transfers there will be. A last line counts them, if there are several.
    init(total: Int, isQuiet: Bool = false) {
        self.total = total
        isVisible = !isQuiet && isatty(STDERR_FILENO) == 1
    }

    /// Shows a transfer from now on.
    func add(_ number: Int, name: String, _ progress: TransferProgress) {
        guard isVisible else { return }
        state.withLock { $0.lines[number] = Line(name: Printable.line(name), progress: progress) }
    }

    /// No longer shows a transfer.
    func remove(_ number: Int) {
        guard isVisible else { return }
        state.withLock { $0.lines[number] = nil }
    }

    /// Counts a transfer as finished.
    func finish() {
        state.withLock { $0.done += 1 }
    }

    /// Draws ten times per second, until the task is cancelled.
    func run() async {
        guard isVisible else { return }
        while (try? await Task.sleep(for: .milliseconds(100))) != nil { draw() }
    }

    /// Removes the lines, before other output.
    func clear() {
        guard isVisible else { return }
        state.withLock { state in
            write(Self.erasure(of: state.drawnCount))
            state.drawnCount = 0
        }
    }

    private func draw() {
        let columns = TerminalSize.columns(of: STDERR_FILENO), now = ContinuousClock.now
        state.withLock { state in
            var text = Self.erasure(of: state.drawnCount)
            for number in state.lines.keys.sorted() {
                guard var line = state.lines[number] else { continue }
                let step = line.progress.current
                line.meter.add(step.received, at: now)
                state.lines[number] = line
                text += TerminalText.joined(Self.text(step, line.meter), line.name, columns: columns - 1) + "\n"
            }
            state.drawnCount = state.lines.count
            if total > 1, !state.lines.isEmpty {
                text += ProgressBar.text(done: state.done, total: total, name: "", columns: columns) + "\n"
                state.drawnCount += 1
            }
            write(text)
        }
    }

    private static func text(_ step: TransferProgress.Step, _ meter: TransferMeter) -> String {
        var parts: [String] = []
        if let fraction = step.fraction {
            parts.append("\(TerminalText.bar(fraction))  \(Int(min(max(0, fraction), 1) * 100)) %")
        }
        let received = ByteCount(step.received).formatted()
        parts.append(step.total.map { "\(received) of \(ByteCount($0).formatted())" } ?? received)
        if let speed = meter.speed { parts.append("\(ByteCount(clamping: speed).formatted())/s") }
        let rest = step.total.map { ByteCount($0) - ByteCount(step.received) }
        if let rest, let seconds = meter.secondsLeft(for: rest.bytes) {
            parts.append("\(TransferMeter.text(seconds: seconds)) left")
        }
        return parts.joined(separator: "  ")
    }

    /// Moves the cursor up over lines and removes them.
    private static func erasure(of count: Int) -> String {
        count == 0 ? "" : "\u{1B}[\(count)A\r\u{1B}[0J"
    }

    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        Diagnostics.draw(text)
    }
}

/// The speed of a transfer, and the time that it still needs.
private struct TransferMeter {
    /// Bytes per second, as a moving average over a few seconds; nil before the second measurement.
    private(set) var speed: Double?

    private var last: (time: ContinuousClock.Instant, received: Int)?
    /// The time constant of the average, in seconds.
    private static let memory = 3.0

    /// Notes how many bytes have arrived. Fewer bytes than before mean that the transfer has started again.
    mutating func add(_ received: Int, at time: ContinuousClock.Instant) {
        defer { last = (time, received) }
        guard let last, received >= last.received else {
            speed = nil
            return
        }
        let seconds = (time - last.time) / .seconds(1)
        guard seconds > 0 else { return }
        let current = (Double(received) - Double(last.received)) / seconds
        guard let speed else {
            self.speed = current
            return
        }
        // A moving average for steps of any length.
        let weight = min(1, seconds / Self.memory)
        self.speed = speed + (current - speed) * weight
    }

    /// Returns the seconds until `rest` more bytes have arrived; nil if the speed is unknown or too low.
    func secondsLeft(for rest: Int) -> Int? {
        guard let speed, speed > 1 else { return nil }
        let seconds = Double(max(0, rest)) / speed
        return seconds < 360_000 ? Int(seconds.rounded(.up)) : nil
    }

    /// Returns `0:05`, `12:34` or `1:02:03`.
    static func text(seconds: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (minutes, hours) = (seconds / 60 % 60, seconds / 3600)
        return hours > 0
            ? "\(hours):\(two(minutes)):\(two(seconds % 60))" : "\(minutes):\(two(seconds % 60))"
    }
}

/// Text that has to fit into a line of a terminal. A line that is too long would wrap, and could not be erased.
enum TerminalText {
    /// Returns a bar of 20 columns.
    static func bar(_ fraction: Double) -> String {
        let width = 20
        let filled = min(max(0, Int(Double(width) * fraction)), width)
        return String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
    }

    /// Returns a state and the end of a name in at most `columns` columns. Without a name, the state alone.
    static func joined(_ state: String, _ name: String, columns: Int) -> String {
        let columns = max(1, columns)
        let room = columns - state.count - 2
        guard !name.isEmpty, room >= 8 else { return prefix(state, columns: columns) }
        return state + "  " + suffix(name, columns: room)
    }

    private static func prefix(_ text: String, columns: Int) -> String {
        var width = 0
        return String(
            text.prefix {
                width += Self.width(of: $0)
                return width <= columns
            })
    }

    private static func suffix(_ text: String, columns: Int) -> String {
        guard text.reduce(0, { $0 + Self.width(of: $1) }) > columns else { return text }
        var width = 1
        var end = text.endIndex
        while end > text.startIndex {
            let previous = text.index(before: end)
            width += Self.width(of: text[previous])
            guard width <= columns else { break }
            end = previous
        }
        return "…" + text[end...]
    }

    /// Columns of a character. Characters of East Asian scripts and emoji count as two, if in doubt.
    private static func width(of character: Character) -> Int {
        let first = character.unicodeScalars.first?.value ?? 0
        return first < 0x1100 || (0x2010..<0x2028).contains(first) || (0x2500..<0x25A0).contains(first) ? 1 : 2
    }
}

/// The size of the terminal.
enum TerminalSize {
    /// Returns the columns of the terminal that a descriptor refers to; 80 if it is not a terminal.
    static func columns(of descriptor: Int32 = STDOUT_FILENO) -> Int { window(descriptor).map { Int($0.ws_col) } ?? 80 }

    private static func window(_ descriptor: Int32) -> winsize? {
        var window = winsize()
        let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0 && window.ws_col > 0
        return isKnown ? window : nil
    }

    /// Returns the rows that an image takes by a method, and all rows of the terminal; nil if they are not known.
    static func rows(of size: PixelSize, for method: TerminalImage.Mode) -> (used: Int, all: Int)? {
        guard let window = window(STDOUT_FILENO), window.ws_row > 1 else { return nil }
        let all = Int(window.ws_row)
        guard method.hasPixels else { return ((size.height + 1) / 2, all) }
        let height = Int(window.ws_ypixel) / all
        return height > 0 ? ((size.height + height - 1) / height, all) : nil
    }

    /// Returns the box that an image can fill, in pixels of a method. It assumes 80 columns and 24 rows if standard
    /// output is not a terminal.
    ///
    /// - Parameter reserved: Rows that stay free, beside one for the prompt.
    static func pixels(for method: TerminalImage.Mode, reserved: Int = 0) -> SizeArgument {
        let window = window(STDOUT_FILENO).flatMap { $0.ws_row > 1 ? $0 : nil }
        let columns = window.map { Int($0.ws_col) } ?? 80
        let all = window.map { Int($0.ws_row) } ?? 24
        let rows = max(1, all - 1 - reserved)
        var box = SizeArgument(1)
        if method.hasPixels {
            // Many terminals do not tell their size in pixels.
            let width = window.map { Int($0.ws_xpixel) / columns } ?? 0
            let height = window.map { Int($0.ws_ypixel) / all } ?? 0
            (box.width, box.height) = (columns * (width > 0 ? width : 8), rows * (height > 0 ? height : 16))
        } else {
            (box.width, box.height) = (columns, rows * 2)
        }
        return box
    }
}
