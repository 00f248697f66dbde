import Foundation
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Follows the purges of all nodes, and the announcements of values that this node waits for.
///
/// Purges stand in a journal, a stream of Redis, and are announced on a channel. Each announcement names the entry
/// before its own, so that a node that has missed one reads the journal from its last position. If the journal does not
/// contain that position, everything counts as purged.
final class TierJournal: Sendable {
    /// The position in a stream.
    struct Position: Comparable, Sendable, CustomStringConvertible {
        var time: UInt64
        var sequence: UInt64

        init?(_ text: some StringProtocol) {
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 2, let time = UInt64(parts[0]), let sequence = UInt64(parts[1]) else { return nil }
            (self.time, self.sequence) = (time, sequence)
        }

        static func < (first: Position, second: Position) -> Bool {
            (first.time, first.sequence) < (second.time, second.sequence)
        }

        var description: String { "\(time)-\(sequence)" }
    }

    private struct State {
        var epoch: String?
        var position: Position?
        var isConnected = false
        /// The server's time less the time since this machine started.
        var offset: Duration?
        /// Ends the pause until the next heartbeat.
        var pulse: Signal?
        /// Those who wait for the first connection.
        var ready: [Signal] = []
        /// The position when the connection was made.
        var opened: Position?
        var saved: Position?
        var lastError: RedisError?
    }

    private let state = Mutex(State())
    private let client: RedisClient
    private let namespace: String
    private let positionPath: String?
    private let heartbeat: Duration
    private let uptime: @Sendable () -> Duration
    private let log: TierLog
    let invalidations = InvalidationQueue()
    private let wake: @Sendable (RemoteTier.Invalidation) -> Void
    private let purged: @Sendable (RemoteTier.Invalidation) -> Void
    private let opened: @Sendable () async -> Void

    /// How many purges the journal keeps.
    static let length = 10_000

    var channel: String { "{\(namespace)}:events" }
    /// The channel of this node, for the values that it waits for.
    let nodeChannel: String
    var journalKey: String { "{\(namespace)}:journal" }
    var epochKey: String { "{\(namespace)}:epoch" }

    /// - Parameters:
    ///   - wake: Called when values that are awaited may be there.
    ///   - purged: Called for each purge, in order, before it is given to ``invalidations``.
    ///   - opened: Called when the connection is made, and at each heartbeat.
    init(
        _ client: RedisClient, configuration: RemoteTier.Configuration, log: TierLog,
        wake: @escaping @Sendable (RemoteTier.Invalidation) -> Void,
        purged: @escaping @Sendable (RemoteTier.Invalidation) -> Void,
        opened: @escaping @Sendable () async -> Void
    ) {
        (self.client, self.log) = (client, log)
        (namespace, positionPath) = (configuration.namespace, configuration.positionPath)
        nodeChannel = "{\(configuration.namespace)}:events:\(RemoteTier.randomDigits())"
        (heartbeat, uptime) = (configuration.heartbeat, configuration.uptime)
        (self.wake, self.purged, self.opened) = (wake, purged, opened)
    }

    /// The epoch of the namespace; nil as long as it is not known.
    var epoch: String? { state.withLock { $0.epoch } }

    var isConnected: Bool { state.withLock { $0.isConnected } }

    /// Whether purges are followed, and those from before the connection was made are applied.
    var isCaughtUp: Bool {
        let (position, opened) = state.withLock { ($0.position, $0.isConnected ? $0.opened : nil) }
        guard let opened, let handled = invalidations.handled(through: position) else { return false }
        return handled >= opened
    }

    var lastError: RedisError? { state.withLock { $0.lastError } }

    /// The time of day by the clock of the server, which all nodes share; nil as long as it is not known.
    var now: Duration? {
        let uptime = uptime()
        return state.withLock { $0.offset.map { $0 + uptime } }
    }

    /// Waits until purges are followed.
    func waitUntilConnected(atMost time: Duration) async {
        let signal = Signal()
        let isReady = state.withLock { state in
            if !state.isConnected { state.ready.append(signal) }
            return state.isConnected
        }
        if !isReady { await signal.wait(atMost: time, on: client.group.any()) }
    }

    // MARK: Following

    /// Runs until the task is cancelled.
    func run() async {
        await load()
        var delay = Duration.milliseconds(25)
        while !Task.isCancelled {
            do throws(RedisError) {
                try await follow()
            } catch {
                let wasConnected = state.withLock { state in
                    defer { (state.isConnected, state.pulse) = (false, nil) }
                    // That the server is not asked at the moment is no reason by itself.
                    if error != .unavailable { state.lastError = error }
                    return state.isConnected
                }
                if Task.isCancelled {
                    // The end of the tier is no failure.
                } else if wasConnected {
                    delay = .milliseconds(25)
                    log.note("journal", "Purges of other nodes are not followed at the moment: \(error)")
                } else if error.isLasting {
                    log.note("journal", "Purges of other nodes cannot be followed: \(error)")
                }
                // Announcements may be lost from now on.
                wake(.all)
                delay = min(delay * 2, error.isLasting ? .seconds(5) : .milliseconds(400))
                try? await Task.sleep(for: delay)
            }
        }
        // In a task of its own: this one is cancelled.
        await Task { await self.save() }.value
    }

    private func follow() async throws(RedisError) {
        // A cluster whose slots are not known yet is asked for them.
        guard let address = client.address(for: journalKey) else {
            _ = try await client.call(
                RESPCommand("EXISTS", .text(journalKey)), key: journalKey,
                timeout: client.configuration.connectTimeout)
            throw .unavailable
        }
        let connection = try await client.connection(to: address) { [weak self] in self?.received($0) }
        defer { connection.close() }
        connection.onClose { [weak self] in self?.state.withLock { $0.pulse }?.fire() }
        connection.send(RESPCommand("SUBSCRIBE", .text(channel), .text(nodeChannel)))
        while !Task.isCancelled {
            let pulse = Signal()
            state.withLock { $0.pulse = pulse }
            // The reply to a refused subscription arrives in the place of this one.
            let reply = try await connection.call(
                RESPCommand("PING", "vitrine"), timeout: client.configuration.connectTimeout)
            if case .error(let text) = reply { throw RedisError(reply: text) }
            guard reply.text == "vitrine" else { throw .protocolViolation("another reply to PING") }
            try await open()
            let ready = state.withLock { state in
                if !state.isConnected { state.opened = state.position }
                (state.isConnected, state.lastError) = (true, nil)
                defer { state.ready = [] }
                return state.ready
            }
            for signal in ready { signal.fire() }
            log.clear("journal")
            await opened()
            await save()
            await pulse.wait(atMost: heartbeat, on: client.group.any())
            // The slot of the journal may have another master by now.
            guard let now = client.address(for: journalKey), now == address else { throw .unavailable }
        }
    }

    /// Learns the epoch and the time, and reads the purges since the last position.
    private func open() async throws(RedisError) {
        let sent = uptime()
        let reply = try await client.run(
            TierScripts.open, keys: [epochKey, journalKey], [.text(RemoteTier.randomDigits())],
            timeout: client.configuration.connectTimeout)
        let received = uptime()
        guard let items = reply.items, items.count == 4, let epoch = items[0].text, RemoteTier.isRandomDigits(epoch),
            let last = items[1].text.flatMap({ Position($0) }), let seconds = items[2].integer,
            let micros = items[3].integer, (0..<100_000_000_000).contains(seconds), (0..<1_000_000).contains(micros)
        else { throw .protocolViolation("the epoch or the journal of the namespace is malformed") }
        let offset = Duration.seconds(seconds) + .microseconds(micros) - (sent + received) / 2
        let (isNew, position) = state.withLock { state -> (Bool, Position?) in
            state.offset = offset
            if let position = state.position, position >= last, state.epoch == epoch { return (false, last) }
            return (true, state.position)
        }
        guard isNew else { return }
        let entries = position == nil ? [] : try await entries(since: position)
        apply(entries, since: position, last: last, epoch: epoch)
    }

    private func entries(since position: Position?) async throws(RedisError) -> [(Position, String, String)] {
        let reply = try await client.call(
            RESPCommand("XRANGE", .text(journalKey), "\(position?.description ?? "-")", "+"), key: journalKey,
            timeout: client.configuration.connectTimeout)
        guard let items = reply.items else { throw .protocolViolation("the journal is malformed") }
        var entries: [(Position, String, String)] = []
        for item in items {
            guard let fields = item.items, fields.count == 2, let id = fields[0].text.flatMap({ Position($0) }) else {
                throw .protocolViolation("the journal is malformed")
            }
            // What another application has written may stand for any purge.
            entries.append((id, fields[1]["k"]?.text ?? "", fields[1]["c"]?.text ?? ""))
        }
        return entries
    }

    /// Applies entries of the journal from a position on.
    private func apply(
        _ entries: [(Position, String, String)], since position: Position?, last: Position, epoch: String
    ) {
        state.withLock { state in
            let isContinuous = position != nil && entries.first?.0 == position
            if isContinuous {
                for (id, kind, content) in entries where state.position.map({ id > $0 }) ?? true {
                    state.position = id
                    apply(kind, content: content, state: &state)
                }
            }
            if !isContinuous || state.epoch != epoch {
                state.epoch = epoch
                state.position = max(last, entries.last?.0 ?? last)
                publish(.all, state)
            }
        }
    }

    private func apply(_ kind: some StringProtocol, content: some StringProtocol, state: inout State) {
        switch kind {
        case "begin": break
        case "key": publish(RemoteTier.Invalidation(content) ?? .all, state)
        case "group": publish(RemoteTier.Invalidation(content) ?? .all, state)
        case "tag":
            let parts = content.split(separator: "/")
            guard parts.count == 2, RemoteKey.isDigest(parts[0]), RemoteTier.isRandomDigits(parts[1]) else {
                publish(.all, state)
                return
            }
            state.epoch = String(parts[1])
            publish(.tag(String(parts[0])), state)
        default:
            if kind == "all", RemoteTier.isRandomDigits(content) { state.epoch = String(content) }
            publish(.all, state)
        }
    }

    private func publish(_ invalidation: RemoteTier.Invalidation, _ state: State) {
        purged(invalidation)
        invalidations.append(invalidation, position: state.position)
    }

    // MARK: Announcements

    /// Handles a push. Runs on an event loop.
    private func received(_ items: [RESPValue]) {
        // Other applications may use the channel: what is not understood is ignored.
        guard items.count == 3, items[0].text == "message", let source = items[1].text,
            source == channel || source == nodeChannel,
            let bytes = items[2].bytes, bytes.readableBytes <= 512
        else { return }
        let text = String(buffer: bytes)
        let parts = text.split(separator: " ")
        switch parts.first {
        case "wake" where parts.count == 2:
            if let content = RemoteTier.Invalidation(parts[1]) { wake(content) }
        case "purge" where parts.count == 5:
            guard let prior = Position(parts[1]), let id = Position(parts[2]) else { return }
            let pulse = state.withLock { state -> Signal? in
                guard let position = state.position, id > position else { return nil }
                // Something is missing: the journal has it.
                guard position == prior else { return state.pulse }
                state.position = id
                apply(parts[3], content: parts[4], state: &state)
                return nil
            }
            pulse?.fire()
        default: break
        }
    }

    // MARK: Position

    /// Reads the position up to which an earlier process has applied purges.
    private func load() async {
        guard let positionPath else { return }
        let text = try? await NIOThreadPool.singleton.runIfActive {
            try String(contentsOfFile: positionPath, encoding: .utf8)
        }
        let parts = (text ?? "").split(whereSeparator: \.isWhitespace)
        guard parts.count == 4, parts[0] == "vitrine-fleet-1", parts[1] == namespace,
            RemoteTier.isRandomDigits(parts[2]), let position = Position(parts[3])
        else { return }
        state.withLock { ($0.epoch, $0.position, $0.saved) = (String(parts[2]), position, position) }
        invalidations.begin(at: position)
    }

    /// Writes the position up to which purges were applied.
    private func save() async {
        guard let positionPath else { return }
        let handled = invalidations.handled(through: state.withLock { $0.position })
        let line = state.withLock { state -> String? in
            guard let handled, let epoch = state.epoch, handled != state.saved else { return nil }
            state.saved = handled
            return "vitrine-fleet-1 \(namespace) \(epoch) \(handled)\n"
        }
        guard let line else { return }
        do {
            try await NIOThreadPool.singleton.runIfActive {
                try Data(line.utf8).write(to: URL(fileURLWithPath: positionPath), options: .atomic)
            }
        } catch {
            log.note("position", "The position in the journal cannot be saved in \(positionPath): \(error)")
        }
    }

    /// Ends ``invalidations``.
    func end() { invalidations.end() }
}

/// Logs each kind of failure once, until it has ended.
final class TierLog: Sendable {
    private let logger: Logger
    private let noted = Mutex(Set<String>())

    init(_ logger: Logger) { self.logger = logger }

    /// Returns whether the failure is new.
    @discardableResult func note(_ kind: String, _ message: @autoclosure () -> String) -> Bool {
        guard noted.withLock({ $0.count < 1_024 && $0.insert(kind).inserted }) else { return false }
        logger.warning("\(message())")
        return true
    }

    func clear(_ kind: String) {
        guard noted.withLock({ $0.remove(kind) }) != nil else { return }
        logger.notice("The shared tier works again: \(kind)")
    }
}
