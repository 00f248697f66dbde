import ArgumentParser
import VitrineCore

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

/// The option that turns the progress bar off.
struct ProgressOption: ParsableArguments {
    @Flag(name: [.short, .long], help: "Print errors only: no progress bar, and no text for inputs that succeed.")
    var quiet = false
}

/// The option for programs that read the output.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print one JSON object per line instead of text.")
    var json = false
}

/// Runs one piece of work per input, a few at a time, and reports the results in the order of the inputs.
enum Batch {
    /// How many run at a time: more than there are processors, which would else be idle while an image goes from one
    /// thread to another; no more where each holds a large result.
    ///
    /// - Parameter pixels: The pixels of a result, at most.
    static func width(pixels: Int) -> Int {
        let processors = ProcessorCount.active
        return pixels > 4_000_000 ? processors : processors + max(2, processors / 2)
    }

    /// Runs the work and returns when all of it is reported.
    ///
    /// - Parameters:
    ///   - width: How many run at a time. Default: as for small results.
    ///   - progress: Shows the number of finished inputs; nil for none.
    ///   - name: The name of an input in the progress bar.
    static func run<Input: Sendable, Result: Sendable>(
        _ inputs: [Input],
        width: Int = width(pixels: 0),
        progress: ProgressBar?,
        name: @escaping @Sendable (Input) -> String,
        work: @escaping @Sendable (Int, Input) async -> Result,
        report: (Result) -> Void
    ) async {
        await withTaskGroup(of: (Int, Result).self) { group in
            var next = 0
            var waiting: [Int: Result] = [:]
            var reported = 0
            func start() {
                guard next < inputs.count else { return }
                let index = next
                next += 1
                progress?.begin(index, name(inputs[index]))
                group.addTask { (index, await work(index, inputs[index])) }
            }
            for _ in 0..<width { start() }
            for await (index, result) in group {
                waiting[index] = result
                progress?.finish(index)
                start()
                guard waiting[reported] != nil else { continue }
                progress?.clear()
                while let ready = waiting.removeValue(forKey: reported) {
                    report(ready)
                    reported += 1
                }
                if reported < inputs.count { progress?.draw() }
            }
            progress?.clear()
        }
    }
}

/// The progress of several inputs as one line on standard error: bar, count, percentage, current input.
///
/// It draws nothing unless standard error is a terminal and there are several inputs.
final class ProgressBar: Sendable {
    private struct State {
        var done = 0
        /// The inputs in work, in the order in which they began.
        var running: [(number: Int, name: String)] = []
        var latest = ""
    }

    private let total: Int
    private let isVisible: Bool
    private let state = Locked(State())

    /// Whether a bar stands in the line of the cursor.
    private static let isDrawn = Locked(false)

    init(total: Int, isQuiet: Bool = false) {
        self.total = total
        isVisible = total > 1 && !isQuiet && isatty(STDERR_FILENO) == 1
    }

    /// Notes that work on an input begins, and shows its name.
    func begin(_ number: Int, _ name: String) {
        guard isVisible else { return }
        let name = Printable.line(name)
        state.withLock { state in
            state.running.append((number, name))
            state.latest = name
        }
        draw()
    }

    /// Counts an input as finished.
    func finish(_ number: Int) {
        guard isVisible else { return }
        state.withLock { state in
            state.done += 1
            state.running.removeAll { $0.number == number }
            // The oldest is the one that takes long.
            if let name = state.running.first?.name { state.latest = name }
        }
        draw()
    }

    /// Draws the line.
    func draw() {
        guard isVisible else { return }
        let columns = TerminalSize.columns(of: STDERR_FILENO)
        state.withLock { state in
            let text = Self.text(done: state.done, total: total, name: state.latest, columns: columns)
            Self.isDrawn.withLock { $0 = true }
            Diagnostics.draw("\r\u{1B}[2K" + text)
        }
    }

    /// Removes the line, before other output and at the end.
    func clear() {
        guard isVisible else { return }
        state.withLock { _ in
            Self.isDrawn.withLock { $0 = false }
            Diagnostics.draw("\r\u{1B}[2K")
        }
    }

    /// Leaves a line that a bar stands in, for a process that is about to end.
    static func endLine() {
        let isDrawn = isDrawn.withLock { $0 }
        if isDrawn { _ = StandardStream.write([UInt8(ascii: "\n")], to: STDERR_FILENO) }
    }

    /// Returns the line, shorter than the terminal is wide.
    static func text(done: Int, total: Int, name: String, columns: Int) -> String {
        let fraction = Double(done) / Double(max(1, total))
        let count = "\(TerminalText.bar(fraction))  \(done)/\(total)  \(Int(fraction * 100)) %"
        return TerminalText.joined(count, name, columns: columns - 1)
    }
}
