import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The thread of a library: lists, reads headers, and waits for changes. For use on that thread only.
final class MediaLibraryLoop {
    private let work: MediaLibraryWork
    private let wake: Int32
    private var tree: MediaTree
    private var settling: [CheckedContinuation<Void, Never>] = []
    private var hasScanned = false
    private var lastPublished = ContinuousClock.now
    #if !canImport(Darwin)
    private var events: DirectoryEvents?
    /// Where watched directories lie.
    private var watched: [Int32: String] = [:]
    private var missed: String?
    #endif

    /// The directories and files to check again.
    private struct Dirty {
        var folders: Set<String> = []
        var files: Set<String> = []
        var first = ContinuousClock.now
        var last = ContinuousClock.now

        var isEmpty: Bool { folders.isEmpty && files.isEmpty }
    }
    private var dirty = Dirty()

    /// Milliseconds of reading headers between two looks at commands and notices.
    private static let slice = 20
    /// How long results of reading headers are collected before they are reported.
    private static let reporting = Duration.milliseconds(250)

    init(_ work: MediaLibraryWork, wake: Int32) {
        self.work = work
        self.wake = wake
        tree = MediaTree(root: work.directory, options: work.options)
    }

    func run() {
        defer {
            close(wake)
            for continuation in settling { continuation.resume() }
        }
        while let commands = work.takeCommands() {
            collectNotices()
            for command in commands { perform(command) }
            if !dirty.isEmpty, isDue { refresh() }
            if !tree.unread.isEmpty {
                tree.readHeaders(milliseconds: Self.slice)
                if tree.unread.isEmpty || ContinuousClock.now - lastPublished > Self.reporting { publish() }
            }
            if tree.unread.isEmpty, dirty.isEmpty {
                for continuation in settling { continuation.resume() }
                settling = []
            }
            wait()
        }
    }

    private func perform(_ command: MediaLibraryWork.Command) {
        switch command {
        case .scan(let continuation):
            startWatching()
            dirty = Dirty()
            let result = Result { () throws(ImagePipelineError) in try tree.scan() }
            hasScanned = true
            reportWatching()
            publish()
            continuation.resume(returning: result)
        case .settle(let continuation): settling.append(continuation)
        case .lose: noteLoss()
        }
    }

    // MARK: Reports

    private func publish() {
        lastPublished = .now
        let changes = tree.takeChanges()
        if !changes.isEmpty { work.publish(tree.assets, changes) }
    }

    /// Whether it was quiet for a while, it has not been for long, or somebody waits.
    private var isDue: Bool { !settling.isEmpty || ContinuousClock.now >= due }

    private var due: ContinuousClock.Instant {
        let quiet = work.options.coalescing
        return min(dirty.last + quiet, dirty.first + quiet * 5)
    }

    private func refresh() {
        let now = dirty
        dirty = Dirty()
        tree.refresh(folders: now.folders, files: now.files)
        reportWatching()
        // What has new headers is reported with them.
        if tree.unread.isEmpty { publish() }
    }

    // MARK: Waiting

    private func wait() {
        var polls = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
        #if !canImport(Darwin)
        if let events { polls.append(pollfd(fd: events.descriptor, events: Int16(POLLIN), revents: 0)) }
        #endif
        var timeout: Int32 = -1
        if !tree.unread.isEmpty {
            timeout = 0
        } else if !dirty.isEmpty {
            let left = (due - ContinuousClock.now).components
            timeout = Int32(clamping: max(0, left.seconds * 1_000 + left.attoseconds / 1_000_000_000_000_000 + 1))
        }
        guard poll(&polls, nfds_t(polls.count), timeout) > 0, polls[0].revents != 0 else { return }
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(wake, &bytes, bytes.count) > 0 {}
    }

    // MARK: Notices

    private func note(folder: String) {
        if dirty.isEmpty { dirty.first = .now }
        dirty.last = .now
        dirty.folders.insert(folder)
    }

    private func note(file: String) {
        if dirty.isEmpty { dirty.first = .now }
        dirty.last = .now
        dirty.files.insert(file)
    }

    private func noteLoss() {
        for folder in tree.folders.keys { note(folder: folder) }
    }

    #if canImport(Darwin)
    private func startWatching() {}
    private func collectNotices() {}

    private func reportWatching() {
        guard hasScanned, work.options.watches else { return }
        work.note(.incomplete(reason: "directories are not watched on this system"))
    }
    #else
    private func startWatching() {
        guard work.options.watches, events == nil else { return }
        guard let events = DirectoryEvents(maximum: work.options.maximumWatches) else {
            missed = "the system allows no more watchers (fs.inotify.max_user_instances)"
            return
        }
        self.events = events
        tree.watch = { [unowned self] path in
            switch events.watch(path) {
            case .number(let number):
                watched[number] = path
                return number
            case .limitReached:
                missed = "the system allows no more watched directories (fs.inotify.max_user_watches)"
                return nil
            case .unavailable: return nil
            }
        }
        tree.endWatch = { [unowned self] number in
            // One that the system has ended is not there any more.
            if watched.removeValue(forKey: number) != nil { events.end(number) }
        }
    }

    private func reportWatching() {
        guard hasScanned, work.options.watches else { return }
        // Watches become free when directories go.
        if events != nil, tree.folders.values.allSatisfy({ $0.watch != nil }) { missed = nil }
        work.note(missed.map { .incomplete(reason: $0) } ?? .complete)
    }

    private func collectNotices() {
        guard let events else { return }
        guard let found = events.read() else { return noteLoss() }
        for event in found {
            guard let folder = watched[event.watch] else { continue }
            if event.isEnd {
                watched[event.watch] = nil
                events.noteEnd()
                if tree.folders[folder]?.watch == event.watch { tree.folders[folder]?.watch = nil }
            }
            if event.isEnd || event.concernsItself {
                note(folder: folder)
                note(folder: FilePath.parent(of: folder))
            } else if event.concernsDirectory {
                note(folder: folder)
            } else {
                note(file: FilePath.join(folder, event.name))
            }
        }
    }
    #endif
}
