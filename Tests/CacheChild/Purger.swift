import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// `purge DIRECTORY ENTRIES SIZE`: stores entries with the tag "t" and as many without it, reports that, and removes
/// the tag.
enum Purger {
    static func run(_ arguments: inout ChildArguments) {
        let directory = arguments.text(), count = arguments.number(), size = arguments.number()
        let cache = DiskCache(directory: directory).blocking
        do {
            for number in 0..<count {
                let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size)
                try cache.set(bytes, forKey: CacheKey("tagged-\(number)"), tags: ["t", "n\(number)"])
                try cache.set([1], forKey: CacheKey("plain-\(number)"))
            }
            try cache.flush()
            report("filled", count)
            report("removed", try cache.removeAll(tag: "t"))
        } catch {
            report("error", "\(error)")
        }
    }
}

/// `load-tagged DIRECTORY`: loads a value with the tag "t" into the cache "shared", which takes until the standard
/// input ends, and reports where it is then.
enum TaggedLoader {
    static func run(_ arguments: inout ChildArguments) async {
        let cache = ValueCache<String>(name: "shared", configuration: CacheConfiguration(root: arguments.text()))
        do {
            let value = try await cache.value(forKey: "lake", tags: ["t"]) {
                report("loading", 1)
                await BlockingExecutor.shared.run {
                    var byte: UInt8 = 0
                    while read(0, &byte, 1) > 0 {}
                }
                return "water"
            }
            report("value", value)
            try await cache.flush()
            report("depth", "\(await cache.depth(of: "lake"))")
        } catch {
            report("error", "\(error)")
        }
    }
}
