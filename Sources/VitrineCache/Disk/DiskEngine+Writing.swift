import VitrineCore
import VitrineDatabase

/// Changes: made into operations by callers, applied by the writing thread.
extension DiskEngine {
    /// The operation that stores an entry.
    ///
    /// - Throws: If nothing can be written.
    func put(
        _ body: Body, in format: DiskFormat, timeToLive: Duration?, validator: [UInt8], tags: EntryTags
    ) throws(CacheError) -> Operation {
        if isReadOnly { throw readOnlyError }
        // It would be refused when its turn comes, and be readable until then.
        if format.limit.load(ordering: .relaxed) == 0 || formats.totalLimit == 0 {
            format.counters.add { $0.refusals += 1 }
            return .remove
        }
        let now = now
        let life = (timeToLive ?? format.timeToLive)?.nanosecondsClamped
        return .put(Put(body: body, created: now, expires: life.map { now &+ $0 }, validator: validator, tags: tags))
    }

    private var readOnlyError: CacheError { .file(.notPermitted(path: layout.directory, code: 30)) }

    /// The operation that lets an entry's time pass.
    func expiring() -> Operation { .patch(Patch(expires: .some(now))) }

    /// The operation that gives an entry a new lifetime.
    func renewing(_ timeToLive: Duration?, in format: DiskFormat) -> Operation {
        let now = now
        let life = (timeToLive ?? format.timeToLive)?.nanosecondsClamped
        return .patch(Patch(created: now, expires: .some(life.map { now &+ $0 })))
    }

    // MARK: On the writing thread

    /// Writes a batch. Entries that cannot be written are dropped, logged and reported by the next flush.
    func write(_ batch: [(key: EntryKey, operation: Operation)]) {
        encode(batch)
        var steps: [DiskWriter.Step] = []
        steps.reserveCapacity(batch.count)
        for (key, operation) in batch {
            guard case .put(let put) = operation else {
                steps.append(DiskWriter.Step(key: key, operation: operation, bytes: []))
                continue
            }
            do {
                steps.append(DiskWriter.Step(key: key, operation: operation, bytes: try put.body.bytes()))
            } catch {
                fail(.notEncodable(key: key.key, underlying: error), lost: [key])
                steps.append(DiskWriter.Step(key: key, operation: .remove, bytes: []))
            }
        }
        write(steps: steps)
    }

    /// Lets other threads encode the bytes of all formats but the first, while this thread encodes those. Encoding may
    /// take longer than writing. This thread then encodes the values that the others have not started.
    private func encode(_ batch: [(key: EntryKey, operation: Operation)]) {
        guard let first = batch.first?.key.format.id else { return }
        var others: [Int64: [LazyBytes]] = [:]
        for (key, operation) in batch where key.format.id != first {
            guard case .put(let put) = operation, case .lazy(let bytes) = put.body else { continue }
            others[key.format.id, default: []].append(bytes)
        }
        for bodies in others.values {
            // Failures are kept, and told when the entry's turn comes.
            BlockingExecutor.shared.submit { for bytes in bodies { _ = try? bytes.bytes() } }
        }
    }

    /// Writes the uses that were collected.
    func writeHits() { write(steps: []) }

    private func write(steps: [DiskWriter.Step]) {
        if isReadOnly {
            if !steps.isEmpty { fail(readOnlyError, lost: steps.map(\.key)) }
            return
        }
        // Uses alone are written because they are wanted; beside puts only if it is time.
        let isTime = steps.isEmpty || configuration.eviction == .leastRecentlyUsed || hits.isDue
        let hits = isTime ? hits.take() : [:]
        guard !steps.isEmpty || !hits.isEmpty else { return }
        guard !steps.isEmpty || generations.isInPlace else { return }
        do throws(CacheError) {
            try generations.withProcessLock { () throws(CacheError) in try writeLocked(steps, hits) }
        } catch {
            if error.isPermissionDenied { generations.noteRefusal() }
            if !steps.isEmpty { fail(error, lost: steps.map(\.key)) }
        }
    }

    private func writeLocked(
        _ steps: [DiskWriter.Step], _ hits: [Int64: HitRecorder.Hit]
    ) throws(CacheError) {
        try withWriterLocked(while: { !steps.isEmpty || generations.isInPlace }) {
            try $0.apply(steps, hits: hits, conditions: conditions)
        }
    }

    private var conditions: DiskWriter.BatchConditions {
        DiskWriter.BatchConditions(
            total: formats.totalLimit, inlineLimit: configuration.inlineLimit.bytes, now: now,
            retention: configuration.expiredRetention.nanosecondsClamped, hits: hits,
            expiresFutureEntries: configuration.expiresFutureEntries)
    }

    /// Repairs the cause of an error before the next attempt, if possible.
    private func prepareRetry(_ writer: DiskWriter, after error: any Error, isFirst: Bool) throws(CacheError) {
        let generation = generations.current
        switch error {
        case FileError.noSpace: try evictForSpace(writer)
        case let error as DatabaseError where error.reason == .full: try evictForSpace(writer)
        case let error as DatabaseError where error.isDamage:
            guard let generation else { return }
            // What a new connection finds as well is damaged. A file that was cut is: closing the connection would move
            // the rest of a cut log.
            if isFirst, !error.isCut { return generations.abandon(generation) }
            _ = try generations.replaceLocked(generation, because: error.description)
        case let error as DatabaseError where error.reason == .busy: break
        case let error as DatabaseError where error.reason == .cannotOpen || error.reason == .inputOutput:
            if let generation { generations.abandon(generation) }
        case FileError.notFound:
            if let generation { generations.abandon(generation) }
        default: throw CacheError.ofDisk(error, path: layout.root)
        }
    }

    /// Evicts a tenth of the entries, because the disk is full. Shortens the log first, because evicting writes to it.
    private func evictForSpace(_ writer: DiskWriter) throws(CacheError) {
        log.warning("the disk is full: disk cache evicts a tenth of its entries")
        writer.checkpoint()
        do {
            try writer.shrink(
                to: Limits(total: writer.accounts.totals.bytes - writer.accounts.totals.bytes / 10), now: now)
            writer.checkpoint()
        } catch {
            throw CacheError.ofDisk(error, path: layout.root)
        }
        formats.publishChanges(of: writer)
    }

    // MARK: Waiting for it

    /// Returns when all earlier writes and access times are written or have failed.
    func waitForWrites() throws(CacheError) {
        try onWriterAndWait { engine throws(CacheError) in engine.writeHits() }
    }

    /// Settles, and throws the first failure since the last flush of a format, or of all.
    func flush(_ format: DiskFormat? = nil) throws(CacheError) {
        try waitForWrites()
        var first: CacheError?
        for format in format.map({ [$0] }) ?? formats.all {
            let failure = format.failure.withLock { failure in
                defer { failure = nil }
                return failure
            }
            first = first ?? failure
        }
        if let first { throw first }
    }

    /// Removes everything, and waits until it is gone.
    func removeAll() throws(CacheError) {
        let outcome = AsyncPromise<Result<Void, CacheError>>()
        var dropped: [EntryKey: Operation] = [:]
        try removeAll(dropping: &dropped) { outcome.fulfill($0) }
        dropped = [:]
        try outcome.wait().get()
    }

    /// Removes everything, in order with other changes: earlier ones are dropped, and later ones stay. Later reads do
    /// not see the entries. Does not block.
    ///
    /// - Parameters:
    ///   - dropped: Gets the changes that were not written, to be released outside of all locks.
    ///   - completion: Called on the writing thread when the entries are gone from disk, or could not be removed.
    /// - Throws: If nothing can be written. Nothing changes then.
    func removeAll(
        dropping dropped: inout [EntryKey: Operation],
        completion: @escaping @Sendable (Result<Void, CacheError>) -> Void
    ) throws(CacheError) {
        if isReadOnly { throw readOnlyError }
        let job: @Sendable () -> Void = { [self] in
            hits.drop()
            let result = Result { () throws(CacheError) in
                try generations.withProcessLock { () throws(CacheError) in _ = try generations.createLocked() }
                formats.publishRemovalOfAll()
            }
            queue.endClearing()
            completion(result)
        }
        if queue.addClearing(job, dropping: &dropped) == .queuedFirst { startDraining() }
    }

    /// Removes everything of one format. If nothing else is there, that is as quick as removing everything.
    func removeAll(of format: DiskFormat) throws(CacheError) {
        if isReadOnly { throw readOnlyError }
        queue.dropWaiting(format: format.id)
        hits.drop(format.entryIDs)
        try onWriterAndWait { engine throws(CacheError) in
            var last: Int64? = format.entryIDs.lowerBound - 1
            // In parts, so that the turns of other processes come.
            while let after = last {
                try engine.generations.withProcessLock { () throws(CacheError) in
                    last = try engine.removeSome(of: format, after: after)
                }
            }
        }
    }

    /// Removes some of a format's entries, or everything at once if there is nothing else. The caller holds the process
    /// lock.
    ///
    /// - Returns: The last one removed; nil at the end.
    private func removeSome(of format: DiskFormat, after id: Int64) throws(CacheError) -> Int64? {
        var last: Int64?, isAlone = false
        try withWriterLocked { writer in
            isAlone = try writer.accounts.isAlone(format.id)
            if !isAlone { last = try writer.removeSome(of: format.id, after: id) }
        }
        guard isAlone else { return last }
        _ = try generations.createLocked()
        formats.publishRemovalOfAll()
        return nil
    }

    /// Removes the entries of all formats that have a tag.
    ///
    /// - Returns: How many there were.
    func removeAll(tag: UInt64) throws(CacheError) -> Int {
        if isReadOnly { throw readOnlyError }
        // The log has grown by several pages for each entry. Nobody waits until it is moved.
        defer { onWriter { engine in engine.moveLongLog() } }
        return try onWriterAndWait { engine throws(CacheError) in
            var count = 0, isFirst = true, isDone = false
            // In parts, so that the turns of other processes come. The first one makes all of the entries unreadable.
            while !isDone {
                if !isFirst { engine.moveLongLog() }
                var purged = TagPurges.Progress()
                try engine.withWriter { purged = try $0.purge(isFirst ? tag : nil) }
                count += purged.count
                isDone = purged.isDone
                isFirst = false
            }
            return count
        }
    }

    /// Sees to a log that has become long. On the writing thread.
    private func moveLongLog() {
        _ = try? generations.withProcessLock { () throws(CacheError) in
            guard let writer = generations.writer, generations.isInPlace else { return }
            writer.noteBatch(capacity: formats.totalLimit)
        }
    }

    /// Changes the limit of a format and evicts entries above it.
    func setCapacity(_ capacity: ByteCount, of format: DiskFormat) throws(CacheError) {
        format.limit.store(capacity.bytes, ordering: .relaxed)
        formats.updateTotal()
        try shrink()
    }

    /// Changes the limit of all formats and evicts entries above it.
    func setTotal(_ capacity: ByteCount) throws(CacheError) {
        formats.setTotalLimit(capacity.bytes)
        try shrink()
    }

    private func shrink() throws(CacheError) {
        if isReadOnly { return }
        try onWriterAndWait { engine throws(CacheError) in
            try engine.withWriter { try $0.shrink(to: Limits(engine.formats), now: engine.now) }
        }
    }

    /// Evicts the entries above the capacity of a format that was registered while the cache was open. Runs on the
    /// writing thread.
    func enforce(_ format: DiskFormat) {
        let limit = format.limit.load(ordering: .relaxed)
        let totals = Result { try generations.withReader { (reader) throws(DatabaseError) in try reader.totals(of: format.id) } }
        guard case .success(let known?) = totals, known.bytes > limit else { return }
        do throws(CacheError) {
            try withWriter { try $0.shrink(to: Limits(self.formats), now: self.now) }
        } catch {
            log.warning("disk cache could not evict", metadata: ["error": "\(error)"])
        }
    }

    /// Runs a body with the writer, under the process lock. The body may be repeated after a failure.
    private func withWriter(_ body: (DiskWriter) throws -> Void) throws(CacheError) {
        try generations.withProcessLock { () throws(CacheError) in try withWriterLocked(body) }
    }

    /// Runs a body with the writer, and again after the cause of a failure was repaired. The caller holds the process
    /// lock.
    ///
    /// - Parameter isWanted: Returns whether to continue.
    private func withWriterLocked(
        while isWanted: () -> Bool = { true }, _ body: (DiskWriter) throws -> Void
    ) throws(CacheError) {
        var retries = 0
        while isWanted() {
            let writer = try generations.writerLocked()
            do {
                try body(writer)
                return formats.publishChanges(of: writer)
            } catch {
                let failure = CacheError.ofDisk(error, path: layout.root)
                guard retries < (failure.isMissingFiles ? GenerationStore.attempts : 2) else { throw failure }
                retries += 1
                try prepareRetry(writer, after: error, isFirst: retries == 1)
            }
        }
    }
}
