import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Announces the next files of a batch to the system, which reads them while the processors work on the files before.
///
/// The bytes go into the system's page cache, not into this process. Of the files announced and not yet begun, at most
/// ``Limits/files`` and ``Limits/bytes`` are under way. Nothing is announced after ``cancel()`` or deinitialization.
package final class FileReadAhead: Sendable {
    /// How far ahead files are announced.
    package struct Limits: Sendable {
        /// The most files. Default: 16.
        package var files = 16
        /// The most bytes of these files together. Default: 32 MiB.
        package var bytes = 32 << 20
        /// The most bytes of one file, from its start. The system reads ahead by itself once a file is being read.
        /// Default: 4 MiB.
        package var bytesPerFile = 4 << 20

        package init() {}
    }

    private struct State {
        /// The number of files whose work has begun.
        var begun = 0
        /// The number of files that were announced or passed over.
        var announced = 0
        /// The announced bytes of each file that has not begun, by its number.
        var pending: [Int: Int] = [:]
        var bytes = 0
        var isCancelled = false
    }

    private let paths: [String?]
    private let limits: Limits
    private let announce: @Sendable (_ path: String, _ most: Int) -> Int
    private let state = Locked(State())
    /// One thread: opening a file of a network may block.
    private let executor = BlockingExecutor(threads: 1, name: "vitrine-ahead")

    /// - Parameters:
    ///   - paths: The files in the order of the work; nil for an input that is no file.
    ///   - limits: How far ahead files are announced.
    ///   - announce: Announces the first bytes of a file, at most the given number. Returns their number, 0 for none.
    package init(
        _ paths: [String?], limits: Limits = Limits(),
        announce: @escaping @Sendable (_ path: String, _ most: Int) -> Int = FileReadAhead.adviseSystem
    ) {
        self.paths = paths
        self.limits = limits
        self.announce = announce
    }

    deinit { cancel() }

    /// Notes that the work on a file begins, and announces files behind it. Returns at once.
    package func begin(_ number: Int) {
        let isDue = state.withLock { state in
            guard !state.isCancelled else { return false }
            state.begun = max(state.begun, number + 1)
            state.announced = max(state.announced, state.begun)
            if let bytes = state.pending.removeValue(forKey: number) { state.bytes -= bytes }
            return state.announced < paths.count
        }
        if isDue { executor.submit { [weak self] in self?.announceNext() } }
    }

    /// Announces no more files.
    package func cancel() {
        state.withLock { $0.isCancelled = true }
    }

    private func announceNext() {
        while let number = next() {
            guard let path = paths[number] else { continue }
            let bytes = announce(path, min(limits.bytesPerFile, limits.bytes))
            state.withLock { state in
                // The work has overtaken it.
                guard bytes > 0, number >= state.begun else { return }
                state.pending[number] = bytes
                state.bytes += bytes
            }
        }
    }

    /// Takes the number of the next file to announce; nil when a limit is reached.
    private func next() -> Int? {
        state.withLock { state in
            guard !state.isCancelled, state.announced < paths.count, state.announced < state.begun + limits.files,
                state.bytes + limits.bytesPerFile <= max(limits.bytes, limits.bytesPerFile)
            else { return nil }
            defer { state.announced += 1 }
            return state.announced
        }
    }

    /// Asks the system to read the start of a regular file. Does not wait for the bytes.
    @Sendable package static func adviseSystem(_ path: String, _ most: Int) -> Int {
        var status = stat()
        // A pipe or a device must not be opened before its turn.
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0,
            let file = try? FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY)
        else { return 0 }
        let count = min(most, Int(clamping: status.st_size))
        #if canImport(Darwin)
        var advice = radvisory(ra_offset: 0, ra_count: Int32(clamping: count))
        return fcntl(file.number, F_RDADVISE, &advice) == 0 ? count : 0
        #else
        return posix_fadvise(file.number, 0, count, POSIX_FADV_WILLNEED) == 0 ? count : 0
        #endif
    }
}
