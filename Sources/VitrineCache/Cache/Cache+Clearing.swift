import VitrineCore

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
        var failure: CacheError?
        for area in formats.all {
            do throws(CacheError) {
                try await clearDisk(area, clearsMemory: levels.contains(.writeMemory))
            } catch {
                failure = failure ?? error
            }
        }
        for (_, disk) in await unregisteredDisks() {
            do throws(CacheError) {
                try await disk.removeAll()
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// Removes everything of one format (R13). An unknown format is harmless.
    public func removeAll(format: FormatName, levels: CacheLevels = .all) async throws(CacheError) {
        guard let area = formats[format] else { return }
        if levels.contains(.writeMemory) { register.changeAll(format: area.id) { area.clearMemory() } }
        guard levels.contains(.writeDisk) else { return }
        try await clearDisk(area, clearsMemory: levels.contains(.writeMemory))
    }

    /// Gives up all memory, before the call returns (R18). The disk still has what was stored there.
    public func clearMemory() {
        passOnMemoryHits()
        let areas = formats.all
        register.changeAll {
            sharedMemory.removeAll()
            for area in areas where !area.sharesMemory { area.memory.removeAll() }
        }
    }

    private func clearDisk(_ area: FormatArea<Value>, clearsMemory: Bool) async throws(CacheError) {
        area.outbox.drop()
        await area.outbox.settle()
        // Loads that run now do not store, neither those that read the disk before it is emptied.
        register.changeAll(format: area.id) {}
        defer {
            register.changeAll(format: area.id) { if clearsMemory { area.clearMemory() } }
        }
        try await area.disk.removeAll()
    }

    /// The disk levels of formats that have a directory but are not registered here, by the name of the directory.
    func unregisteredDisks() async -> [(name: String, disk: DiskCache)] {
        let known = Set(formats.all.map { FileName.name(for: $0.format.name.rawValue) })
        let names = await configuration.executor.run { [directory] in
            let names = (try? Directory.names(in: directory)) ?? []
            return names.filter { !known.contains($0) && Directory.isDirectory(FilePath.join(directory, $0)) }.sorted()
        }
        return names.map { name in
            // Their capacities are not known here, so none is enforced.
            (
                name,
                DiskCache(
                    directory: FilePath.join(directory, name), configuration: configuration.disk(capacity: .unlimited))
            )
        }
    }
}
