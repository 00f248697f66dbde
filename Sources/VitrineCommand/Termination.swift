import CVitrineSandbox
import Synchronization
import VitrineCore
import VitrinePipeline
import VitrineWebPages

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

/// Ends the process by a signal without leaving temporary files, helpers or browsers.
///
/// Ctrl-C (SIGINT), SIGTERM and SIGHUP end the command at once. Finished outputs stay. The process ends by the signal
/// itself, so that shells report 130 or 143 and scripts that run the command stop too. A second signal ends it without
/// any cleanup.
enum Termination {
    private static let isEnding = Atomic(false)
    private static let endsOnBrokenPipes = Atomic(false)

    /// Whether the process is about to end. Failures that the end itself causes are not printed then.
    static var hasBegun: Bool { isEnding.load(ordering: .acquiring) }

    /// Starts the thread that waits for signals. A signal that the parent ignores, as nohup(1) does, stays ignored.
    static func install() {
        var descriptor: Int32 = -1
        guard csandbox_catch_termination(&descriptor) == 0 else { return }
        let isStarted = Thread.start(name: "signals") { [descriptor] in
            var number: UInt8 = 0
            while read(descriptor, &number, 1) != 1 {
                guard errno == EINTR else { return }
            }
            for other in [SIGHUP, SIGINT, SIGTERM] { signal(other, SIG_DFL) }
            end(by: Int32(number))
        }
        guard isStarted else {
            for other in [SIGHUP, SIGINT, SIGTERM] { signal(other, SIG_DFL) }
            return
        }
        ActiveTemporaries.track()
        // A closed pipe becomes an error of the write, so that a thread ends the process and not a signal handler.
        let previous = signal(SIGPIPE, SIG_IGN)
        if unsafeBitCast(previous, to: Int.self) == unsafeBitCast(SIG_DFL, to: Int.self) {
            endsOnBrokenPipes.store(true, ordering: .releasing)
        }
    }

    /// Ends the process because the reader of an output has closed its end, as `head` does. Returns if the parent
    /// ignores SIGPIPE and so expects an error.
    static func endOnBrokenPipe() {
        if endsOnBrokenPipes.load(ordering: .acquiring) { end(by: SIGPIPE) }
    }

    private static func end(by number: Int32) -> Never {
        if !isEnding.exchange(true, ordering: .acquiringAndReleasing) {
            ActiveTemporaries.removeAll()
            RunningBrowsers.endAll()
            ProgressBar.endLine()
            Keyboard.restore()
            csandbox_end_by(number)
        }
        // The signal ends all threads; a second caller must not exit with a status before.
        while true { pause() }
    }
}
