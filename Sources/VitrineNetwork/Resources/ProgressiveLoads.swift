#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// Does what a ``ProgressiveState`` wants, one thread at a time, and tells of what is shown.
final class ProgressiveLoads<Value: CacheableValue>: ResourceListener {
    private struct Storage {
        var list: ProgressiveState<Value>
        var isBusy = false
        var toldVersion = 0
        var wasSettled = true
    }

    private let resources: ObservedCache<Value>
    private let format: FormatName
    private let priority: Priority
    private let onChange: @Sendable () -> Void
    private let storage: Locked<Storage>

    /// - Parameter onChange: Called after something else is shown, and after nothing better will come.
    init(
        _ resources: ObservedCache<Value>, _ format: FormatName, _ secondaryDepth: CacheLevel, _ priority: Priority,
        onChange: @escaping @Sendable () -> Void
    ) {
        self.resources = resources
        self.format = format
        self.priority = priority
        self.onChange = onChange
        storage = Locked(Storage(list: ProgressiveState(secondaryDepth: secondaryDepth)))
    }

    deinit {
        for url in storage.withLock({ $0.list.pause() }) { leave(url, .processing) }
    }

    private func leave(_ url: URL, _ policy: CancellationPolicy) {
        resources.cancel(url, format, ObjectIdentifier(self), policy)
    }

    /// What the list is like now.
    var list: ProgressiveState<Value> { storage.withLock { $0.list } }

    func replace(with urls: [URL]) {
        storage.withLock { $0.list.replace(with: urls) }
        work()
    }

    func cancel(_ policy: CancellationPolicy) {
        let running = storage.withLock { $0.list.pause() }
        for url in running { leave(url, policy) }
        work()
    }

    func resourceDidLoad(_ value: Value, from url: URL) {
        storage.withLock { $0.list.loaded(value, url) }
        work()
    }

    func resourceDidFail(_ error: CacheError, from url: URL) {
        storage.withLock { $0.list.failed(error, url) }
        work()
    }

    // MARK: Working

    private enum QueueSlot {
        case act(ProgressiveState<Value>.Action)
        case tell
        case rest
    }

    /// Does what there is to do, then tells. A thread that comes while another is at it leaves it to that one.
    private func work() {
        let isFirst = storage.withLock { storage in
            defer { storage.isBusy = true }
            return !storage.isBusy
        }
        guard isFirst else { return }
        while true {
            switch nextTurn() {
            case .act(let action): perform(action)
            case .tell: onChange()
            case .rest: return
            }
        }
    }

    private func nextTurn() -> QueueSlot {
        storage.withLock { storage in
            if let action = storage.list.next() {
                storage.list.begin(action)
                return .act(action)
            }
            let isSettled = storage.list.isSettled
            guard storage.list.version == storage.toldVersion, isSettled == storage.wasSettled else {
                storage.toldVersion = storage.list.version
                storage.wasSettled = isSettled
                return .tell
            }
            storage.isBusy = false
            return .rest
        }
    }

    private func perform(_ action: ProgressiveState<Value>.Action) {
        switch action {
        case .cancel(let url): leave(url, .processing)
        case .load(let url, let depth, let again):
            // What is said of the earlier request would be taken for the later one's.
            if again { leave(url, .processing) }
            let value = resources.value(at: url, format, depth, priority, listener: self)
            if let value {
                storage.withLock { $0.list.loaded(value, url) }
            } else if depth == .memory {
                storage.withLock { $0.list.failed(.notFound(key: resources.key(for: url)), url) }
            }
        }
    }
}

/// What a progressive list shows, loads and still wants. Pure: says what is to be done, does nothing.
struct ProgressiveState<Value: CacheableValue> {
    /// Something to do.
    enum Action {
        /// To be looked for so deep; again if it is looked for less deep already.
        case load(URL, CacheLevel, again: Bool)
        case cancel(URL)
    }

    let secondaryDepth: CacheLevel
    private(set) var urls: [URL] = []
    /// The places of the URLs, which may be many and be asked for at every arrival.
    private var places: [URL: Int] = [:]
    private(set) var shown: ProgressiveValue<Value>?
    /// Counts what was shown.
    private(set) var version = 0
    /// What is being loaded, and how deep.
    private(set) var running: [URL: CacheLevel] = [:]
    /// How deep was looked in vain, and why.
    private var failed: [URL: (depth: CacheLevel, error: CacheError)] = [:]
    private var isPaused = false

    init(secondaryDepth: CacheLevel) { self.secondaryDepth = secondaryDepth }

    /// Why the best could not be had; nil as long as that is not known.
    var failure: CacheError? {
        guard let best = urls.first, let failed = failed[best], failed.depth >= depth(at: 0) else { return nil }
        return failed.error
    }

    /// Whether nothing better will come.
    var isSettled: Bool { shown?.isBest == true || urls.isEmpty || next() == nil && running.isEmpty }

    /// How far may be looked for what stands at a place: for the best as far as it takes.
    private func depth(at index: Int) -> CacheLevel { index == 0 ? .source : secondaryDepth }

    // MARK: Changing

    /// Another list, best first. What is shown stays if it is in that as well.
    mutating func replace(with urls: [URL]) {
        var places: [URL: Int] = [:]
        var list: [URL] = []
        for url in urls where places.updateValue(places[url] ?? list.count, forKey: url) == nil { list.append(url) }
        self.urls = list
        self.places = places
        failed = [:]
        isPaused = false
        guard let shown else { return }
        if let index = places[shown.url] {
            guard index != shown.index else { return }
            self.shown = ProgressiveValue(url: shown.url, value: shown.value, index: index)
        } else {
            self.shown = nil
        }
        version += 1
    }

    /// Loads nothing more until there is another list.
    ///
    /// - Returns: What was being loaded.
    mutating func pause() -> [URL] {
        isPaused = true
        defer { running = [:] }
        return Array(running.keys)
    }

    mutating func loaded(_ value: Value, _ url: URL) {
        running[url] = nil
        guard let index = places[url], index < shown?.index ?? .max else { return }
        shown = ProgressiveValue(url: url, value: value, index: index)
        version += 1
    }

    mutating func failed(_ error: CacheError, _ url: URL) {
        guard let depth = running.removeValue(forKey: url) else { return }
        failed[url] = (depth, error)
    }

    // MARK: What is to be done

    /// What is to be done next; nil for nothing. Nothing worse than what is shown is loaded.
    func next() -> Action? {
        let end = isPaused ? 0 : shown?.index ?? urls.count
        if let url = running.keys.first(where: { (places[$0] ?? .max) >= end }) { return .cancel(url) }
        for index in 0..<end {
            let (url, depth) = (urls[index], depth(at: index))
            guard let reached = running[url] ?? failed[url]?.depth, reached >= depth else {
                return .load(url, depth, again: running[url] != nil)
            }
        }
        return nil
    }

    /// Notes that an action is under way.
    mutating func begin(_ action: Action) {
        switch action {
        case .load(let url, let depth, _): running[url] = depth
        case .cancel(let url): running[url] = nil
        }
    }
}
