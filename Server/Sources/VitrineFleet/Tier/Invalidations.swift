import NIOCore
import Synchronization

extension RemoteTier {
    /// Values that are no longer valid.
    public enum Invalidation: Sendable, Hashable {
        /// One value.
        case key(RemoteKey)
        /// All values of the group with this digest; see ``RemoteKey/digest(of:)``.
        case group(String)
        /// All values with this digest of a tag, which only the nodes know. None of the tier's values count any more.
        case tag(String)
        /// All values: all were purged, or it cannot be told which.
        case all

        /// `GROUP/NAME` or `GROUP`.
        init?(_ text: some StringProtocol) {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard (1...2).contains(parts.count), parts.allSatisfy({ RemoteKey.isDigest($0) }) else { return nil }
            self =
                parts.count == 1
                ? .group(String(parts[0]))
                : .key(RemoteKey(groupDigest: String(parts[0]), nameDigest: String(parts[1])))
        }

        /// Whether a key is among the values, or may be.
        public func includes(_ key: RemoteKey) -> Bool {
            switch self {
            case .key(let other): key == other
            case .group(let group): key.group == group
            case .tag, .all: true
            }
        }
    }

    /// The purges of all nodes, also of this one, in order.
    ///
    /// A purge counts as applied when the next one is asked for. Only one task may iterate. More than 10,000 purges
    /// that were not taken become ``Invalidation/all``. The sequence ends with ``shutDown()``.
    public struct Invalidations: AsyncSequence, Sendable {
        let queue: InvalidationQueue

        /// Gives one purge after the other.
        public struct Iterator: AsyncIteratorProtocol {
            let queue: InvalidationQueue

            public mutating func next() async -> Invalidation? { await queue.next() }
        }

        public func makeAsyncIterator() -> Iterator { Iterator(queue: queue) }
    }
}

/// Purges on their way to the caches of this node.
final class InvalidationQueue: Sendable {
    private struct State {
        var items = CircularBuffer<(RemoteTier.Invalidation, TierJournal.Position?)>()
        /// The position of the last one that was taken, and of the last one that was handled.
        var taken: TierJournal.Position?
        var handled: TierJournal.Position?
        var waiting: CheckedContinuation<RemoteTier.Invalidation?, Never>?
        var isTaken = false
        var isEnded = false
    }

    /// More are joined to a purge of everything.
    static let limit = 10_000
    private let state = Mutex(State())

    func begin(at position: TierJournal.Position) { state.withLock { $0.handled = position } }

    func append(_ invalidation: RemoteTier.Invalidation, position: TierJournal.Position?) {
        state.withLock { state in
            guard !state.isEnded else { return }
            if let waiting = state.waiting {
                (state.waiting, state.taken, state.isTaken) = (nil, position, true)
                waiting.resume(returning: invalidation)
            } else if invalidation == .all || state.items.count >= Self.limit {
                state.items = [(.all, position)]
            } else {
                state.items.append((invalidation, position))
            }
        }
    }

    /// The next one. The one before counts as handled.
    func next() async -> RemoteTier.Invalidation? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { state in
                    if state.isTaken { (state.handled, state.isTaken) = (state.taken ?? state.handled, false) }
                    if !state.items.isEmpty {
                        let (item, position) = state.items.removeFirst()
                        (state.taken, state.isTaken) = (position, true)
                        continuation.resume(returning: item)
                    } else if state.isEnded || Task.isCancelled || state.waiting != nil {
                        continuation.resume(returning: nil)
                    } else {
                        state.waiting = continuation
                    }
                }
            }
        } onCancel: {
            state.withLock { state in
                state.waiting?.resume(returning: nil)
                state.waiting = nil
            }
        }
    }

    /// The position up to which all is handled: the end of the journal if nothing is left to do.
    func handled(through last: TierJournal.Position?) -> TierJournal.Position? {
        state.withLock { state in
            // Someone waits for the next one: all others are handled.
            state.waiting != nil && state.items.isEmpty ? last : state.handled
        }
    }

    func end() {
        state.withLock { state in
            state.isEnded = true
            state.waiting?.resume(returning: nil)
            state.waiting = nil
        }
    }
}
