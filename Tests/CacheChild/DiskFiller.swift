import TestSupport
import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// `fill-disk DIRECTORY BALLAST ENTRIES`: writes more than the file system holds, then removes the file at BALLAST,
/// which frees some of it, and writes again.
enum DiskFiller {
    static func run(_ arguments: inout ChildArguments) {
        let directory = arguments.text(), ballast = arguments.text(), count = arguments.number()
        let cache = DiskCache(directory: directory).blocking
        var failures: [String: Int] = [:]
        for number in 0..<count {
            let entry = SampleEntry(number: number, version: 1)
            do {
                try cache.set(entry.bytes(.mixed), forKey: entry.key)
                if number % 8 == 7 { try cache.flush() }
            } catch {
                failures[name(of: error), default: 0] += 1
            }
        }
        for (name, count) in failures { report("failure-\(name)", count) }
        report("refusals", failures.values.reduce(0, +))
        check(cache, count, "full")
        unlink(ballast)
        do {
            for number in count..<count + 8 {
                try cache.set(SampleEntry(number: number, version: 1).bytes(.tiny), forKey: SampleEntry.key(number))
            }
            try cache.flush()
            let kept = try (count..<count + 8).filter { try cache.contains(SampleEntry.key($0)) }
            report("written-after", kept.count)
        } catch {
            report("error", "\(error)")
        }
        check(cache, count, "after")
    }

    /// Reports how many entries there are and how many are not what was written.
    private static func check(_ cache: DiskCache.Blocking, _ count: Int, _ label: String) {
        var intact = 0, wrong = 0
        for number in 0..<count {
            do {
                guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else { continue }
                if SampleEntry(intact: bytes, .mixed)?.number == number { intact += 1 } else { wrong += 1 }
            } catch {
                report("error", "\(error)")
            }
        }
        report("intact-\(label)", intact)
        report("wrong-\(label)", wrong)
    }
}
