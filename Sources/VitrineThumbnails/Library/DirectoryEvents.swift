#if !canImport(Darwin)
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The kernel's notices of changes in directories (inotify(7)). For use from one thread.
final class DirectoryEvents {
    /// One notice.
    struct Event {
        /// The number of the watch.
        var watch: Int32
        var mask: UInt32
        /// What in the directory it concerns; empty for the directory itself.
        var name: String

        var concernsDirectory: Bool { mask & UInt32(IN_ISDIR) != 0 }
        /// The directory is no longer watched: deleted, unmounted, or given up.
        var isEnd: Bool { mask & UInt32(IN_IGNORED) != 0 }
        /// The directory itself was moved or deleted.
        var concernsItself: Bool { mask & (UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)) != 0 }
    }

    /// What becomes of one directory's watch.
    enum Watch {
        case number(Int32)
        /// The system allows no more (`fs.inotify.max_user_watches`).
        case limitReached
        /// It is gone, or must not be read.
        case none
    }

    let descriptor: Int32
    private let maximum: Int
    private var count = 0

    /// nil when the system allows no more watchers (`fs.inotify.max_user_instances`).
    ///
    /// - Parameter maximum: The most directories to watch, below what the system allows.
    init?(maximum: Int) {
        descriptor = inotify_init1(Int32(O_CLOEXEC | O_NONBLOCK))
        guard descriptor >= 0 else { return nil }
        self.maximum = maximum
    }

    deinit { close(descriptor) }

    /// Watches what appears in, goes from or is written in a directory.
    func watch(_ path: String) -> Watch {
        guard count < maximum else { return .limitReached }
        let mask = IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF
            | IN_MOVE_SELF | Int32(IN_ONLYDIR)
        let number = inotify_add_watch(descriptor, path, UInt32(mask))
        if number >= 0 {
            count += 1
            return .number(number)
        }
        return errno == ENOSPC || errno == ENOMEM ? .limitReached : .none
    }

    /// Ends a watch; its last event is ``Event/isEnd``.
    func end(_ watch: Int32) {
        count -= 1
        inotify_rm_watch(descriptor, watch)
    }

    /// A watch that the system has ended.
    func noteEnd() { count -= 1 }

    /// The notices that are there; nil if some were lost (`IN_Q_OVERFLOW`), whereupon everything has to be looked at.
    func read() -> [Event]? {
        var events: [Event] = []
        var isComplete = true
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 8) { buffer in
            while true {
                let count = systemRead(descriptor, buffer.baseAddress, buffer.count)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return }
                var offset = 0
                while offset + Self.headerSize <= count {
                    let watch = buffer.loadUnaligned(fromByteOffset: offset, as: Int32.self)
                    let mask = buffer.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                    let length = Int(buffer.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                    let end = min(count, offset + Self.headerSize + length)
                    let name = buffer[(offset + Self.headerSize)..<end].prefix { $0 != 0 }
                    if mask & UInt32(IN_Q_OVERFLOW) != 0 { isComplete = false }
                    events.append(Event(watch: watch, mask: mask, name: String(decoding: name, as: UTF8.self)))
                    offset += Self.headerSize + length
                }
            }
        }
        return isComplete ? events : nil
    }

    /// Watch, mask, cookie and length of the name, 4 bytes each.
    private static let headerSize = 16
}

// The method hides the C function.
private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(descriptor, bytes, count)
}
#endif
