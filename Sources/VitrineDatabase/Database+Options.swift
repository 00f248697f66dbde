extension Database {
    /// How a connection is opened.
    public struct Options: Sendable {
        /// What a power cut may take (https://www.sqlite.org/pragma.html#pragma_synchronous). A killed program loses
        /// nothing in any of them.
        public enum Durability: String, Sendable {
            /// Nothing that was committed: each commit waits for the disk.
            case full = "FULL"
            /// The last commits, never the file's integrity.
            case normal = "NORMAL"
        }

        /// Opens an existing file for reading only. Its directory must allow writing or already hold the log's files,
        /// or the file must be ``isImmutable``.
        public var isReadOnly = false
        /// With ``isReadOnly``: nobody changes the file while it is open, so no lock and no log is looked at. The only
        /// way to read from a read-only directory; what a log beside the file holds is not seen.
        public var isImmutable = false
        /// With whom the file is shared while it is open. See ``DatabaseReader``.
        package var sharing = Sharing.shared
        /// What a power cut may take. Default ``Durability/normal``.
        public var durability = Durability.normal
        /// How much of the file is read through the address space instead of by calls, in bytes; 0 for none. A mapped
        /// file that another program cuts ends this program: only for files nobody else has a reason to touch.
        public var mappedBytes = 0
        /// Pages kept in memory, in bytes. Default 2 MiB.
        public var cacheBytes = 2 << 20
        /// How long to wait for another connection's lock, in milliseconds. Default 5000.
        public var busyMilliseconds: Int32 = 5000

        /// Who else may use the file.
        package enum Sharing: Sendable {
            /// Everybody, by an index of the log in a file that all of them map.
            case shared
            /// Nobody, who is kept out by a lock: the index is in memory. For existing files that may be written.
            case exclusive
            /// Nobody, as the caller finds out by other means: no locks, and the index is in memory. For reading.
            case unlocked
        }

        /// The defaults: reading and writing, normal durability.
        public init() {}
    }
}
