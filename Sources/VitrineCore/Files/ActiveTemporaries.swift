import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The temporary files that this process is writing, for programs that remove them before a signal ends the process.
///
/// A process that is killed leaves its temporary files to the next writer in the same directory. That is enough for
/// caches and stores, but not for a command that writes into a user's directories. Only such a command calls
/// ``track()``.
package enum ActiveTemporaries {
    private struct State {
        var isEnding = false
        var paths: Set<String> = []
    }

    private static let isTracking = Atomic(false)
    private static let state = Locked(State())

    /// Notes temporary files from now on.
    package static func track() {
        isTracking.store(true, ordering: .releasing)
    }

    /// Removes the temporary files, and lets no more be made. For a process that is about to end.
    package static func removeAll() {
        let paths = state.withLock { state in
            state.isEnding = true
            return state.paths
        }
        for path in paths { unlink(path) }
    }

    /// Makes a file and notes its path. Under the lock, as otherwise a file could appear just after ``removeAll()``.
    static func create(_ path: String) throws(FileError) -> FileDescriptor {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
        guard isTracking.load(ordering: .acquiring) else { return try FileDescriptor(opening: path, flags: flags) }
        return try state.withLock { state throws(FileError) in
            if state.isEnding { throw .cancelled(path: path) }
            let file = try FileDescriptor(opening: path, flags: flags)
            state.paths.insert(path)
            return file
        }
    }

    /// Forgets a file that was removed, or that got its name.
    static func forget(_ path: String) {
        guard isTracking.load(ordering: .acquiring) else { return }
        _ = state.withLock { $0.paths.remove(path) }
    }
}
