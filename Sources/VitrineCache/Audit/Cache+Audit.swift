public import VitrineCore

extension Cache {
    /// Entries are listed so many at a time; between pages others get their turn.
    static var auditPage: Int { 500 }

    /// Looks at every entry of every registered format on disk, and removes those that a policy says no to.
    ///
    /// The cache can be used meanwhile: what is stored after the audit began is not removed by it. Audits of one cache
    /// run one after the other, in the order of the calls, at low priority.
    ///
    /// - Parameters:
    ///   - policy: Which entries go; an array for several.
    ///   - dryRun: Removes nothing and lists what would be.
    ///   - sparesMemory: Whether entries that are in memory, or alive elsewhere, stay whatever the policy says (R56).
    ///   - progress: Called after each page of entries, on any thread.
    /// - Returns: What was done.
    /// - Throws: ``CacheError/database(_:)`` or ``CacheError/file(_:)`` if entries cannot be listed, and a
    ///   ``CacheError/cancelled(key:)`` after the page at hand when the task is cancelled. What was removed until then
    ///   stays removed.
    @discardableResult
    public func audit(
        _ policy: AuditPolicy, dryRun: Bool = false, sparesMemory: Bool = true,
        progress: (@Sendable (AuditProgress) -> Void)? = nil
    ) async throws(CacheError) -> AuditReport {
        let run = AuditRun(
            cache: self, policy: policy, isDryRun: dryRun, sparesMemory: sparesMemory, progress: progress)
        // A task made here would run a page before it learns that nobody wants it.
        if Task.isCancelled { throw AuditRun<Value>.cancelled(after: nil) }
        let task = Task(priority: .utility) { () -> Result<AuditReport, CacheError> in
            do {
                return try await audits.run { await run.result() }
            } catch {
                // Only an audit that has not begun ends here.
                return .failure(AuditRun<Value>.cancelled(after: nil))
            }
        }
        return try await withTaskCancellationHandler { await task.value } onCancel: { task.cancel() }.get()
    }

    /// A page of a format's entries as audits see them, in an order of their own that stays the same.
    ///
    /// - Parameters:
    ///   - format: Whose entries.
    ///   - key: The last key of the page before; nil for the first page.
    ///   - limit: The most entries a page has. Default 1000.
    public func entries(
        of format: FormatName = .original, after key: CacheKey? = nil, limit: Int = 1000
    ) async throws(CacheError) -> [AuditEntry] {
        let area = try area(format)
        passOnMemoryHits()
        await area.outbox.settle()
        return try await page(of: area, after: key, limit: limit)
    }

    func page(
        of area: FormatArea<Value>, after key: CacheKey?, limit: Int
    ) async throws(CacheError) -> [AuditEntry] {
        try await area.disk.entries(after: key, limit: limit).map { info in
            AuditEntry(info, format: area.format.name, isInMemory: area.memory.contains(area.slot(info.key)))
        }
    }
}
