import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The browsers of this process, for programs that a signal ends.
///
/// The default action of a signal ends a process at once: the profile of a page that is being drawn stays behind until
/// the next process that draws a page sweeps it. A program that handles signals calls ``endAll()`` before it ends.
package enum RunningBrowsers {
    private struct State {
        var isEnding = false
        /// By the path of the profile: the process group of the browser, once there is one.
        var groups: [String: Int32?] = [:]
    }

    private static let state = Locked(State())

    /// Notes a profile before its browser starts.
    ///
    /// - Returns: false when the process is about to end.
    static func add(_ profile: String) -> Bool {
        state.withLock { state in
            guard !state.isEnding else { return false }
            state.groups[profile] = .some(nil)
            return true
        }
    }

    static func started(_ group: Int32, in profile: String) {
        state.withLock { state in
            state.groups[profile] = group
            if state.isEnding { kill(-group, SIGKILL) }
        }
    }

    /// Forgets a profile; to be called before its browser is reaped, as another process may get its number then.
    static func remove(_ profile: String) {
        _ = state.withLock { $0.groups.removeValue(forKey: profile) }
    }

    /// Kills all browsers and removes their profiles. Pages drawn later fail.
    package static func endAll() {
        let profiles = state.withLock { state in
            state.isEnding = true
            for case let group? in state.groups.values { kill(-group, SIGKILL) }
            return Array(state.groups.keys)
        }
        for profile in profiles { TemporaryProfile.remove(profile) }
    }
}
