public import VitrineCore

extension Cache {
    /// Removes everything, also what formats that are not registered in this process left (R12). The cache is usable
    /// at once; loads that began before do not put anything back.
    ///
    /// - Parameter levels: Which levels to clear, by their write bits: `.memory` alone is immediate and gives all
    ///   memory up, at any time or when the program goes to the background (R13, R18).
    /// - Throws: Why the disk could not be cleared; the rest is.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        if levels.contains(.writeMemory) { clearMemory() }
        guard levels.contains(.writeDisk) else { return }
        let areas = formats.all
        for area in areas {
            area.outbox.drop()
            await area.outbox.settle()
        }
        // Loads that run now do not store, neither those that read the disk before it is emptied.
        register.changeAll {}
        defer {
            _ = register.changeAll { levels.contains(.writeMemory) ? takeMemory(of: areas) : [] }
        }
        try await onDisk { (disk) throws(CacheError) in try disk.removeAll() }
    }

    /// Removes everything of one format (R13). An unknown format is harmless.
    public func removeAll(format: FormatName, levels: CacheLevels = .all) async throws(CacheError) {
        guard let area = formats[format] else { return }
        if levels.contains(.writeMemory) { _ = register.changeAll(format: area.id) { area.takeMemory() } }
        guard levels.contains(.writeDisk) else { return }
        try await clearDisk(area, clearsMemory: levels.contains(.writeMemory))
    }

    /// Gives up all memory, before the call returns (R18). The disk still has what was stored there.
    public func clearMemory() {
        passOnMemoryHits()
        let areas = formats.all
        _ = register.changeAll { takeMemory(of: areas) }
    }

    /// Empties the memory of formats, and gives what it held: to be released outside of all locks.
    private func takeMemory(of areas: [FormatArea<Value>]) -> [DepartedEntries<MemoryKey, Value>] {
        [sharedMemory.takeAll()] + areas.filter { !$0.sharesMemory }.map { $0.memory.takeAll() }
    }

    private func clearDisk(_ area: FormatArea<Value>, clearsMemory: Bool) async throws(CacheError) {
        area.outbox.drop()
        await area.outbox.settle()
        // Loads that run now do not store, neither those that read the disk before it is emptied.
        register.changeAll(format: area.id) {}
        defer {
            _ = register.changeAll(format: area.id) { clearsMemory ? area.takeMemory() : nil }
        }
        try await area.disk.removeAll()
    }

    /// Changes the capacity of all formats on disk together (``CacheConfiguration/totalDiskCapacity``), and evicts at
    /// once until the entries fit.
    ///
    /// - Throws: Why the disk could not be changed.
    public func setTotalDiskCapacity(_ capacity: ByteCount) async throws(CacheError) {
        try await onDisk { (disk) throws(CacheError) in try disk.setTotal(capacity) }
    }

    /// The most bytes that the entries of all formats may count on disk together.
    public var totalDiskCapacity: ByteCount { ByteCount(disk.totalLimit) }

    /// Uses the disk level on a thread that may block.
    func onDisk<Result: Sendable>(
        _ body: @escaping @Sendable (DiskEngine) throws(CacheError) -> Result
    ) async throws(CacheError) -> Result {
        let disk = disk
        return try await BlockingExecutor.shared.run { () throws(CacheError) in try body(disk) }
    }
}
