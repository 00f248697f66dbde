import TestSupport
import VitrineCache
import VitrineCore
import VitrineStores

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// `read-full DIRECTORY BALLAST ENTRIES`: reads a cache `cache` and the values in `values` on a disk without any room,
/// then removes the file at BALLAST, and writes.
enum FullDiskReader {
    static func run(_ arguments: inout ChildArguments) {
        let directory = arguments.text(), ballast = arguments.text(), count = arguments.number()
        attempt("cache") {
            let cache = DiskCache(directory: directory + "/cache").blocking
            let intact = try (0..<count).count { number in
                guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else { return false }
                return SampleEntry(intact: bytes, .mixed)?.number == number
            }
            report("entries", intact)
        }
        attempt("values") {
            let store = try KeyValueStore(directory: directory + "/values")
            report("value", try store.value(Int.self, forKey: "number") ?? -1)
            attempt("put") { try store.set(8, forKey: "number").waitUntilCommitted() }
            report("kept", try store.value(Int.self, forKey: "number") ?? -1)
            unlink(ballast)
            attempt("after") { try store.set(9, forKey: "number").waitUntilCommitted() }
            report("written", try store.value(Int.self, forKey: "number") ?? -1)
        }
        attempt("cache-after") {
            let cache = DiskCache(directory: directory + "/cache").blocking
            try cache.set([1, 2, 3], forKey: "new")
            try cache.flush()
            report("new", try cache.bytes(forKey: "new")?.count ?? -1)
        }
    }

    private static func attempt(_ name: String, _ body: () throws -> Void) {
        do {
            try body()
            report(name, "done")
        } catch CacheError.database(let error) {
            report(name, "\(error.reason)")
        } catch StoreError.database(let error) {
            report(name, "\(error.reason)")
        } catch {
            report(name, "\(error)")
        }
    }
}
