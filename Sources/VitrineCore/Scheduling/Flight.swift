/// One run of the work for a key, as the work sees it.
///
/// Everyone who asked for the key waits for this run. The work reads ``priority`` (and follows it), stops when
/// ``cancellation`` says so, and ends with ``finish(_:)``.
public final class Flight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    // Inlinable throughout: a generic type that another module cannot specialize costs several times as much.
    @usableFromInline
    struct Subscriber {
        @usableFromInline let id: Int
        @usableFromInline var priority: Priority
        @usableFromInline let deliver: SingleFlight<Key, Value>.CallbackQueue

        @inlinable
        init(id: Int, priority: Priority, deliver: @escaping SingleFlight<Key, Value>.CallbackQueue) {
            self.id = id
            self.priority = priority
            self.deliver = deliver
        }
    }

    @usableFromInline
    struct Subscribers {
        @usableFromInline var lastID = 0
        @usableFromInline var all: [Subscriber] = []

        @inlinable
        init() {}

        @inlinable
        mutating func add(_ priority: Priority, _ deliver: @escaping SingleFlight<Key, Value>.CallbackQueue) -> Int {
            lastID += 1
            all.append(Subscriber(id: lastID, priority: priority, deliver: deliver))
            return lastID
        }

        @inlinable
        mutating func remove(_ id: Int) -> Subscriber? {
            all.firstIndex { $0.id == id }.map { all.remove(at: $0) }
        }

        @inlinable
        mutating func removeAll() -> [Subscriber] {
            defer { all = [] }
            return all
        }

        /// - Returns: Whether there is such a subscriber.
        @inlinable
        mutating func setPriority(_ priority: Priority, of id: Int) -> Bool {
            guard let index = all.firstIndex(where: { $0.id == id }) else { return false }
            all[index].priority = priority
            return true
        }

        @inlinable
        var highestPriority: Priority {
            var highest = Priority.veryLow
            for subscriber in all where subscriber.priority > highest { highest = subscriber.priority }
            return highest
        }
    }

    /// What the run is for.
    public let key: Key
    /// The highest priority among the subscribers, kept up to date while they join, leave and change (R92).
    public let priority: PrioritySource
    /// Cancelled when the last subscriber has left (R93).
    public let cancellation = CancellationToken()

    @usableFromInline let owner: SingleFlight<Key, Value>
    /// Joining and emptying happen under the owner's lock as well, so that nobody joins a run that is over.
    @usableFromInline let subscribers = Locked(Subscribers())

    @inlinable
    init(key: Key, priority: Priority, owner: SingleFlight<Key, Value>) {
        self.key = key
        self.priority = PrioritySource(priority)
        self.owner = owner
    }

    /// Gives the result to every subscriber, in the order in which they joined. Only the first call counts, and
    /// none after the run was cancelled.
    @inlinable
    public func finish(_ result: Result<Value, any Error>) {
        for subscriber in owner.end(self) { subscriber.deliver(result) }
    }
}
