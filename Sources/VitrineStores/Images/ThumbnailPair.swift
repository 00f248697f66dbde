import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What keeps a picture and its thumbnail together.
///
/// No file system renames two files in one step, so both carry the same time of change, which no other version of the
/// picture has: a thumbnail that has another one belongs to another version and is not used. That needs no journal, and
/// also notices pictures that are edited by others.
enum ThumbnailPair {
    /// When a file was changed; nil if there is none.
    static func modified(_ path: String) -> Duration? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return .seconds(Int64(status.modified.tv_sec)) + .nanoseconds(Int64(status.modified.tv_nsec))
    }

    /// Whether both are there and belong together.
    static func isPair(_ original: String, _ thumbnail: String) -> Bool {
        guard let time = modified(original) else { return false }
        return modified(thumbnail) == time
    }

    /// Calls a body while no other process or thread changes pairs of the store. Without a directory for thumbnails
    /// there are none.
    static func whileLocked<R>(
        _ store: ImageStore, _ body: () throws(StoreError) -> R
    ) throws(StoreError) -> R {
        guard let directory = try? FileDescriptor(opening: store.thumbnails.directory, flags: O_RDONLY | O_DIRECTORY)
        else { return try body() }
        while flock(directory.number, LOCK_EX) != 0 {
            // Some network file systems have no locks: two writers of one name may then cost a thumbnail.
            guard errno == EINTR else { break }
        }
        // Released when the descriptor goes.
        return try body()
    }
}
