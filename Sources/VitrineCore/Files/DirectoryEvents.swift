#if !canImport(Darwin)
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Watches directories for changes by inotify(7). For use from one thread at a time.
@_spi(Files) public final class DirectoryEvents {
    /// One notification.
    public struct Event {
        /// The number of the watch.
        public var watch: Int32
        /// The kinds of the event, as bits of inotify(7).
        public var mask: UInt32
        /// A number that the two events of one rename share; 0 for other events.
        public var cookie: UInt32
        /// The name in the directory, or empty for the directory itself.
        public var name: String

        /// Creates an event.
        public init(watch: Int32, mask: UInt32, cookie: UInt32 = 0, name: String = "") {
            self.watch = watch
            self.mask = mask
            self.cookie = cookie
            self.name = name
        }

        /// Whether it concerns a directory.
        public var concernsDirectory: Bool { mask & UInt32(IN_ISDIR) != 0 }
        /// Whether the directory is no longer watched: it was deleted or unmounted, or the watch was ended.
        public var isEnd: Bool { mask & UInt32(IN_IGNORED) != 0 }
        /// Whether the directory itself was moved or deleted.
        public var concernsItself: Bool { mask & (UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)) != 0 }
    }

    /// The result of watching one directory.
    public enum Watch {
        /// The directory is watched, under this number.
        case number(Int32)
        /// The system allows no more watches (`fs.inotify.max_user_watches`).
        case limitReached
        /// The directory does not exist, is not a directory, or cannot be read: the `errno`.
        case unavailable(code: Int32)
    }

    /// The kinds of events to report.
    public struct Kinds: OptionSet, Sendable {
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Created, deleted, renamed and written items, and changes of the directory itself.
        public static let contents = Kinds(
            rawValue: UInt32(
                IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF))
        /// Changes of times, permissions and owners.
        public static let attributes = Kinds(rawValue: UInt32(IN_ATTRIB))
    }

    /// Readable when there are events.
    public let descriptor: Int32
    private let maximum: Int
    private let kinds: Kinds
    private var count = 0

    /// Creates a watcher. Returns nil when the system allows no more of them (`fs.inotify.max_user_instances`).
    ///
    /// - Parameters:
    ///   - maximum: The maximum number of watched directories, below the limit of the system.
    ///   - kinds: The kinds of events to report.
    public init?(maximum: Int = .max, kinds: Kinds = [.contents, .attributes]) {
        descriptor = inotify_init1(Int32(O_CLOEXEC | O_NONBLOCK))
        guard descriptor >= 0 else { return nil }
        self.maximum = maximum
        self.kinds = kinds
    }

    deinit { close(descriptor) }

    /// Watches a directory. A directory that is watched already keeps its number.
    public func watch(_ path: String) -> Watch {
        guard count < maximum else { return .limitReached }
        // Events of files without a name are useless for callers that look at names.
        let mask = kinds.rawValue | UInt32(IN_ONLYDIR) | UInt32(IN_EXCL_UNLINK)
        let number = inotify_add_watch(descriptor, path, mask)
        if number >= 0 {
            count += 1
            return .number(number)
        }
        let code = errno
        return code == ENOSPC || code == ENOMEM ? .limitReached : .unavailable(code: code)
    }

    /// Ends a watch. Its last event is ``Event/isEnd``.
    public func end(_ watch: Int32) {
        count -= 1
        inotify_rm_watch(descriptor, watch)
    }

    /// Notes that the system has ended a watch.
    public func noteEnd() { count -= 1 }

    /// Returns the pending events, or nil if some were lost (`IN_Q_OVERFLOW`). Everything then has to be examined
    /// again.
    public func read() -> [Event]? {
        var events: [Event] = []
        var isComplete = true
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 8) { buffer in
            while true {
                let count = systemRead(descriptor, bytes: buffer.baseAddress, count: buffer.count)
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

    /// The size of watch, mask, cookie and length of the name, 4 bytes each.
    private static let headerSize = 16
}

// The method hides the C function.
private func systemRead(_ descriptor: Int32, bytes: UnsafeMutableRawPointer?, count: Int) -> Int {
    read(descriptor, bytes, count)
}
#endif
