import Foundation
import NIOCore
import NIOPosix
import Synchronization
import VitrineFleet

/// One kind of operation by a number of callers, each of which waits for its reply.
struct Operations {
    let url: String
    let kind: String
    let callers: Int
    let seconds: Int
    let size: Int
    /// Whether the callers run on the event loops of the connections.
    var loops = false

    private static let keys = 100

    func run() async throws -> Report {
        var redis = try RedisConfiguration(url: url)
        redis.commandTimeout = .seconds(10)
        let operation = try await operation(redis)
        // The first connections are made, and the keys exist.
        for index in 0..<2 * Self.keys { try await operation(index) }
        let executors = loops ? loopExecutors() : []
        let began = ContinuousClock.now
        let (end, before) = (began + .seconds(seconds), processorTime())
        let times = try await withThrowingTaskGroup(of: [Duration].self) { group in
            for caller in 0..<callers {
                group.addTask(executorPreference: executors.isEmpty ? nil : executors[caller % executors.count]) {
                    var times: [Duration] = []
                    var (index, last) = (caller, ContinuousClock.now)
                    while last < end {
                        try await operation(index)
                        index += callers
                        let now = ContinuousClock.now
                        times.append(now - last)
                        last = now
                    }
                    return times
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let elapsed = ContinuousClock.now - began
        var report = Report()
        report.add("rate", Double(times.count) / (elapsed.milliseconds / 1_000))
        report.add("time", times)
        report.add("cpu", (processorTime() - before).milliseconds * 1_000 / Double(max(times.count, 1)))
        report.add("memory", peakMemory())
        return report
    }

    private func loopExecutors() -> [EventLoopTaskExecutor] {
        MultiThreadedEventLoopGroup.singleton.makeIterator().map { EventLoopTaskExecutor($0) }
    }

    /// One operation on the key of an index.
    private func operation(_ redis: RedisConfiguration) async throws -> @Sendable (Int) async throws -> Void {
        let size = size
        let payload = ByteBuffer(bytes: (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 167) })
        // Those that redis-benchmark uses with `-r 100`.
        let keys = (0..<Self.keys).map { "key:" + String(repeating: "0", count: 12 - "\($0)".count) + "\($0)" }
        guard kind != "lookup", kind != "store" else {
            let tier = try RemoteTier(.init(redis: redis, namespace: "benchmark"))
            try await tier.connect()
            let keys = keys.map { RemoteKey($0) }
            let stored = Counter()
            guard kind == "lookup" else {
                // A miss, a lease and a store. Each run has names of its own.
                let run = UInt64.random(in: .min ... .max)
                return { _ in
                    guard case .lease(let lease) = await tier.lookup(RemoteKey("\(run) \(stored.next())")) else {
                        throw RedisError.unavailable
                    }
                    lease.store(payload, freshFor: .seconds(3_600))
                    await tier.flush()
                }
            }
            return { index in
                switch await tier.lookup(keys[index % keys.count]) {
                case .value(let value, _):
                    guard value.contents.readableBytes == size else { throw RedisError.server("another size") }
                case .lease(let lease):
                    lease.store(payload, freshFor: .seconds(3_600))
                    await tier.flush()
                case .bypass: throw RedisError.unavailable
                }
            }
        }
        let client = try RedisClient(redis, maximumReply: 64_000_000)
        let store: @Sendable (Int) async throws -> Void = { index in
            let key = keys[index % keys.count]
            let reply = try await client.call(RESPCommand("SET", .text(key), .bytes(payload)), key: key)
            guard case .simple = reply else { throw RedisError.server("another reply to SET") }
        }
        guard kind != "set" else { return store }
        for index in keys.indices { try await store(index) }
        return { index in
            let key = keys[index % keys.count]
            let reply = try await client.call(RESPCommand("GET", .text(key)), key: key)
            guard case .bulk(let bytes) = reply, bytes.readableBytes == size else {
                throw RedisError.server("another reply to GET")
            }
        }
    }
}
