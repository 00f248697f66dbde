#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
package import VitrineCore

/// A lock between processes that is granted in the order of the requests.
///
/// SQLite polls for its lock with growing pauses, so a process that writes continuously starves the others (420 against
/// 5,048 acknowledged writes were measured). A plain `flock` is granted to the process that runs first after the
/// release, usually the one that released it. Here each process draws a ticket, locks the byte with that number, and
/// waits for the byte before it, so that the kernel wakes exactly the next process. The lock itself is a `flock`,
/// because a process that dies in the queue wakes its successor too early.
///
/// There is one object per process and directory. Threads of a process share it behind a lock of their own. The kernel
/// releases all locks of a dying process.
package final class ProcessLock: Sendable {
    /// The number of the next ticket, and the bytes that stand for tickets.
    private let queue: Int32
    private let lock: Int32
    private let directory: String
    /// The ticket that is held or waited with.
    private let ticket = Locked<Int64?>(nil)

    /// Tickets begin behind the number, and after so many at its start again.
    private static let firstTicket: Int64 = 8
    private static let ticketCount: Int64 = 1 << 40

    // Locks of an open file rather than of a process (fcntl(2)). The headers show the numbers to GNU sources only.
    #if canImport(Darwin)
    private static let setLock: Int32 = 90, setLockWaiting: Int32 = 91
    #else
    private static let setLock: Int32 = 37, setLockWaiting: Int32 = 38
    #endif

    /// Opens the two lock files in a directory, creating them if needed.
    package init(directory: String) throws(FileError) {
        self.directory = directory
        queue = try Self.open(Self.path(directory, "turn"))
        do throws(FileError) {
            lock = try Self.open(Self.path(directory, "lock"))
        } catch {
            close(queue)
            throw error
        }
    }

    deinit {
        close(lock)
        close(queue)
    }

    /// Waits for the lock. Blocks.
    package func acquire() throws(FileError) {
        let mine = try drawTicket()
        do throws(FileError) {
            let before = Self.byte(before: mine)
            try hold(F_WRLCK, before, waiting: true)
            try hold(F_UNLCK, before, waiting: false)
            try take()
        } catch {
            releaseTicket()
            throw error
        }
    }

    package func release() {
        flock(lock, LOCK_UN)
        releaseTicket()
    }

    /// Whether the lock files are still those in the directory. If not, the directory was replaced, and others may
    /// hold locks on other files.
    package var isCurrent: Bool {
        Self.isSame(lock, Self.path(directory, "lock")) && Self.isSame(queue, Self.path(directory, "turn"))
    }

    /// The number of the next ticket, for tests.
    package var nextTicket: Int64 { readNumber() }

    // MARK: Tickets

    private func drawTicket() throws(FileError) -> Int64 {
        try hold(F_WRLCK, 0, waiting: true)
        defer { try? hold(F_UNLCK, 0, waiting: false) }
        let mine = readNumber()
        try hold(F_WRLCK, Self.firstTicket + mine, waiting: true)
        ticket.withLock { $0 = mine }
        var next = ((mine + 1) % Self.ticketCount).littleEndian
        let count = pwrite(queue, &next, 8, 0)
        guard count == 8 else {
            // A short write has no error of its own; it is what a full disk does.
            let code = count < 0 ? errno : ENOSPC
            releaseTicket()
            throw FileError(operation: "pwrite", path: Self.path(directory, "turn"), code: code)
        }
        return mine
    }

    /// A file that is empty or holds nonsense begins anew: numbers only have to differ while they are in use.
    private func readNumber() -> Int64 {
        var number: Int64 = 0
        guard pread(queue, &number, 8, 0) == 8 else { return 0 }
        number = Int64(littleEndian: number)
        return (0..<Self.ticketCount).contains(number) ? number : 0
    }

    private func releaseTicket() {
        let mine = ticket.withLock { ticket -> Int64? in
            defer { ticket = nil }
            return ticket
        }
        if let mine { try? hold(F_UNLCK, Self.firstTicket + mine, waiting: false) }
    }

    private static func byte(before ticket: Int64) -> Int64 {
        firstTicket + (ticket + ticketCount - 1) % ticketCount
    }

    /// Locks or unlocks one byte of the queue, for this open file rather than for the process.
    private func hold(_ kind: Int32, _ byte: Int64, waiting: Bool) throws(FileError) {
        var request = Self.request(kind, byte)
        while fcntl(queue, waiting ? Self.setLockWaiting : Self.setLock, &request) != 0 {
            let code = errno
            guard code == EINTR else {
                throw FileError(operation: "fcntl", path: Self.path(directory, "turn"), code: code)
            }
        }
    }

    private static func request(_ kind: Int32, _ byte: Int64) -> flock {
        var request = flock()
        request.l_type = Int16(truncatingIfNeeded: kind)
        request.l_whence = Int16(truncatingIfNeeded: SEEK_SET)
        request.l_start = off_t(byte)
        request.l_len = 1
        return request
    }

    private func take() throws(FileError) {
        while flock(lock, LOCK_EX) != 0 {
            let code = errno
            guard code == EINTR else { throw FileError(operation: "flock", path: directory, code: code) }
        }
    }

    // MARK: Files

    private static func path(_ directory: String, _ name: String) -> String { "\(directory)/\(name)" }

    private static func open(_ path: String) throws(FileError) -> Int32 {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        // The method hides the function.
        let descriptor = VitrineCore.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw FileError(operation: "open", path: path, code: errno) }
        return descriptor
    }

    private static func isSame(_ descriptor: Int32, _ path: String) -> Bool {
        var mine = stat(), theirs = stat()
        return fstat(descriptor, &mine) == 0 && stat(path, &theirs) == 0
            && mine.st_ino == theirs.st_ino && mine.st_dev == theirs.st_dev
    }
}
