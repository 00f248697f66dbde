import Synchronization
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The answer of a terminal to ``TerminalQuery``.
package struct TerminalAnswer: Sendable, Equatable {
    /// Whether it draws the graphics of kitty.
    package private(set) var hasKitty = false
    /// Whether it draws sixels.
    package private(set) var hasSixel = false
    /// Whether the last answer has arrived.
    package private(set) var isComplete = false

    /// Reads the bytes that have arrived so far. Keys that were pressed meanwhile stand between the answers.
    ///
    /// Sources: sw.kovidgoyal.net/kitty/graphics-protocol, Querying support; DA1 of the DEC VT510 manual, where 4 says
    /// sixel.
    package init(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        hasKitty = text.contains("\u{1b}_Gi=\(TerminalQuery.imageID);OK")
        for part in text.components(after: "\u{1b}[?") {
            guard let end = part.firstIndex(where: { !$0.isASCII || !($0.isNumber || $0 == ";") }) else { continue }
            guard part[end] == "c" else { continue }
            isComplete = true
            hasSixel = part[..<end].split(separator: ";").dropFirst().contains("4")
        }
    }
}

extension String {
    /// The rest of the text behind each occurrence of a mark.
    fileprivate func components(after mark: String) -> [Substring] {
        var parts: [Substring] = []
        var rest = self[...]
        while let range = rest.firstRange(of: mark) {
            rest = rest[range.upperBound...]
            parts.append(rest)
        }
        return parts
    }
}

/// Asks the terminal for its graphics protocols.
enum TerminalQuery {
    /// Identifies the question to kitty.
    static let imageID = 31
    /// Terminals answer in milliseconds; the way to a distant one takes longer.
    private static let limit = Duration.milliseconds(500)

    /// Asks, and waits for the answer. Blocks.
    ///
    /// - Parameter isMultiplexed: Whether the question to kitty, which tmux would take for a title, is left out.
    /// - Returns: nil unless standard input and output are the terminal, the command is in its foreground, and it
    ///   answers in time.
    static func ask(isMultiplexed: Bool) -> TerminalAnswer? {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { return nil }
        // In the background, the change of settings would stop the command. Without a foreground, nothing does.
        let foreground = tcgetpgrp(STDIN_FILENO)
        guard foreground < 0 || foreground == getpgrp() else { return nil }
        let keyboard = Keyboard()
        defer { keyboard.restore(discardingInput: true) }
        // A pixel that is not shown. Every terminal answers the second question, so that no answer to the first one
        // means no.
        let kitty = "\u{1b}_Gi=\(imageID),s=1,v=1,a=q,t=d,f=24;AAAA\u{1b}\\"
        Output.contents(Array(((isMultiplexed ? "" : kitty) + "\u{1b}[c").utf8))
        let deadline = ContinuousClock.now + limit
        var bytes: [UInt8] = []
        while let next = keyboard.byte(until: deadline), bytes.count < 4_096 {
            bytes.append(next)
            guard next == UInt8(ascii: "c") else { continue }
            let answer = TerminalAnswer(bytes)
            if answer.isComplete { return answer }
        }
        return nil
    }
}

/// The terminal's keyboard, of which each key is read at once and not shown.
final class Keyboard {
    /// The settings to restore when a signal ends the process.
    private static let saved = Mutex<termios?>(nil)

    init() {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
        Self.saved.withLock { [settings] in $0 = settings }
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    }

    /// Restores the settings of the terminal.
    ///
    /// - Parameter discardingInput: Whether input that was not read is dropped.
    func restore(discardingInput: Bool = false) { Self.restore(discardingInput: discardingInput) }

    /// Restores the settings of the terminal, if they were changed. May be called by any thread.
    static func restore(discardingInput: Bool = false) {
        saved.withLock { saved in
            guard var settings = saved else { return }
            tcsetattr(STDIN_FILENO, discardingInput ? TCSAFLUSH : TCSANOW, &settings)
            saved = nil
        }
    }

    /// Waits for a key.
    ///
    /// - Returns: Whether a key was pressed before the time.
    func waitForKey(until time: ContinuousClock.Instant) -> Bool { byte(until: time) != nil }

    /// Returns the next byte that arrives before a time; nil if none does, or the input has ended.
    func byte(until time: ContinuousClock.Instant) -> UInt8? {
        while true {
            let left = (time - ContinuousClock.now) / .milliseconds(1)
            var state = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            let count = poll(&state, 1, Int32(max(0, min(left.rounded(.up), 1e6))))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            var byte: UInt8 = 0
            return read(STDIN_FILENO, &byte, 1) == 1 ? byte : nil
        }
    }
}
