import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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

    func note(_ watching: MediaLibrary.Watching) { state.withLock { $0.watching = watching } }

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
