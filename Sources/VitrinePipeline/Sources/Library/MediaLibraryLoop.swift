#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
@_spi(Files) import VitrineCore

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

/// The state that a library and its thread share.
final class MediaLibraryWork: Sendable {
    enum Command {
        case scan(CheckedContinuation<Result<Void, ImagePipelineError>, Never>)
        case settle(CheckedContinuation<Void, Never>)
        /// As if notices had been lost.
        case lose

        /// Answers without doing anything.
        func abandon(_ directory: String) {
            switch self {
            case .scan(let continuation): continuation.resume(returning: .failure(.cancelled(source: directory)))
            case .settle(let continuation): continuation.resume()
            case .lose: break
            }
        }
    }

    private struct State {
        var assets: [MediaAsset] = []
        var watching = MediaLibrary.Watching.off
        var commands: [Command] = []
        var subscribers: [Int: AsyncStream<MediaLibrary.Changes>.Continuation] = [:]
        var nextSubscriber = 0
        var isStopped = false
        /// The end of the pipe that wakes the thread; -1 while there is none.
        var wake: Int32 = -1
    }

    let directory: String
    let options: MediaLibrary.Options
    private let state = Locked(State())

    init(directory: String, options: MediaLibrary.Options) {
        self.directory = directory
        self.options = options
    }

    var assets: [MediaAsset] { state.withLock(\.assets) }
    var watching: MediaLibrary.Watching { state.withLock(\.watching) }

    var changes: AsyncStream<MediaLibrary.Changes> {
        let (stream, continuation) = AsyncStream<MediaLibrary.Changes>.makeStream()
        let id = state.withLock { state -> Int? in
            guard !state.isStopped else { return nil }
            state.nextSubscriber += 1
            state.subscribers[state.nextSubscriber] = continuation
            return state.nextSubscriber
        }
        if let id {
            continuation.onTermination = { [weak self] _ in
                self?.state.withLock { _ = $0.subscribers.removeValue(forKey: id) }
            }
        } else {
            continuation.finish()
        }
        return stream
    }

    /// Leaves a command for the thread, which is started with the first.
    func submit(_ command: Command) {
        let isTaken = state.withLock { state in
            guard !state.isStopped, state.wake >= 0 || start(&state) else { return false }
            state.commands.append(command)
            Self.signal(state.wake)
            return true
        }
        if !isTaken { command.abandon(directory) }
    }

    /// Ends the thread and all streams.
    func stop() {
        let (subscribers, commands) = state.withLock { state in
            state.isStopped = true
            // The thread wakes up at the hang-up and closes its end.
            if state.wake >= 0 { close(state.wake) }
            state.wake = -1
            defer {
                state.subscribers = [:]
                state.commands = []
            }
            return (Array(state.subscribers.values), state.commands)
        }
        for subscriber in subscribers { subscriber.finish() }
        for command in commands { command.abandon(directory) }
    }

    // MARK: For the thread

    /// The work that was requested since; nil to end.
    func takeCommands() -> [Command]? {
        state.withLock { state in
            defer { state.commands = [] }
            return state.isStopped ? nil : state.commands
        }
    }

    func publish(_ assets: [MediaAsset], _ changes: MediaLibrary.Changes) {
        let subscribers = state.withLock { state in
            state.assets = assets
            return Array(state.subscribers.values)
        }
        for subscriber in subscribers { subscriber.yield(changes) }
    }

    func note(_ watching: MediaLibrary.Watching) {
        let isNew = state.withLock { state in
            defer { state.watching = watching }
            return state.watching != watching
        }
        guard isNew, case .incomplete(let reason) = watching else { return }
        Log.logger("library").warning("Not all changes of \(directory) are noticed: \(reason)")
    }

    private func start(_ state: inout State) -> Bool {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        let (read, write) = (ends[0], ends[1])
        guard Thread.start(name: "vitrine-library", body: { MediaLibraryLoop(self, wake: read).run() }) else {
            for end in ends { close(end) }
            return false
        }
        state.wake = write
        return true
    }

    /// A full pipe wakes as well.
    private static func signal(_ descriptor: Int32) {
        var byte: UInt8 = 0
        _ = write(descriptor, &byte, 1)
    }
}
