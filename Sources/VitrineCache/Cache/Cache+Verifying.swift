extension Cache {
    /// Reads every entry of a format on disk again.
    ///
    /// - Parameters:
    ///   - format: Whose entries.
    ///   - removingDamage: Whether damaged entries, and files that belong to none, are removed.
    /// - Returns: What was found.
    /// - Throws: ``CacheError/formatNotFound(_:)``, or why the disk could not be read.
    @discardableResult
    public func verify(
        _ format: FormatName = .original, removingDamage: Bool
    ) async throws(CacheError) -> DiskCache.VerifyReport {
        let area = try area(format)
        await area.outbox.settle()
        return try await area.disk.verify(removingDamage: removingDamage)
    }

    /// How many entries a format has on disk, after pending writes.
    ///
    /// - Throws: ``CacheError/formatNotFound(_:)``, or why the disk could not be read.
    public func count(of format: FormatName = .original) async throws(CacheError) -> Int {
        let area = try area(format)
        await area.outbox.settle()
        return try await area.disk.count
    }
}
