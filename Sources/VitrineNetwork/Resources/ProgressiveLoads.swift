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
