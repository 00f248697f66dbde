import VitrineCore
import VitrineDatabase

/// Opening and replacing generations.
extension GenerationStore {
    /// Opens the generation in use, or makes one.
    func open() throws(CacheError) -> Generation? {
        if !isReadOnly {
            do throws(CacheError) {
                return try withProcessLock { () throws(CacheError) in
                    if let generation = current { return generation }
                    return try openLocked().0
                }
            } catch {
                // What is there can be read all the same. Nobody keeps it: the next lookup tries to open it as usual.
                if error.isOutOfSpace, let generation = openTemporarily() { return generation }
                guard error.isPermissionDenied else { throw error }
                log.info("disk cache is read only", metadata: ["error": "\(error)"])
                noteRefusal()
            }
        }
        return try openReadOnly()
    }

    private func openTemporarily() -> Generation? {
        guard let name = try? layout.currentGeneration(),
            let generation = try? Generation(
                name: name, path: layout.generation(name), isReadOnly: true, isTemporary: true,
                mapsDatabase: configuration.mapsDatabase),
            let reader = try? generation.takeReader()
        else { return nil }
        generation.giveBack(reader)
        return generation
    }

    private func openReadOnly() throws(CacheError) -> Generation? {
        do {
            guard let name = try layout.currentGeneration() else { return nil }
            let generation = try Generation(
                name: name, path: layout.generation(name), isReadOnly: true, mapsDatabase: configuration.mapsDatabase)
            // Whether it can be read at all is found out here.
            generation.giveBack(try generation.takeReader())
            state.withLock { state in
                state.generation = generation
                state.checked = CoarseClock.now
            }
            return generation
        } catch FileError.notFound {
            return nil
        } catch {
            throw CacheError.ofDisk(error, path: layout.root)
        }
    }

    /// The writer of the generation in use. The caller holds the process lock.
    func writerLocked() throws(CacheError) -> DiskWriter {
        let (known, writer) = state.withLock { ($0.generation, $0.writer) }
        if let known, let writer, isCurrent(known) {
            switch known.watch.check() {
            case .intact:
                // There may have been no descriptor for it before.
                if !known.watch.hasIndex { known.watch.watchIndex() }
                guard known.watch.hasHeader else {
                    return try replaceLocked(known, because: "its header was overwritten").1
                }
                return writer
            case .deleted: break
            case .cut: return try replaceLocked(known, because: "its database was cut").1
            }
        }
        if let known { abandon(known) }
        return try openLocked().1
    }

    /// Opens the generation in use, or makes one. The caller holds the process lock.
    func openLocked() throws(CacheError) -> (Generation, DiskWriter) {
        try retryingIfFilesAreDeleted { () throws(CacheError) in try openOnce() }
    }

    /// - Parameter wasDamaged: Whether an attempt right before has found damage. Damage counts if it is found twice.
    private func openOnce(wasDamaged: Bool = false) throws(CacheError) -> (Generation, DiskWriter) {
        do {
            guard let name = try layout.currentGeneration(),
                FilePath.exists(layout.generation(name) + "/" + DiskLayout.databaseName)
            else { return try createOnce() }
            do {
                let generation = try Generation(
                    name: name, path: layout.generation(name), isReadOnly: false,
                    mapsDatabase: configuration.mapsDatabase)
                let writer = try DiskWriter(
                    generation: generation, eviction: configuration.eviction, version: configuration.version)
                guard try accepts(writer) else {
                    log.notice("disk cache of another application version is emptied")
                    return try createOnce()
                }
                use(generation, writer)
                clearOthers(than: name)
                try writer.clearTemporaries()
                writer.openLog(capacity: formats.totalLimit)
                // Another program, or this one earlier, may have had larger capacities.
                try writer.shrink(to: Limits(formats), now: configuration.clock.nanoseconds)
                formats.publishChanges(of: writer)
                return (generation, writer)
            } catch let error as DatabaseError where error.isDamage {
                guard wasDamaged else { return try openOnce(wasDamaged: true) }
                let generation = try Generation(
                    name: name, path: layout.generation(name), isReadOnly: false,
                    mapsDatabase: configuration.mapsDatabase)
                return try replaceLocked(generation, because: error.description)
            }
        } catch {
            throw CacheError.ofDisk(error, path: layout.root)
        }
    }

    /// Returns whether this version of the application may use the entries.
    private func accepts(_ writer: DiskWriter) throws(DatabaseError) -> Bool {
        guard let version = configuration.version else { return true }
        let found = try writer.version()
        if found == version { return true }
        guard let found, configuration.compatibleVersions.contains(found) else { return false }
        try writer.setVersion(version)
        return true
    }

    /// Makes an empty generation and puts it in the place of the one in use. The caller holds the process lock.
    ///
    /// - Parameter fill: Called before anybody sees it; again if its files go meanwhile.
    func createLocked(
        fill: (DiskWriter) -> Void = { _ in }
    ) throws(CacheError) -> (Generation, DiskWriter) {
        try retryingIfFilesAreDeleted { () throws(CacheError) in try createOnce(fill: fill) }
    }

    private func createOnce(
        fill: (DiskWriter) -> Void = { _ in }
    ) throws(CacheError) -> (Generation, DiskWriter) {
        let name = DiskLayout.newGenerationName()
        let path = layout.generation(name)
        do {
            try? Directories.tagCacheDirectory(layout.directory)
            try Directory.create(path + "/files")
            let generation = try Generation(
                name: name, path: path, isReadOnly: false, mapsDatabase: configuration.mapsDatabase)
            let writer = try DiskWriter(
                generation: generation, eviction: configuration.eviction, version: configuration.version)
            fill(writer)
            // Or it would take the place of one that somebody has made in a new directory under a new lock.
            guard isLocked else { throw CacheError.file(.notFound(path: layout.root)) }
            try layout.setCurrent(name)
            use(generation, writer)
            clearOthers(than: name)
            return (generation, writer)
        } catch {
            FileTree.remove(path)
            throw CacheError.ofDisk(error, path: layout.root)
        }
    }

    /// Replaces a damaged generation with one of its intact entries, unless another process has done so. The caller
    /// holds the process lock.
    func replaceLocked(
        _ generation: Generation, because reason: String
    ) throws(CacheError) -> (Generation, DiskWriter) {
        abandon(generation)
        guard isCurrent(generation) else { return try openLocked() }
        formats.counters.add { $0.recoveries += 1 }
        return try createLocked { writer in
            writer.purgeOrigin.replace(damaged: generation.purgeOrigin)
            var saved = 0
            // A damaged database may fail in any way; then the new one is empty.
            try? writer.transaction {
                var recovery = try DatabaseRecovery(from: generation, to: writer, formats: formats.all)
                recovery.run(Limits(formats))
                saved = recovery.saved
            }
            log.error(
                "disk cache was damaged; its intact entries were recovered",
                metadata: ["reason": "\(reason)", "entries": "\(saved)"])
        }
    }

    /// The same for a reader that found the damage.
    func recover(_ generation: Generation, because reason: String) throws(CacheError) {
        abandon(generation)
        guard !isReadOnly, !generation.isTemporary else { return }
        try withProcessLock { () throws(CacheError) in
            if isCurrent(generation) { _ = try replaceLocked(generation, because: reason) }
        }
    }

    private func use(_ generation: Generation, _ writer: DiskWriter) {
        let earlier = state.withLock { state -> (Generation?, DiskWriter?) in
            let earlier = (state.generation, state.writer)
            state.generation = generation
            state.writer = writer
            state.checked = CoarseClock.now
            return earlier
        }
        earlier.0?.retire()
    }

    /// Deletes the generations that are not in use, and those of the layout before, in the background. Processes that
    /// still read one keep their files open and notice.
    private func clearOthers(than name: String) {
        let paths = layout.otherGenerations(than: name).map { layout.generation($0) }
        let old = layout.oldLayouts(withFormats: hadFormatDirectories)
        guard !paths.isEmpty || !old.isEmpty else { return }
        BlockingExecutor.shared.submit { [layout] in
            for path in paths { FileTree.remove(path) }
            for path in old { layout.removeOldLayout(path) }
        }
    }
}

extension CacheError {
    /// Whether the cause is that this process may not write here.
    var isPermissionDenied: Bool {
        switch self {
        case .file(.notPermitted): true
        case .database(let error): error.reason == .readOnly && !error.isDamage
        default: false
        }
    }

    /// Whether the cause is that the disk is full.
    var isOutOfSpace: Bool {
        switch self {
        case .file(.noSpace): true
        case .database(let error): error.reason == .full
        default: false
        }
    }

    /// Whether the cause may be that files were deleted while they were being opened. SQLite cannot tell either: it
    /// looks at the database's permissions before it makes the log, and calls it an I/O error that there is none.
    var isMissingFiles: Bool {
        switch self {
        case .file(.notFound): true
        case .database(let error): error.reason == .cannotOpen || error.reason == .inputOutput
        default: false
        }
    }

    /// Returns the module's error for one from below.
    static func ofDisk(_ error: any Error, path: String) -> CacheError {
        switch error {
        case let error as CacheError: error
        case let error as FileError: .file(error)
        case let error as DatabaseError: .database(error)
        default: .file(.untrusted(path: path, reason: ErrorText.nested(error, about: path)))
        }
    }
}
