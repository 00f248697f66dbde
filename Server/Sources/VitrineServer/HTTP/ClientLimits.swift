package import NIOCore
import Synchronization

/// Counts the requests under way of each client and of all, before any work is done for them.
package final class RequestCounter: Sendable {
    private struct State {
        var total = 0
        var clients: [ClientAddress: Int] = [:]
    }

    private let state = Mutex(State())
    private let most: Int
    private let mostOfClient: Int

    /// - Parameters:
    ///   - most: The requests of all clients at once.
    ///   - mostOfClient: The requests of one client at once; an IPv6 client is its /64 network.
    package init(most: Int, mostOfClient: Int) { (self.most, self.mostOfClient) = (most, mostOfClient) }

    /// Counts a request; nil if it may begin, else the answer for it.
    func begin(_ client: ClientAddress) -> RequestError? {
        state.withLock { state in
            guard state.total < most else {
                return RequestError(
                    503, code: "overloaded", reason: "There are too many requests under way.", retryAfter: 1)
            }
            let own = state.clients[client.client] ?? 0
            // The peers of a Unix socket are proxies, which speak for any number of clients.
            guard own < mostOfClient || client.isUnix else {
                return RequestError(
                    429, code: "client-limit", reason: "There are too many requests of this client under way.",
                    retryAfter: 1)
            }
            state.total += 1
            state.clients[client.client] = own + 1
            return nil
        }
    }

    /// Counts the end of a request that began.
    func end(_ client: ClientAddress) {
        state.withLock { state in
            state.total -= 1
            guard let own = state.clients[client.client] else { return }
            state.clients[client.client] = own > 1 ? own - 1 : nil
        }
    }

    /// The requests under way.
    package var count: Int { state.withLock { $0.total } }
}

/// Counts the bytes of answers that wait to be sent, each memory once, and ends the connections that hold most of them
/// above a limit.
package final class AnswerMemory: Sendable {
    /// Shorter bodies are not counted: they are less than the cost of a connection.
    static let leastCount = 65_536

    /// A body that waits to be sent.
    struct Part: Sendable {
        fileprivate let storage: UInt
        fileprivate let connection: ObjectIdentifier
        let count: Int
    }

    private struct State {
        /// The memory of bodies by its address, which answers may share.
        var storages: [UInt: (count: Int, users: Int)] = [:]
        var total = 0
        var connections: [ObjectIdentifier: (channel: any Channel, bytes: Int)] = [:]
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: The bytes of all connections.
    package init(limit: Int) { self.limit = limit }

    /// Counts a body until ``remove(_:)``.
    func add(_ body: ByteBuffer, of channel: any Channel) -> Part {
        let storage = body.withVeryUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        let part = Part(storage: storage, connection: ObjectIdentifier(channel), count: body.readableBytes)
        let largest = state.withLock { state -> (any Channel)? in
            let known = state.storages[storage]
            state.storages[storage] = (max(known?.count ?? 0, part.count), (known?.users ?? 0) + 1)
            state.total += max(part.count - (known?.count ?? 0), 0)
            state.connections[part.connection, default: (channel, 0)].bytes += part.count
            guard state.total > limit else { return nil }
            return state.connections.values.max { $0.bytes < $1.bytes }?.channel
        }
        // Who takes least of the most is the one to go.
        largest?.close(promise: nil)
        return part
    }

    func remove(_ part: Part) {
        state.withLock { state in
            if let known = state.storages[part.storage] {
                if known.users > 1 {
                    state.storages[part.storage] = (known.count, known.users - 1)
                } else {
                    state.storages[part.storage] = nil
                    state.total -= known.count
                }
            }
            guard let own = state.connections[part.connection] else { return }
            state.connections[part.connection] = own.bytes > part.count ? (own.channel, own.bytes - part.count) : nil
        }
    }

    /// The bytes that a connection waits to send.
    func bytes(of channel: any Channel) -> Int {
        state.withLock { $0.connections[ObjectIdentifier(channel)]?.bytes ?? 0 }
    }

    /// The bytes of all connections.
    package var count: Int { state.withLock { $0.total } }
}

/// Decides about requests on their event loops, before a task is made for them.
package struct RequestGate: Sendable {
    let counter: RequestCounter
    let answers: AnswerMemory
    /// Returns the client of a connection, by its X-Forwarded-For fields too.
    let client: @Sendable (_ peer: SocketAddress?, _ forwarded: [String]) -> ClientAddress

    package init(
        counter: RequestCounter, answers: AnswerMemory,
        client: @escaping @Sendable (_ peer: SocketAddress?, _ forwarded: [String]) -> ClientAddress
    ) {
        (self.counter, self.answers, self.client) = (counter, answers, client)
    }

    /// The requests under way that are counted.
    package var requestCount: Int { counter.count }
    /// The bytes of long answers that wait for their clients.
    package var answerBytes: Int { answers.count }

    /// Monitors are answered however busy the server is.
    static func isHealth(_ target: some StringProtocol) -> Bool { target == "/health" || target == "/ready" }
}
