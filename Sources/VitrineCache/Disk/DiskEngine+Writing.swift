import VitrineCore
import VitrineDatabase

/// Changes: made into operations by callers, applied by the writing thread.
extension DiskEngine {
    /// The operation that stores an entry.
    ///
    /// - Throws: If nothing can be written.
    func put(
        _ body: Body, forKey key: CacheKey, timeToLive: Duration?, tag: [UInt8]
    ) throws(CacheError) -> Operation {
        if state.withLock({ $0.isReadOnly }) { throw readOnlyError }
        // It would be refused when its turn comes, and be readable until then.
        if limit.load(ordering: .relaxed) == 0 {
            counters.add { $0.refusals += 1 }
            return .remove
        }
        let now = now
        let life = (timeToLive ?? configuration.timeToLive)?.nanosecondsClamped
        return .put(Put(body: body, created: now, expires: life.map { now &+ $0 }, tag: tag))
    }

    private var readOnlyError: CacheError { .file(.notPermitted(path: layout.directory, code: 30)) }

    /// The operation that lets an entry's time pass.
    func expiring() -> Operation { .patch(Patch(expires: .some(now))) }

    /// The operation that gives an entry a new lifetime.
    func renewing(_ timeToLive: Duration?) -> Operation {
        let now = now
        let life = (timeToLive ?? configuration.timeToLive)?.nanosecondsClamped
        return .patch(Patch(created: now, expires: .some(life.map { now &+ $0 })))
    }

    // MARK: On the writing thread

    /// Writes a batch. What cannot be written is dropped, logged, and reported by the next flush.
    func write(_ batch: [(key: CacheKey, operation: Operation)]) {
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
                fail(.notEncodable(key: key, underlying: error), lost: 1)
                steps.append(DiskWriter.Step(key: key, operation: .remove, bytes: []))
            }
        }
        write(steps: steps)
    }

    /// Writes the uses that were collected.
    func writeHits() { write(steps: []) }

    private func write(steps: [DiskWriter.Step]) {
        if state.withLock({ $0.isReadOnly }) {
            if !steps.isEmpty { fail(readOnlyError, lost: steps.count) }
            return
        }
        // Uses alone are written because they are wanted; beside puts only if it is time.
        let isTime = steps.isEmpty || configuration.eviction == .leastRecentlyUsed || hits.isDue
        let hits = isTime ? hits.take() : [:]
        guard !steps.isEmpty || !hits.isEmpty else { return }
        guard !steps.isEmpty || isInPlace else { return }
        do throws(CacheError) {
            try withProcessLock { () throws(CacheError) in try writeLocked(steps, hits) }
        } catch {
            if error.isLackOfPermission { state.withLock { $0.isReadOnly = true } }
            if !steps.isEmpty { fail(error, lost: steps.count) }
        }
    }

    private func writeLocked(
        _ steps: [DiskWriter.Step], _ hits: [Int64: HitRecorder.Hit]
    ) throws(CacheError) {
        var retries = 0
        while true {
            guard !steps.isEmpty || isInPlace else { return }
            let writer = try writerLocked()
            do {
                try writer.apply(steps, hits: hits, terms: terms)
                finish(writer)
                return
            } catch {
                let failure = Self.error(error, path: layout.root)
                guard retries < (failure.isLossOfFiles ? Self.attempts : 2) else { throw failure }
                retries += 1
                try prepareRetry(writer, after: error)
            }
        }
    }

    /// Whether the generation in use is the directory's. Uses alone make none: the directory may have been deleted.
    private var isInPlace: Bool { state.withLock { $0.generation }.map(isCurrent) == true }

    private var terms: DiskWriter.Terms {
        DiskWriter.Terms(
            capacity: limit.load(ordering: .relaxed), inlineLimit: configuration.inlineLimit.bytes, now: now,
            retention: configuration.expiredRetention.nanosecondsClamped, hits: hits)
    }

    private func finish(_ writer: DiskWriter) {
        let tally = writer.tally
        counters.add { $0.add(tally) }
        sizes.send(writer.totals.bytes)
        if tally.refusals > 0 {
            log.notice("disk cache refused entries larger than its capacity", metadata: ["count": "\(tally.refusals)"])
        }
    }

    /// Does what can be done about a failure before the next try.
    private func prepareRetry(_ writer: DiskWriter, after error: any Error) throws(CacheError) {
        let generation = state.withLock { $0.generation }
        switch error {
        case FileError.noSpace: try relieve(writer)
        case let error as DatabaseError where error.reason == .full: try relieve(writer)
        case let error as DatabaseError where error.isDamage:
            guard let generation else { return }
            _ = try replaceLocked(generation, because: error.description)
        case let error as DatabaseError where error.reason == .busy: break
        case let error as DatabaseError where error.reason == .cannotOpen || error.reason == .inputOutput:
            if let generation { lose(generation) }
        case FileError.notFound:
            if let generation { lose(generation) }
        default: throw Self.error(error, path: layout.root)
        }
    }

    /// The disk is full: a tenth of what is there gives way. The log comes first, because evicting writes to it.
    private func relieve(_ writer: DiskWriter) throws(CacheError) {
        log.warning("disk is full: disk cache evicts a tenth")
        writer.checkpoint()
        do {
            try writer.shrink(to: writer.totals.bytes - writer.totals.bytes / 10, now: now)
            writer.checkpoint()
        } catch {
            throw Self.error(error, path: layout.root)
        }
        finish(writer)
    }

    // MARK: Waiting for it

    /// Returns when everything queued before is written, whatever became of it, with the uses.
    func settle() throws(CacheError) {
        try onWriterAndWait { engine throws(CacheError) in engine.writeHits() }
    }

    func flush() throws(CacheError) {
        try settle()
        let failure = failure.withLock { failure in
            defer { failure = nil }
            return failure
        }
        if let failure { throw failure }
    }

    func removeAll() throws(CacheError) {
        if state.withLock({ $0.isReadOnly }) { throw readOnlyError }
        queue.dropWaiting()
        hits.drop()
        try onWriterAndWait { engine throws(CacheError) in
            try engine.withProcessLock { () throws(CacheError) in _ = try engine.createLocked() }
            engine.sizes.send(0)
        }
    }

    func setCapacity(_ capacity: ByteCount) throws(CacheError) {
        limit.store(capacity.bytes, ordering: .relaxed)
        if state.withLock({ $0.isReadOnly }) { return }
        try onWriterAndWait { engine throws(CacheError) in
            try engine.withProcessLock { () throws(CacheError) in
                let writer = try engine.writerLocked()
                do {
                    try writer.shrink(to: capacity.bytes, now: engine.now)
                } catch {
                    throw Self.error(error, path: engine.layout.root)
                }
                engine.finish(writer)
            }
        }
    }
}
