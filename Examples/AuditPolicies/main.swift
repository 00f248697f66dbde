// Which entries an audit removes: by age, by use, by size, by a list of keys to keep, or by a custom rule.
import Foundation
import Synchronization
import Vitrine
import VitrineCompatibility

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-audit-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

let day = Duration.seconds(86_400)

/// The time of the example, which moves only by assignment.
enum ExampleTime { static let now = Mutex(Duration.seconds(86_400) * 20_000) }

var configuration = CacheConfiguration(root: directory)
configuration.clock = WallClock { ExampleTime.now.withLock { $0 } }
let cache = ValueCache<Data>(name: "letters", configuration: configuration)

func names(_ entries: [AuditEntry]) -> String { entries.map(\.key.description).sorted().joined(separator: " ") }

for name in ["january", "february", "march", "april"] {
    try await cache.set(Data(count: 10_000), forKey: CacheKey(name))
    ExampleTime.now.withLock { $0 += day * 30 }
}
try await cache.flush()
cache.clearMemory()
_ = try await cache.value(forKey: "january")
cache.clearMemory()
print("stored:", names(try await cache.entries()))

// A dry run removes nothing.
let rehearsal = try await cache.audit(.olderThan(day * 80), dryRun: true)
print("older than 80 days:", names(rehearsal.entries))

// January is old, but was read today.
try await cache.audit(.notAccessed(for: day * 80))
print("after .notAccessed:", names(try await cache.entries()))

// Entries in memory are kept unless the policy includes them.
try await cache.set(Data(count: 5_000), forKey: "draft")
let spared = try await cache.audit(.custom(keeps: { $0.key == "april" }))
print("after .custom:", names(try await cache.entries()), "- spared:", spared.spared)

let list = RetainSet(of: cache)
list.preserve("draft")
try await list.commit(sparesMemory: false)
print("after a list of what to keep:", names(try await cache.entries()))

for number in 1...5 {
    try await cache.set(Data(count: 5_000), forKey: CacheKey("note \(number)"))
    ExampleTime.now.withLock { $0 += day }
}
try await cache.flush()
try await cache.audit([.expired, .shrinking(to: ByteCount(12_000))], sparesMemory: false)
print("after .shrinking:", names(try await cache.entries()))
