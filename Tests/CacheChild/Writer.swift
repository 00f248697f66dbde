import TestSupport
import VitrineCache
import VitrineCore

/// `write DIRECTORY SEED KEYS CAPACITY SIZE [BATCHES]`: follows a ``WritePlan``, until it is killed if no end is given,
/// and reports each flushed batch. Entries are mixed if SIZE is 0.
enum Writer {
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
