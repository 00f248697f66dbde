#if os(Linux)
import Glibc
import TestSupport
import VitrineCache
import VitrineCore
import VitrineStores

/// `read-only-moment DIRECTORY`: uses a cache and values on a file system that must not be written, then makes it one
/// that may be, and goes on with the same objects.
enum ReadOnlyMoment {
    static func run(_ arguments: inout ChildArguments) {
        let directory = arguments.text()
        let cache = DiskCache(directory: directory + "/cache").blocking
        report("found", ((try? cache.bytes(forKey: "old")) ?? nil)?.count ?? -1)
        report("refused", attempt { try set([1, 2], in: cache) })
        report("refused-opening", attempt { _ = try KeyValueStore(directory: directory + "/values") })
        // In the namespace of this process.
        guard mount(nil, directory, nil, UInt(MS_REMOUNT | MS_BIND), nil) == 0 else {
            ChildArguments.refuse("cannot mount")
        }
        report("set", attempt { try set([1, 2, 3], in: cache) })
        report("got", ((try? cache.bytes(forKey: "new")) ?? nil)?.count ?? -1)
        report(
            "values",
            attempt {
                let store = try KeyValueStore(directory: directory + "/values")
                try store.set(7, forKey: "number").waitUntilCommitted()
            })
    }

    private static func set(_ bytes: [UInt8], in cache: DiskCache.Blocking) throws {
        try cache.set(bytes, forKey: "new")
        try cache.flush()
    }

    private static func attempt(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "done"
        } catch {
            return "failed: \(error)"
        }
    }
}
#endif
