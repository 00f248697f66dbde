import Logging
import Synchronization
import VitrineCore

/// The registered formats of a disk engine with their limits, and the counters and sizes of all formats.
final class FormatRegistry: Sendable {
    /// The most bytes all formats may count together.
    enum Total {
        case exactly(Int)
        /// This, and as much as any one format may count.
        case atLeast(Int)
    }

    /// The counters of operations without a registered format.
    let counters = Counters()
    /// The size of all formats.
    let sizes = SizeBroadcast()
    private let total: Locked<Total>
    private let limit: Atomic<Int>
    private let formats = Locked<[Int64: DiskFormat]>([:])
    private let log: Logger

    init(total: Total, log: Logger) {
        self.total = Locked(total)
        limit = Atomic(Self.limit(total, []))
        self.log = log
    }

    /// The formats that are registered.
    var all: [DiskFormat] { formats.withLock { Array($0.values) } }

    /// Returns the registered format with a number.
    func format(_ id: Int64) -> DiskFormat? { formats.withLock { $0[id] } }

    /// Adds a format, replacing one with the same name.
    func add(_ format: DiskFormat) {
        formats.withLock { $0[format.id] = format }
        updateTotal()
    }

    /// Removes a format. The total stays until the next change, because queued writes are still written.
    func remove(_ format: DiskFormat) {
        formats.withLock { formats in
            if formats[format.id] === format { formats[format.id] = nil }
        }
    }

    // MARK: Limits

    /// The most bytes all formats may count together.
    var totalLimit: Int { limit.load(ordering: .relaxed) }

    /// Sets the most bytes that all formats may count together.
    func setTotalLimit(_ bytes: Int) {
        total.withLock { $0 = .exactly(bytes) }
        updateTotal()
    }

    /// Follows a change of the formats or of their limits.
    func updateTotal() {
        // One at a time, so that the last one has seen all changes.
        total.withLock { limit.store(Self.limit($0, all), ordering: .relaxed) }
    }

    private static func limit(_ total: Total, _ formats: [DiskFormat]) -> Int {
        switch total {
        case .exactly(let bytes): bytes
        case .atLeast(let bytes): formats.reduce(bytes) { max($0, $1.limit.load(ordering: .relaxed)) }
        }
    }

    // MARK: Changes

    /// Adds the counters of a writer and publishes the sizes.
    func publishChanges(of writer: DiskWriter) {
        var refusals = 0
        for (id, statistics) in writer.entries.takeStatistics() {
            refusals += statistics.refusals
            (format(id)?.counters ?? counters).add { $0.add(statistics) }
        }
        for (id, bytes) in writer.accounts.takeSizes() { format(id)?.sizes.send(bytes) }
        sizes.send(writer.accounts.totals.bytes)
        if refusals > 0 {
            log.notice("disk cache refused entries larger than its capacity", metadata: ["count": "\(refusals)"])
        }
    }

    /// Publishes that nothing is stored any more.
    func publishRemovalOfAll() {
        sizes.send(0)
        for format in all { format.sizes.send(0) }
    }
}

/// The size limits of a cache.
struct Limits {
    /// All of them.
    var total: Int
    /// Those of the registered formats.
    var formats: [(id: Int64, bytes: Int)] = []

    init(total: Int) { self.total = total }

    init(_ registry: FormatRegistry) {
        total = registry.totalLimit
        formats = registry.all.map { ($0.id, $0.limit.load(ordering: .relaxed)) }
    }
}
