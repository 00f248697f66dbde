#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// Performs the actions of a ``ProgressiveState``, one thread at a time, and reports changes.
final class ProgressiveLoads<Value: CacheableValue>: ResourceListener {
    private struct Storage {
        var list: ProgressiveState<Value>
        var isBusy = false
        var toldVersion = 0
        var wasSettled = true
    }

    private let resources: ObservedCache<Value>
    private let format: FormatName
    private let priority: RequestPriority
    private let onChange: @Sendable () -> Void
    private let storage: Locked<Storage>

    /// Creates an empty list.
    ///
    /// - Parameters:
    ///   - resources: The cache that loads the URLs.
    ///   - format: The format of the values.
    ///   - secondaryDepth: The furthest cache level for URLs after the first.
    ///   - priority: The priority of the loads.
    ///   - onChange: Called after the shown value has changed, and after the last load.
    init(
        _ resources: ObservedCache<Value>, format: FormatName, secondaryDepth: CacheLevel, priority: RequestPriority,
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
        resources.cancel(url, format: format, observer: ObjectIdentifier(self), policy: policy)
    }

    /// The current state of the list.
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

    // MARK: Actions

    private enum QueueSlot {
        case act(ProgressiveState<Value>.Action)
        case tell
        case rest
    }

    /// Performs all actions, then reports changes. If another thread is busy with that, it does the work.
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
            // The outcome of the earlier request would be taken for that of the later one.
            if again { leave(url, .processing) }
            let value = resources.value(at: url, format: format, depth: depth, priority: priority, listener: self)
            if let value {
                storage.withLock { $0.list.loaded(value, url) }
            } else if depth == .memory {
                storage.withLock { $0.list.failed(.notFound(key: resources.key(for: url)), url) }
            }
        }
    }
}

/// The state of a progressive list. It returns the actions to perform, but performs none itself.
struct ProgressiveState<Value: CacheableValue> {
    /// An action to perform.
    enum Action {
        /// Load a URL to a depth; again if a load to a lesser depth is running.
        case load(URL, CacheLevel, again: Bool)
        /// Cancel the load of a URL.
        case cancel(URL)
    }

    let secondaryDepth: CacheLevel
    private(set) var urls: [URL] = []
    /// The positions of the URLs.
    private var places: [URL: Int] = [:]
    private(set) var shown: ProgressiveValue<Value>?
    /// The number of changes of the shown value.
    private(set) var version = 0
    /// The running loads with their depths.
    private(set) var running: [URL: CacheLevel] = [:]
    /// The failed loads with their depths and errors.
    private var failed: [URL: (depth: CacheLevel, error: CacheError)] = [:]
    private var isPaused = false

    init(secondaryDepth: CacheLevel) { self.secondaryDepth = secondaryDepth }

    /// The error of the first URL, if it has failed.
    var failure: CacheError? {
        guard let best = urls.first, let failed = failed[best], failed.depth >= depth(at: 0) else { return nil }
        return failed.error
    }

    /// Whether no better value will arrive.
    var isSettled: Bool { shown?.isBest == true || urls.isEmpty || next() == nil && running.isEmpty }

    /// Returns the depth of a position.
    private func depth(at index: Int) -> CacheLevel { index == 0 ? .source : secondaryDepth }

    // MARK: Changes

    /// Replaces the URLs. The shown value stays if its URL is in the new list.
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

    /// Pauses until the next list.
    ///
    /// - Returns: The URLs of the running loads.
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

    // MARK: Actions

    /// Returns the next action; nil for none. URLs after the shown one are not loaded.
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

    /// Records the start of an action.
    mutating func begin(_ action: Action) {
        switch action {
        case .load(let url, let depth, _): running[url] = depth
        case .cancel(let url): running[url] = nil
        }
    }
}
