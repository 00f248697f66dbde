import VitrineCore
import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Plays an animation in the terminal, in place, until its last loop or a key.
struct TerminalPlayback {
    private let animation: AnimatedImage
    private var output: TerminalImage
    /// The rows of the terminal that a frame takes.
    private let rows: Int

    /// Rows below a frame where terminals may put the cursor after drawing it.
    static let rowsBelow = 2
    /// Identifies the image for kitty, so that each frame replaces the one before.
    private static let imageID = 86

    /// - Returns: nil if standard input and output are no terminals, or a frame does not fit into the terminal.
    init?(_ animation: AnimatedImage, _ output: TerminalImage) {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { return nil }
        guard let room = TerminalSize.rows(of: animation.size, for: output.mode), room.used + Self.rowsBelow < room.all
        else { return nil }
        self.animation = animation
        self.output = output
        rows = room.used
        if output.mode == .kitty { self.output.imageID = Self.imageID }
    }

    /// Plays on the calling thread, which it blocks. Frames that come late delay the following ones.
    ///
    /// - Throws: `ImageError` if the first frame cannot be decoded. Damage behind it ends each loop earlier.
    func run() throws {
        let keyboard = Keyboard()
        defer { keyboard.restore() }
        // Makes room first: once the screen has scrolled, the saved position would be another one.
        write(String(repeating: "\n", count: rows + Self.rowsBelow) + "\u{1b}[\(rows + Self.rowsBelow)A\u{1b}7")
        defer { write("\u{1b}8\u{1b}[\(rows)B\r") }
        let timing = animation.timing
        var (frame, loop, count) = (0, 0, timing.frameCount)
        var due = ContinuousClock.now
        while true {
            do {
                let text = output.render(try animation.decodeImage(at: frame))
                if keyboard.waitForKey(until: due) { return }
                write("\u{1b}8")
                Output.contents(text)
            } catch {
                guard frame > 0 else { throw error }
                count = frame
            }
            if frame < count {
                due = max(due, ContinuousClock.now - .milliseconds(20)) + .seconds(timing.durations[frame])
                frame += 1
            }
            guard frame >= count else { continue }
            (frame, loop) = (0, loop + 1)
            if count < 2 || Output.hasFailed || (timing.loopCount > 0 && loop >= timing.loopCount) {
                _ = keyboard.waitForKey(until: due)
                return
            }
        }
    }

    private func write(_ text: String) { Output.contents(Array(text.utf8)) }
}
