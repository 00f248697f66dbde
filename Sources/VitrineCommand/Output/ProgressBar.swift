import Foundation
import VitrineCore

/// One line on standard error that says how far a batch is; silent unless standard error is a terminal.
final class ProgressBar: Sendable {
    private let total: Int
    private let isVisible: Bool
    private let done = Locked(0)

    init(total: Int) {
        self.total = total
        isVisible = total > 1 && isatty(STDERR_FILENO) == 1
    }

    /// Counts one more item as finished and redraws.
    func advance() {
        done.withLock { done in
            done += 1
            guard isVisible else { return }
            let width = 30
            let filled = width * done / max(1, total)
            let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
            write("\r\u{1B}[2K\(bar) \(done)/\(total)")
        }
    }

    /// Takes the line away, before other output or at the end.
    func clear() {
        guard isVisible else { return }
        done.withLock { _ in write("\r\u{1B}[2K") }
    }

    private func write(_ text: String) {
        Diagnostics.draw(text)
    }
}
