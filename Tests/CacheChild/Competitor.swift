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

/// `compete DIRECTORY SEED KEYS CAPACITY MILLISECONDS`: waits for its standard input to end, then writes, reads and
/// removes what others write, read and remove at the same time. A turn is one flushed write.
enum Competitor {
    /// On a machine that has little time for it, a child goes on until it has had so many turns.
    private static let fewest = 40

    static func run(_ arguments: inout ChildArguments) {
        let directory = arguments.text()
        var random = SeededGenerator(UInt64(arguments.number()))
        let keys = arguments.number()
        var configuration = DiskCache.Configuration()
        configuration.capacity = ByteCount(arguments.number())
        let duration = arguments.number()
        let cache = DiskCache(directory: directory, configuration: configuration).blocking
        var turns = 0, hits = 0, wrong = 0
        do {
            _ = try cache.bytes(forKey: SampleEntry.key(0))
            report("ready", 1)
            var byte: UInt8 = 0
            while read(0, &byte, 1) > 0 {}
            let end = milliseconds() + duration
            while turns < fewest || milliseconds() < end {
                let number = Int.random(in: 0..<keys, using: &random)
                let entry = SampleEntry(number: number, version: Int.random(in: 0..<1 << 40, using: &random))
                try cache.set(entry.bytes(.mixed), forKey: entry.key)
                if turns % 16 == 7 { cache.remove(SampleEntry.key(Int.random(in: 0..<keys, using: &random))) }
                try cache.flush()
                turns += 1
                for _ in 0..<4 {
                    let number = Int.random(in: 0..<keys, using: &random)
                    guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else { continue }
                    if SampleEntry(intact: bytes, .mixed)?.number == number { hits += 1 } else { wrong += 1 }
                }
            }
        } catch {
            report("error", "\(error)")
        }
        report("turns", turns)
        report("hits", hits)
        report("wrong", wrong)
    }
}
