package import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Sends commands to a server, to the master that sentinels name, or to the nodes of a cluster.
package final class RedisClient: Sendable {
    /// A change of a node.
    package struct Event: Sendable {
        /// The node; nil for the only one, and for a cluster of which no node answers.
        package var address: RedisConfiguration.Address?
        package var change: RedisNode.Event
    }

    package let configuration: RedisConfiguration
    package let group: any EventLoopGroup
    private let options: RedisConnection.Options
    private let router: Router

    private enum Router: Sendable {
        case one(RedisNode)
        case cluster(ClusterRouter)
    }

    /// Creates a client and begins to connect.
    ///
    /// - Parameters:
    ///   - maximumReply: The most bytes of a reply. More is an error of the protocol.
    ///   - report: Called when a node goes up or down.
    /// - Throws: ``RedisError/invalidConfiguration(_:)``, for example for an unreadable certificate.
    package init(
        _ configuration: RedisConfiguration, maximumReply: Int,
        group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        report: @escaping @Sendable (Event) -> Void = { _ in }
    ) throws(RedisError) {
        (self.configuration, self.group) = (configuration, group)
        guard configuration.connectionsPerNode > 0, configuration.failureLimit > 0,
            configuration.commandTimeout > .zero, configuration.connectTimeout > .zero
        else { throw .invalidConfiguration("a number of connections or a time is not positive") }
        var options = RedisConnection.Options(
            connectTimeout: configuration.connectTimeout, limits: RESPParser.Limits(size: maximumReply))
        (options.username, options.password) = (configuration.username, configuration.password)
        options.database = configuration.database
        options.tls = try Self.context(configuration.tls)
        options.tlsServerName = configuration.tlsServerName
        self.options = options
        switch configuration.topology {
        case .single(let address):
            router = .one(
                RedisNode(configuration, options, group: group, report: { report(Event(change: $0)) }) {
                    () throws(RedisError) in address
                })
        case .sentinel(let sentinels, let master):
            guard !sentinels.isEmpty else { throw .invalidConfiguration("no sentinel is named") }
            var asking = options
            (asking.username, asking.password, asking.database) = (nil, configuration.sentinelPassword, 0)
            let lookup = SentinelLookup(sentinels, master: master, options: asking, group: group)
            router = .one(
                RedisNode(
                    configuration, options, group: group, mustBeMaster: true, report: { report(Event(change: $0)) }
                ) { () async throws(RedisError) in try await lookup.address() })
        case .cluster(let seeds):
            guard !seeds.isEmpty, configuration.database == 0 else {
                throw .invalidConfiguration("a cluster needs an address, and has only the database 0")
            }
            router = .cluster(
                ClusterRouter(configuration, options: options, group: group, seeds: seeds, report: report))
        }
    }

    private static func context(_ tls: TLSConfiguration?) throws(RedisError) -> NIOSSLContext? {
        guard let tls else { return nil }
        do {
            return try NIOSSLContext(configuration: tls)
        } catch {
            throw .invalidConfiguration("the TLS settings cannot be used: \(error)")
        }
    }

    /// Sends a command to the node that has a key.
    ///
    /// - Throws: ``RedisError``, also for error replies.
    package func call(
        _ command: RESPCommand, key: String, timeout: Duration? = nil
    ) async throws(RedisError) -> RESPValue {
        let timeout = timeout ?? configuration.commandTimeout
        let reply: RESPValue
        switch router {
        case .one(let node): reply = try await node.call(command, timeout: timeout)
        case .cluster(let router): reply = try await router.call(command, key: key, timeout: timeout)
        }
        if case .error(let text) = reply { throw RedisError(reply: text) }
        return reply
    }

    /// Runs a script where a key is, by its digest if the server has it already.
    package func run(
        _ script: RedisScript, keys: [String], _ arguments: [RESPCommand.Argument], timeout: Duration? = nil
    ) async throws(RedisError) -> RESPValue {
        let rest = [.text("\(keys.count)")] + keys.map { RESPCommand.Argument.text($0) } + arguments
        do throws(RedisError) {
            return try await call(
                RESPCommand(["EVALSHA", .text(script.digest)] + rest), key: keys[0], timeout: timeout)
        } catch {
            guard case .server(let text) = error, text.hasPrefix("NOSCRIPT") else { throw error }
            return try await call(RESPCommand(["EVAL", .text(script.source)] + rest), key: keys[0], timeout: timeout)
        }
    }

    /// The server that has a key; nil if it is not known or down.
    package func address(for key: String) -> RedisConfiguration.Address? {
        switch router {
        case .one(let node): node.address
        case .cluster(let router): router.address(for: key)
        }
    }

    /// Makes a connection of its own to a server.
    package func connection(
        to address: RedisConfiguration.Address, push: @escaping @Sendable ([RESPValue]) -> Void
    ) async throws(RedisError) -> RedisConnection {
        try await RedisConnection.connect(to: address, options, group: group, push: push)
    }

    /// The reason for which no commands can be sent; nil if they can.
    package var error: RedisError? {
        switch router {
        case .one(let node): node.isUp ? nil : node.error ?? .unavailable
        case .cluster(let router): router.error
        }
    }

    /// Ends all connections.
    package func shutDown() {
        switch router {
        case .one(let node): node.shutDown()
        case .cluster(let router): router.shutDown()
        }
    }
}

/// Asks sentinels for the address of a master.
private final class SentinelLookup: Sendable {
    private let sentinels: Mutex<[RedisConfiguration.Address]>
    private let master: String
    private let options: RedisConnection.Options
    private let group: any EventLoopGroup

    init(
        _ sentinels: [RedisConfiguration.Address], master: String, options: RedisConnection.Options,
        group: any EventLoopGroup
    ) {
        self.sentinels = Mutex(sentinels)
        (self.master, self.options, self.group) = (master, options, group)
    }

    /// The address that the first sentinel names that answers.
    func address() async throws(RedisError) -> RedisConfiguration.Address {
        var last = RedisError.noMaster("no sentinel answers")
        for sentinel in sentinels.withLock({ $0 }) {
            do throws(RedisError) {
                let address = try await address(from: sentinel)
                // The next look-up begins with a sentinel that answers.
                sentinels.withLock { all in
                    all.removeAll { $0 == sentinel }
                    all.insert(sentinel, at: 0)
                }
                return address
            } catch {
                last = error
            }
        }
        throw last
    }

    private func address(from sentinel: RedisConfiguration.Address) async throws(RedisError)
        -> RedisConfiguration.Address
    {
        let connection = try await RedisConnection.connect(to: sentinel, options, group: group)
        defer { connection.close() }
        let reply = try await connection.call(
            RESPCommand("SENTINEL", "get-master-addr-by-name", .text(master)), timeout: options.connectTimeout)
        if case .error(let text) = reply { throw RedisError(reply: text) }
        guard let items = reply.items, items.count == 2, let host = items[0].text, !host.isEmpty,
            let port = items[1].integer, (1...65_535).contains(port)
        else { throw .noMaster("\(sentinel) knows no master “\(master)”") }
        return .init(host, Int(port))
    }
}

/// Sends commands to the nodes of a cluster.
private final class ClusterRouter: Sendable {
    private struct State {
        var slots = ClusterSlots()
        var nodes: [RedisConfiguration.Address: RedisNode] = [:]
        /// The callers that wait for the end of the refresh under way; nil if none is.
        var refresh: [Signal]?
        var error: RedisError?
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let configuration: RedisConfiguration
    private let options: RedisConnection.Options
    private let group: any EventLoopGroup
    private let seeds: [RedisConfiguration.Address]
    private let report: @Sendable (RedisClient.Event) -> Void
    /// The nodes that a command may be sent to one after the other.
    private static let mostRedirections = 8

    init(
        _ configuration: RedisConfiguration, options: RedisConnection.Options, group: any EventLoopGroup,
        seeds: [RedisConfiguration.Address], report: @escaping @Sendable (RedisClient.Event) -> Void
    ) {
        (self.configuration, self.options, self.group) = (configuration, options, group)
        (self.seeds, self.report) = (seeds, report)
        refresh()
    }

    var error: RedisError? {
        state.withLock { state in
            guard state.slots.isComplete else { return state.error ?? .unavailable }
            let nodes = state.nodes
            return state.slots.addresses.lazy.compactMap { nodes[$0]?.error }.first
        }
    }

    func address(for key: String) -> RedisConfiguration.Address? {
        state.withLock { state in
            guard let address = state.slots[ClusterSlots.slot(of: key)], state.nodes[address]?.isUp == true else {
                return nil
            }
            return address
        }
    }

    func shutDown() {
        let nodes = state.withLock { state in
            state.isShutDown = true
            return Array(state.nodes.values)
        }
        for node in nodes { node.shutDown() }
    }

    /// Returns a reply, which may be an error reply but no redirection.
    func call(_ command: RESPCommand, key: String, timeout: Duration) async throws(RedisError) -> RESPValue {
        let slot = ClusterSlots.slot(of: key)
        let deadline = ContinuousClock.now + timeout
        var asked: RedisConfiguration.Address?
        var redirections = 0
        var pause = Duration.milliseconds(1)
        while redirections < Self.mostRedirections {
            let left = deadline - .now
            guard left > .zero, !Task.isCancelled else { throw .timedOut }
            let address: RedisConfiguration.Address
            if let asked { address = asked } else { address = try await owner(of: slot, timeout: left) }
            let reply = try await reply(of: address, command, isAsking: asked != nil, timeout: left)
            asked = nil
            guard case .error(let text) = reply else { return reply }
            redirections += 1
            switch ClusterSlots.Redirection(text, asked: address) {
            case .moved(let slot, let owner):
                state.withLock { $0.slots.assign(slot...slot, to: owner) }
                refresh()
            case .ask(let owner): asked = owner
            case nil:
                if text.hasPrefix("CLUSTERDOWN") { refresh() }
                // Keys of one slot are on two nodes until all have moved.
                guard text.hasPrefix("TRYAGAIN") else { return reply }
                redirections = 0
                try? await Task.sleep(for: min(pause, left))
                pause = min(pause * 2, .milliseconds(16))
            }
        }
        throw .tooManyRedirections
    }

    private func reply(
        of address: RedisConfiguration.Address, _ command: RESPCommand, isAsking: Bool, timeout: Duration
    ) async throws(RedisError) -> RESPValue {
        do throws(RedisError) {
            return try await node(address).call(command, isAsking: isAsking, timeout: timeout)
        } catch {
            refresh()
            throw error
        }
    }

    private func owner(of slot: Int, timeout: Duration) async throws(RedisError) -> RedisConfiguration.Address {
        if let owner = state.withLock({ $0.slots[slot] }) { return owner }
        let signal = Signal()
        refresh(signal)
        await signal.wait(atMost: timeout, on: group.any())
        guard let owner = state.withLock({ $0.slots[slot] }) else { throw .unavailable }
        return owner
    }

    private func node(_ address: RedisConfiguration.Address) -> RedisNode {
        state.withLock { state in
            if let node = state.nodes[address] { return node }
            let node = RedisNode(
                configuration, options, group: group,
                report: { [weak self] change in
                    guard let self else { return }
                    report(RedisClient.Event(address: address, change: change))
                    if case .down = change { refresh() }
                },
                resolve: { () throws(RedisError) in address })
            if state.isShutDown { node.shutDown() } else { state.nodes[address] = node }
            return node
        }
    }

    // MARK: Topology

    /// Asks for the assignment of slots anew unless it is being asked for.
    private func refresh(_ signal: Signal? = nil) {
        let isFirst = state.withLock { state in
            defer { state.refresh = (state.refresh ?? []) + (signal.map { [$0] } ?? []) }
            return state.refresh == nil && !state.isShutDown
        }
        guard isFirst else { return }
        Task {
            // Until each slot has a node that answers: a replica takes over seconds after its master has gone.
            var delay = Duration.milliseconds(50)
            while !(await refreshed()) {
                try? await Task.sleep(for: delay)
                delay = min(delay * 2, .milliseconds(400))
            }
            // Not more than ten times a second, however many slots move.
            try? await Task.sleep(for: .milliseconds(100))
            let late = state.withLock { state in
                defer { state.refresh = nil }
                return state.refresh ?? []
            }
            for signal in late { signal.fire() }
        }
    }

    /// Asks once. Returns whether nothing is left to do.
    private func refreshed() async -> Bool {
        guard !state.withLock({ $0.isShutDown }) else { return true }
        let known = state.withLock { state in state.nodes.filter { $0.value.isUp }.map(\.key) }
        var isAnswered = false
        for address in known + seeds.filter({ !known.contains($0) }) {
            do throws(RedisError) {
                install(try await slots(from: address))
                isAnswered = true
            } catch {
                state.withLock { $0.error = error }
            }
            if isAnswered { break }
        }
        let error = state.withLock { $0.error }
        report(RedisClient.Event(address: nil, change: isAnswered ? .up : .down(error ?? .unavailable)))
        let signals = state.withLock { state in
            defer { if state.refresh != nil { state.refresh = [] } }
            return state.refresh ?? []
        }
        for signal in signals { signal.fire() }
        return isAnswered
            && state.withLock { state in
                state.slots.isComplete && state.slots.addresses.allSatisfy { state.nodes[$0]?.error == nil }
            }
    }

    private func slots(from address: RedisConfiguration.Address) async throws(RedisError) -> ClusterSlots {
        let reply: RESPValue
        if state.withLock({ $0.nodes[address]?.isUp }) == true {
            reply = try await node(address).call(
                RESPCommand("CLUSTER", "SLOTS"), timeout: configuration.connectTimeout)
        } else {
            // A seed need not be a master with slots.
            let connection = try await RedisConnection.connect(to: address, options, group: group)
            defer { connection.close() }
            reply = try await connection.call(
                RESPCommand("CLUSTER", "SLOTS"), timeout: configuration.connectTimeout)
        }
        if case .error(let text) = reply { throw RedisError(reply: text) }
        return try ClusterSlots(reply: reply, asked: address)
    }

    private func install(_ slots: ClusterSlots) {
        let gone = state.withLock { state in
            state.slots = slots
            return state.nodes.filter { !slots.addresses.contains($0.key) }
        }
        for address in slots.addresses { _ = node(address) }
        guard !gone.isEmpty else { return }
        // Commands are on their way to them, and a node that knows less than the others may have been asked.
        Task { [weak self] in
            try? await Task.sleep(for: .seconds(5))
            self?.remove(gone)
        }
    }

    /// Ends the connections to nodes that still have no slots.
    private func remove(_ gone: [RedisConfiguration.Address: RedisNode]) {
        let removed = state.withLock { state in
            let removed = gone.filter { !state.slots.addresses.contains($0.key) && state.nodes[$0.key] === $0.value }
            for address in removed.keys { state.nodes[address] = nil }
            return removed
        }
        for node in removed.values { node.shutDown() }
    }
}
