#if !canImport(Darwin)
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The kernel's notices of changes in directories (inotify(7)). For use from one thread at a time.
package final class DirectoryEvents {
    /// One notice.
    package struct Event {
        /// The number of the watch.
        package var watch: Int32
        package var mask: UInt32
        /// What the two notices of one renaming have in common; 0 for others.
        package var cookie: UInt32
        /// What in the directory it concerns; empty for the directory itself.
        package var name: String

        package init(watch: Int32, mask: UInt32, cookie: UInt32 = 0, name: String = "") {
            self.watch = watch
            self.mask = mask
            self.cookie = cookie
            self.name = name
        }

        package var concernsDirectory: Bool { mask & UInt32(IN_ISDIR) != 0 }
        /// The directory is no longer watched: deleted, unmounted, or given up.
        package var isEnd: Bool { mask & UInt32(IN_IGNORED) != 0 }
        /// The directory itself was moved or deleted.
        package var concernsItself: Bool { mask & (UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)) != 0 }
    }

    /// What becomes of one directory's watch.
    package enum Watch {
        case number(Int32)
        /// The system allows no more (`fs.inotify.max_user_watches`).
        case limitReached
        /// It is gone, no directory, or must not be read: the `errno`.
        case unavailable(code: Int32)
    }

    /// Which notices are wanted.
    package struct Kinds: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        /// What appears, goes, is renamed or written, and what happens to the directory itself.
        package static let contents = Kinds(
            rawValue: UInt32(
                IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF))
        /// Other times, permissions and owners.
        package static let attributes = Kinds(rawValue: UInt32(IN_ATTRIB))
    }

    /// Readable when there are notices.
    package let descriptor: Int32
    private let maximum: Int
    private let kinds: Kinds
    private var count = 0

    /// nil when the system allows no more watchers (`fs.inotify.max_user_instances`).
    ///
    /// - Parameters:
    ///   - maximum: The most directories to watch, below what the system allows.
    ///   - kinds: Which notices are wanted.
    package init?(maximum: Int = .max, kinds: Kinds = [.contents, .attributes]) {
        descriptor = inotify_init1(Int32(O_CLOEXEC | O_NONBLOCK))
        guard descriptor >= 0 else { return nil }
        self.maximum = maximum
        self.kinds = kinds
    }

    deinit { close(descriptor) }

    /// Watches a directory. One that is watched already keeps its number.
    package func watch(_ path: String) -> Watch {
        guard count < maximum else { return .limitReached }
        // Files that have no name any more are of no interest to anybody who looks at names.
        let mask = kinds.rawValue | UInt32(IN_ONLYDIR) | UInt32(IN_EXCL_UNLINK)
        let number = inotify_add_watch(descriptor, path, mask)
        if number >= 0 {
            count += 1
            return .number(number)
        }
        let code = errno
        return code == ENOSPC || code == ENOMEM ? .limitReached : .unavailable(code: code)
    }

    /// Ends a watch; its last event is ``Event/isEnd``.
    package func end(_ watch: Int32) {
        count -= 1
        inotify_rm_watch(descriptor, watch)
    }

    /// A watch that the system has ended.
    package func noteEnd() { count -= 1 }

    /// The notices that are there; nil if some were lost (`IN_Q_OVERFLOW`), whereupon everything has to be looked at.
    package func read() -> [Event]? {
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
                    let cookie = buffer.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)
                    let length = Int(buffer.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                    let end = min(count, offset + Self.headerSize + length)
                    let name = buffer[(offset + Self.headerSize)..<end].prefix { $0 != 0 }
                    if mask & UInt32(IN_Q_OVERFLOW) != 0 { isComplete = false }
                    let text = PathText.text(of: name)
                    events.append(Event(watch: watch, mask: mask, cookie: cookie, name: text))
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
