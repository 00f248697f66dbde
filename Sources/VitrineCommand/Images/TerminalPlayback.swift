import Synchronization
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
    private var picture: TerminalPicture
    /// The rows of the terminal that a frame takes.
    private let rows: Int

    /// Rows below a frame where terminals may put the cursor after drawing it.
    static let rowsBelow = 2
    /// Identifies the picture for kitty, so that each frame replaces the one before.
    private static let pictureID = 86

    /// - Returns: nil if standard input and output are no terminals, or a frame does not fit into the terminal.
    init?(_ animation: AnimatedImage, _ picture: TerminalPicture) {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else { return nil }
        guard let room = TerminalSize.rows(of: animation.size, for: picture.mode), room.used + Self.rowsBelow < room.all
        else { return nil }
        self.animation = animation
        self.picture = picture
        rows = room.used
        if picture.mode == .kitty { self.picture.pictureID = Self.pictureID }
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
                let text = picture.render(try animation.decodeImage(at: frame))
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
    func restore() { Self.restore() }

    /// Restores the settings of the terminal, if they were changed. May be called by any thread.
    static func restore() {
        saved.withLock { saved in
            guard var settings = saved else { return }
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
            saved = nil
        }
    }

    /// Waits for a key.
    ///
    /// - Returns: Whether a key was pressed before the time.
    func waitForKey(until time: ContinuousClock.Instant) -> Bool {
        while true {
            let left = (time - ContinuousClock.now) / .milliseconds(1)
            var state = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            let count = poll(&state, 1, Int32(max(0, min(left.rounded(.up), 1e6))))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            var key: UInt8 = 0
            _ = read(STDIN_FILENO, &key, 1)
            return true
        }
    }
}
