import TestSupport
import VitrineCache
import VitrineCore

/// `write DIRECTORY SEED KEYS CAPACITY SIZE [BATCHES]`: follows a ``WritePlan``, until it is killed if no end is given,
/// and reports each flushed batch. Entries are mixed if SIZE is 0.
///
/// `write-formats DIRECTORY SEED KEYS FORMATS`: the same with the formats of a cache, a key in that of its number's
/// remainder; what removes everything removes the first format's entries.
enum Writer {
    static func runFormats(_ arguments: inout ChildArguments) {
        let directory = arguments.text()
        let plan = WritePlan(seed: arguments.number(), keys: arguments.number()), count = arguments.number()
        let cache = ValueCache<[UInt8]>(name: "formats", configuration: CacheConfiguration(root: directory))
        var disks: [DiskCache.Blocking] = []
        for number in 0..<count {
            cache.register(CacheFormat(FormatName("f\(number)")))
            guard let disk = cache.disk(for: FormatName("f\(number)")) else { ChildArguments.refuse("no format") }
            disks.append(disk.blocking)
        }
        do {
            for batch in 0..<Int.max {
                for operation in plan.operations(batch: batch) {
                    switch operation {
                    case .set(let entry):
                        try disks[entry.number % count].set(entry.bytes(plan.sizes), forKey: entry.key)
                    case .remove(let number): disks[number % count].remove(SampleEntry.key(number))
                    case .removeAll: try disks[0].removeAll()
                    }
                }
                for disk in disks { try disk.flush() }
                report("batch", batch)
            }
        } catch {
            report("error", "\(error)")
        }
    }

    static func run(_ arguments: inout ChildArguments) {
        let directory = arguments.text()
        var plan = WritePlan(seed: arguments.number(), keys: arguments.number())
        var configuration = DiskCache.Configuration()
        configuration.capacity = ByteCount(arguments.number())
        let size = arguments.number()
        if size > 0 { plan.sizes = .fixed(size) }
        let batches = arguments.isEmpty ? .max : arguments.number()
        let cache = DiskCache(directory: directory, configuration: configuration).blocking
        do {
            for batch in 0..<batches {
                for operation in plan.operations(batch: batch) {
                    switch operation {
                    case .set(let entry): try cache.set(entry.bytes(plan.sizes), forKey: entry.key)
                    case .remove(let number): cache.remove(SampleEntry.key(number))
                    case .removeAll: try cache.removeAll()
                    }
                }
                try cache.flush()
                report("batch", batch)
            }
        } catch {
            report("error", "\(error)")
        }
    }
}
