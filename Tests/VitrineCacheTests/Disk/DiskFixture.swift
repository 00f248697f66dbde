import Foundation
import TestSupport
import VitrineCache
import VitrineCore

/// A disk cache in a directory of its own, with a clock that stands still.
final class DiskFixture: Sendable {
    let directory: TemporaryDirectory
    let time = ManualClock()
    private let offset = Locked(Duration.seconds(1_000_000))

    init() throws { directory = try TemporaryDirectory() }

    var path: String { directory.file("cache") }

    var clock: WallClock {
        WallClock { [self] in offset.withLock { $0 } }
    }

    /// Moves the clock, also backwards.
    func advance(_ duration: Duration) { offset.withLock { $0 += duration } }

    var now: Duration { offset.withLock { $0 } }

    func cache(_ change: (inout DiskCache.Configuration) -> Void = { _ in }) -> DiskCache {
        var configuration = DiskCache.Configuration()
        configuration.clock = clock
        change(&configuration)
        return DiskCache(directory: path, configuration: configuration)
    }

    /// The generation's directory.
    var generation: String { path + "/v3/current" }
    var database: String { generation + "/cache.sqlite" }

    /// All files below the cache that hold entries, sorted.
    var files: [String] {
        let names = FileManager.default.enumerator(atPath: path + "/v3")?.compactMap { $0 as? String } ?? []
        return names.map { path + "/v3/" + $0 }.sorted()
    }

    static func bytes(_ count: Int, seed: Int = 1) -> [UInt8] {
        var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
        return (0..<count).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 32)
        }
    }

    static func charge(_ bytes: Int, _ key: CacheKey) -> Int {
        bytes + key.identity.utf8.count + DiskCache.entryOverhead
    }
}
