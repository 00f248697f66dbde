import Synchronization
import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Detects that the files of an open database were cut or deleted, before SQLite reads them through the address space.
/// Reading a missing part would end the process (SIGBUS).
///
/// Closing a descriptor of a file releases all POSIX locks of the process on it, including SQLite's (fcntl(2)). So the
/// descriptors are shared by all watches of a file in the process, and closed with the last watch. A watch is created
/// before a connection is opened and kept until it is closed.
final class FileWatch: Sendable {
    /// The state of the files.
    enum State {
        case intact
        /// The file is no longer in any directory.
        case deleted
        /// Something was cut off.
        case cut
    }

    /// The descriptors of one file.
    private struct Shared {
        var descriptor: Int32
        var users: Int
        var indexes: [Int32] = []
    }

    private static let registry = Locked<[InodeIdentity: Shared]>([:])

    let path: String
    private let identity: InodeIdentity
    /// One of the database's file, open as long as this object exists.
    let descriptor: Int32
    private let index = Atomic<Int32>(-1)
    private let size = Atomic<Int>(0)
    private let indexSize = Atomic<Int>(0)

    /// Takes a watch of a database file, creating the file if it is missing.
    init(path: String, isReadOnly: Bool) throws(FileError) {
        self.path = path
        let taken = Self.registry.withLock { registry -> Result<(InodeIdentity, Int32), FileError> in
            var status = stat()
            if stat(path, &status) == 0, registry[InodeIdentity(status)] != nil {
                registry[InodeIdentity(status)]?.users += 1
                return .success((InodeIdentity(status), registry[InodeIdentity(status)]?.descriptor ?? -1))
            }
            let flags = isReadOnly ? O_RDONLY : O_RDWR | O_CREAT
            let descriptor = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
                return .failure(FileError(operation: "open", path: path, code: errno))
            }
            // Another thread of this process cannot have opened it since: watches are taken under this lock.
            registry[InodeIdentity(status), default: Shared(descriptor: descriptor, users: 0)].users += 1
            return .success((InodeIdentity(status), descriptor))
        }
        (identity, descriptor) = try taken.get()
    }

    deinit {
        Self.registry.withLock { registry in
            guard var shared = registry[identity] else { return }
            shared.users -= 1
            guard shared.users == 0 else {
                registry[identity] = shared
                return
            }
            registry[identity] = nil
            close(shared.descriptor)
            for index in shared.indexes { close(index) }
        }
    }

    /// Whether the shared index is watched.
    var hasIndex: Bool { index.load(ordering: .acquiring) >= 0 }

    /// Also watches the shared index, which SQLite has made by now.
    func watchIndex() {
        let path = path + "-shm"
        let found = Self.registry.withLock { registry -> Int32 in
            var status = stat(), known = stat()
            guard stat(path, &status) == 0, var shared = registry[identity] else { return -1 }
            for index in shared.indexes where fstat(index, &known) == 0 && InodeIdentity(known) == InodeIdentity(status) {
                return index
            }
            let index = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard index >= 0 else { return -1 }
            shared.indexes.append(index)
            registry[identity] = shared
            return index
        }
        index.store(found, ordering: .releasing)
    }

    /// Returns whether the file has the header of this format or is empty. A connection with cached pages does not
    /// notice a destroyed header, and its later writes would be lost.
    var hasHeader: Bool {
        var found = [UInt8](repeating: 0, count: Self.magic.count)
        let count = found.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        return count < found.count || found == Self.magic
    }

    /// "SQLite format 3", pages of 4096 bytes, a write-ahead log, nothing reserved, and three constants
    /// (https://www.sqlite.org/fileformat2.html, 1.3).
    private static let magic = Array("SQLite format 3\0".utf8) + [0x10, 0, 2, 2, 0, 64, 32, 32]

    /// The size of the log's file in bytes. The file keeps its size when the log begins anew.
    var logFileSize: Int {
        var status = stat()
        return stat(path + "-wal", &status) == 0 ? Int(status.st_size) : 0
    }

    /// Checks the files with two fstat calls. A cut file is extended with zeros again, so that mapped pages can be
    /// read. Zeros are not valid pages.
    func check() -> State {
        switch Self.look(descriptor, size) {
        case .intact: break
        case let state: return state
        }
        let index = index.load(ordering: .acquiring)
        guard index >= 0 else { return .intact }
        switch Self.look(index, indexSize) {
        case .intact: return .intact
        case .deleted: return .deleted
        case .cut:
            // Without a valid header SQLite rebuilds the index from the log (https://www.sqlite.org/walformat.html,
            // 2.2): two copies of 48 bytes, and 40 about checkpoints and readers.
            let zeros = [UInt8](repeating: 0, count: 136)
            _ = zeros.withUnsafeBytes { pwrite(index, $0.baseAddress, $0.count, 0) }
            return .intact
        }
    }

    private static func look(_ descriptor: Int32, _ known: borrowing Atomic<Int>) -> State {
        // Before the file is looked at: it only ever grows, so what was seen earlier is a lower bound.
        let largest = known.load(ordering: .acquiring)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_nlink > 0 else { return .deleted }
        let size = Int(status.st_size)
        if size > largest { known.max(size, ordering: .acquiringAndReleasing) }
        guard size < largest else { return .intact }
        #if canImport(Darwin)
        _ = ftruncate(descriptor, off_t(largest))
        #else
        // Unlike ftruncate it cannot cut what has grown meanwhile.
        _ = posix_fallocate(descriptor, 0, off_t(largest))
        #endif
        return .cut
    }
}
