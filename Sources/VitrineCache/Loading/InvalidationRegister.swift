import VitrineCore

/// The running loads of a cache. It keeps a load from storing its value if the entry was changed after the load began.
///
/// A load takes a ``Ticket`` before its first lookup and stores only while the ticket is valid. A change of an entry
/// invalidates the tickets of the entry in the same step.
package final class InvalidationRegister: Sendable {
    /// One load's right to store. Ends with the object.
    package final class Ticket: Sendable {
        package let slot: MemoryKey
        private let register: InvalidationRegister
        fileprivate let id: Int
        /// The number of purges when it was taken.
        fileprivate let began: Int

        fileprivate init(_ slot: MemoryKey, id: Int, began: Int, register: InvalidationRegister) {
            self.slot = slot
            self.id = id
            self.began = began
            self.register = register
        }

        deinit { register.end(slot, id) }

        /// Runs `body` if the load may still store. `body` must be short and must not use the register. It returns the
        /// values that leave the cache, so that they are released after unlocking.
        ///
        /// - Parameter tags: The tags of the stored value. A purge of one of them ends the right.
        /// - Returns: The result of `body`; nil if it did not run.
        @discardableResult
        package func ifValid<T>(_ tags: EntryTags = .none, _ body: () -> T) -> T? {
            register.ifValid(self, tags: tags, body: body)
        }

        /// Whether the load may still store.
        package var isValid: Bool { ifValid {} != nil }
    }

    /// Distinguishes loads that began before and after a change of their slot. It is part of the identity of a shared
    /// load, so that a request does not join an outdated one.
    package struct Epoch: Hashable, Sendable {
        fileprivate var generation: Int
        fileprivate var version: Int
    }

    private struct Running {
        var valid: Set<Int> = []
        var count = 0
        /// How often the slot was changed while tickets were out.
        var version = 0
    }

    private struct State {
        var generation = 0
        var lastID = 0
        var running: [MemoryKey: Running] = [:]
        var purges = PurgeRecords()
    }

    private let state = Locked(State())

    package init() {}

    /// A ticket for a load that begins now.
    package func begin(_ slot: MemoryKey) -> Ticket {
        let (id, began) = state.withLock { state in
            state.lastID += 1
            state.running[slot, default: Running()].valid.insert(state.lastID)
            state.running[slot]?.count += 1
            return (state.lastID, state.purges.last)
        }
        return Ticket(slot, id: id, began: began, register: self)
    }

    /// The number of purges so far, for a change that begins now.
    var purgeCount: Int { state.withLock { $0.purges.last } }

    /// How many tickets are out. For tests.
    package var count: Int { state.withLock { $0.running.values.reduce(0) { $0 + $1.count } } }

    /// The epoch a load of a slot belongs to that begins now.
    package func epoch(of slot: MemoryKey) -> Epoch {
        state.withLock { Epoch(generation: $0.generation, version: $0.running[slot]?.version ?? 0) }
    }

    /// Changes a slot and invalidates its running loads. `body` must be short and must not use the register. It returns
    /// the values that leave the cache, so that they are released after unlocking.
    package func change<T>(_ slot: MemoryKey, _ body: () -> T) -> T {
        change(slot, tags: .none, since: 0) { _ in body() }
    }

    /// Changes a slot to a value with tags. `body` learns whether one of the tags was purged since the change began.
    ///
    /// - Parameter began: ``purgeCount`` when the change began.
    func change<T>(_ slot: MemoryKey, tags: EntryTags, since began: Int, _ body: (_ isPurged: Bool) -> T) -> T {
        state.withLock { state in
            if let index = state.running.index(forKey: slot) {
                state.running.values[index].version += 1
                state.running.values[index].valid = []
            }
            return body(state.purges.contains(tags, after: began))
        }
    }

    /// Purges a tag: no load or change that runs now stores a value with the tag any more. Requests from now on do not
    /// join loads that run, as their tags are not known yet.
    func purge<T>(_ tag: UInt64, _ body: () -> T) -> T {
        state.withLock { state in
            state.generation += 1
            state.purges.add(tag)
            return body()
        }
    }

    /// Changes all slots of a format, or of all: no load that runs now stores any more.
    @discardableResult
    package func changeAll<T>(format: Int? = nil, _ body: () -> T) -> T {
        state.withLock { state in
            state.generation += 1
            for index in state.running.indices where format == nil || state.running.keys[index].format == format {
                state.running.values[index].valid = []
            }
            return body()
        }
    }

    private func ifValid<T>(_ ticket: Ticket, tags: EntryTags, body: () -> T) -> T? {
        state.withLock { state in
            guard state.running[ticket.slot]?.valid.contains(ticket.id) == true,
                !state.purges.contains(tags, after: ticket.began)
            else { return nil }
            return body()
        }
    }

    private func end(_ slot: MemoryKey, _ id: Int) {
        state.withLock { state in
            guard let index = state.running.index(forKey: slot) else { return }
            state.running.values[index].valid.remove(id)
            state.running.values[index].count -= 1
            if state.running.values[index].count == 0 { state.running.remove(at: index) }
        }
    }
}
