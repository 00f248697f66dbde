import Foundation
import Synchronization
import VitrineCore
import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Tells subscribers when something changes in a folder. One thread watches all folders while there are subscribers.
final class GalleryWatch: Sendable {
    enum Signal: Sendable { case changed, alive }

    private static let maximumSubscribers = 256

    private struct State {
        #if !canImport(Darwin)
        var events: FolderEvents?
        #endif
        var next = 0
        var subscribers: [Int: (watch: Int32, signals: AsyncStream<Signal>.Continuation)] = [:]
        var isRunning = false
        var isStopped = false
    }

    private let files: GalleryFiles
    private let state = Mutex(State())

    init(_ files: GalleryFiles) { self.files = files }

    /// Ends all subscriptions, and all that follow.
    func stop() {
        let ended = state.withLock { state in
            state.isStopped = true
            return state.subscribers.values.map(\.signals)
        }
        for signals in ended { signals.finish() }
    }

    /// Returns the changes of a folder from now on. Where folders are not watched, the stream says only that it is
    /// alive, every few seconds.
    ///
    /// - Throws: 404 without such a folder, 503 if there are too many subscribers.
    func signals(of folder: [String]) throws(RequestError) -> AsyncStream<Signal> {
        let directory = try files.openDirectory(folder)
        defer { close(directory) }
        let (stream, continuation) = AsyncStream<Signal>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            guard !state.isStopped, state.subscribers.count < Self.maximumSubscribers else { return nil }
            var watch: Int32 = -1
            #if !canImport(Darwin)
            if state.events == nil { state.events = FolderEvents() }
            // The open directory, not whatever its path leads to by now.
            if let number = state.events?.watch("/proc/self/fd/\(directory)") { watch = number }
            #endif
            state.next += 1
            state.subscribers[state.next] = (watch, continuation)
            return state.next
        }
        guard let number else { throw .overloaded(retryAfter: 5) }
        continuation.onTermination = { [weak self] _ in self?.remove(number) }
        start()
        return stream
    }

    private func remove(_ number: Int) {
        state.withLock { state in
            guard let gone = state.subscribers.removeValue(forKey: number), gone.watch >= 0 else { return }
            #if !canImport(Darwin)
            if !state.subscribers.values.contains(where: { $0.watch == gone.watch }) { state.events?.end(gone.watch) }
            #endif
        }
    }

    private func start() {
        let isFirst = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isFirst { Thread.detachNewThread { [self] in run() } }
    }

    /// Runs until there are no subscribers.
    private func run() {
        var lastBeat = ContinuousClock.now
        while true {
            #if canImport(Darwin)
            Thread.sleep(forTimeInterval: 1)
            #else
            let descriptor = state.withLock { $0.events?.descriptor ?? -1 }
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&polled, 1, 1_000)
            #endif
            let isBeat = ContinuousClock.now - lastBeat > .seconds(10)
            if isBeat { lastBeat = .now }
            let deliveries = state.withLock { state -> [(AsyncStream<Signal>.Continuation, Signal)]? in
                guard !state.subscribers.isEmpty else {
                    state.isRunning = false
                    #if !canImport(Darwin)
                    state.events = nil
                    #endif
                    return nil
                }
                var changed: Set<Int32> = []
                var isEverything = false
                #if !canImport(Darwin)
                if let events = state.events {
                    if let known = events.read() { changed = known } else { isEverything = true }
                }
                #endif
                return state.subscribers.values.compactMap { subscriber in
                    if isEverything || changed.contains(subscriber.watch) { return (subscriber.signals, .changed) }
                    return isBeat ? (subscriber.signals, .alive) : nil
                }
            }
            guard let deliveries else { return }
            for (signals, signal) in deliveries { signals.yield(signal) }
        }
    }
}
