import VitrineCore

extension Cache {
    /// A value made from what is stored of the key in another format, and stored (R30): from the smallest larger entry
    /// of the family, in memory or on disk, or from the original.
    ///
    /// - Returns: nil if there is nothing to make it from: the source is asked.
    func derive(
        _ key: CacheKey, in area: FormatArea<Value>, _ levels: CacheLevels, _ ticket: InvalidationRegister.Ticket,
        _ priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        guard area !== original else { return nil }
        let larger = area.format.transform == nil ? [] : largerAreas(than: area)
        if levels.contains(.readMemory) {
            for candidate in larger {
                guard let value = candidate.memory.peek(candidate.slot(key)) else { continue }
                return try await derived(from: value, expires: nil, key, in: area, levels, ticket, priority)
            }
        }
        if levels.contains(.readDisk) {
            for candidate in larger {
                let other = register.begin(candidate.slot(key))
                guard let found = try? await readDisk(key, in: candidate, other) else { continue }
                return try await derived(
                    from: found.value, expires: found.expires, key, in: area, levels, ticket, priority)
            }
        }
        return try await deriveFromOriginal(key, in: area, levels, ticket, priority)
    }

    /// The formats whose entries this one's can be made from, the smallest first.
    private func largerAreas(than area: FormatArea<Value>) -> [FormatArea<Value>] {
        guard let derivation = area.format.derivation else { return [] }
        let larger = formats.all.filter { $0.format.derivation.map(derivation.canDerive) ?? false }
        return larger.sorted { ($0.format.derivation?.magnitude ?? 0) < ($1.format.derivation?.magnitude ?? 0) }
    }

    private func deriveFromOriginal(
        _ key: CacheKey, in area: FormatArea<Value>, _ levels: CacheLevels, _ ticket: InvalidationRegister.Ticket,
        _ priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        let needsBytes = area.format.transform == nil && area.format.derive != nil
        if levels.contains(.readMemory), !needsBytes, let value = original.memory.peek(original.slot(key)) {
            return try await derived(from: value, expires: nil, key, in: area, levels, ticket, priority)
        }
        guard levels.contains(.readDisk) else { return nil }
        let originalTicket = register.begin(original.slot(key))
        let entry: DiskCache.Entry?
        do throws(CacheError) {
            entry = try await readBytes(key, in: original)
        } catch {
            log.warning("The disk could not be read: \(error)", metadata: ["cache": "\(name)"])
            return nil
        }
        guard let entry else { return nil }
        let result = SourceResult<Value>(
            value: nil, bytes: entry.bytes, timeToLive: remaining(entry.expires), tag: [], levels: .all,
            storesOriginal: true, origin: .stored, ticket: originalTicket)
        let value: Value
        do throws(CacheError) {
            value = try await make(key, in: area, from: result, priority)
        } catch {
            guard case .invalidData(_, let reason) = error else { throw error }
            // The stored original is no value: the source is asked (R50).
            await discard(key, in: original, originalTicket, because: reason)
            return nil
        }
        metrics.countDerivation()
        await store(value, key, in: area, from: result, levels, ticket)
        return value
    }

    private func derived(
        from value: Value, expires: Duration?, _ key: CacheKey, in area: FormatArea<Value>, _ levels: CacheLevels,
        _ ticket: InvalidationRegister.Ticket, _ priority: PrioritySource
    ) async throws(CacheError) -> Value {
        let made = try await applied(area, to: value, key, priority)
        metrics.countDerivation()
        let result = SourceResult(
            value: value, bytes: nil, timeToLive: remaining(expires), tag: [], levels: .all, storesOriginal: false,
            origin: .stored, ticket: ticket)
        await store(made, key, in: area, from: result, levels, ticket)
        return made
    }

    /// How long something is fresh from now on that is fresh until then.
    private func remaining(_ expires: Duration?) -> Duration? {
        expires.map { max(.zero, $0 - configuration.clock.now) }
    }
}
