import Foundation
import NIOCore
import Synchronization
import VitrineFleet

/// A node under load whose Redis server is frozen and continued.
///
/// Half of the requests are for values in the node's memory, four tenths for values of the tier, and the others for new
/// ones. A stand-in for a render takes 5 ms.
struct FrozenTier {
    let url: String
    let server: Int32
    let seconds: Int

    private static let callers = 16
    private static let known = 2_000
    private static let pause = Duration.milliseconds(4)
    private static let render = Duration.milliseconds(5)

    private struct State {
        var phase = "warm"
        var isEnded = false
        var firstValue: ContinuousClock.Instant?
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
        let times = Times()
        let memory = Mutex<[Int: ByteBuffer]>([:])
    }

    func run() async throws -> Report {
        let tier = try RemoteTier(.init(redis: RedisConfiguration(url: url), namespace: "frozen"))
        try await tier.connect()
        let contents = ByteBuffer(repeating: 7, count: 20_000)
        for index in 0..<Self.known {
            if case .lease(let lease) = await tier.lookup(RemoteKey("known \(index)")) {
                lease.store(contents, freshFor: .seconds(3_600))
            }
            if index % 500 == 499 { await tier.flush() }
        }
        let shared = Shared()
        shared.memory.withLock { memory in for index in 0..<100 { memory[index] = contents } }
        async let load: Void = withTaskGroup(of: Void.self) { group in
            for caller in 0..<Self.callers {
                group.addTask { await self.call(as: caller, shared, tier, contents) }
            }
        }
        try await phase("without", .seconds(seconds / 2), shared)
        try await phase("healthy", .seconds(seconds / 2), shared)
        var leases: [Lease] = []
        for index in 0..<100 {
            if case .lease(let lease) = await tier.lookup(RemoteKey("held \(index)")) { leases.append(lease) }
        }
        let before = tier.statistics
        shared.state.withLock { $0.phase = "opening" }
        kill(server, SIGSTOP)
        let frozen = ContinuousClock.now
        for lease in leases { lease.store(contents, freshFor: .seconds(3_600)) }
        leases = []
        while case .up = tier.status { try await Task.sleep(for: .milliseconds(1)) }
        let opened = ContinuousClock.now
        try await phase("open", .seconds(seconds) - (opened - frozen), shared)
        let during = tier.statistics
        shared.state.withLock { ($0.phase, $0.firstValue) = ("recovery", nil) }
        kill(server, SIGCONT)
        let continued = ContinuousClock.now
        while shared.state.withLock({ $0.firstValue }) == nil { try await Task.sleep(for: .milliseconds(1)) }
        let first = shared.state.withLock { $0.firstValue } ?? .now
        while tier.status != .up { try await Task.sleep(for: .milliseconds(1)) }
        let up = ContinuousClock.now
        try await phase("after", .seconds(seconds / 2), shared)
        shared.state.withLock { $0.isEnded = true }
        await load
        var report = Report()
        for phase in ["without", "healthy", "opening", "open", "recovery", "after"] {
            for kind in ["memory", "value", "render"] {
                report.add("\(phase) \(kind)", shared.times["\(phase) \(kind)"])
            }
        }
        report.add("held leases", 100)
        report.add("breaker", (opened - frozen).milliseconds)
        report.add("first value", (first - continued).milliseconds)
        report.add("up", (up - continued).milliseconds)
        report.add("bypasses", during.bypasses - before.bypasses)
        report.add("dropped stores", during.droppedStores - before.droppedStores)
        report.add("outages", tier.statistics.outages)
        await tier.shutDown()
        return report
    }

    private func phase(_ name: String, _ time: Duration, _ shared: Shared) async throws {
        shared.state.withLock { $0.phase = name }
        try await Task.sleep(for: time)
    }

    private func call(as caller: Int, _ shared: Shared, _ tier: RemoteTier, _ contents: ByteBuffer) async {
        var random = Zipf(count: 1, exponent: 1, seed: UInt64(caller))
        var turn = 0
        while !shared.state.withLock({ $0.isEnded }) {
            turn += 1
            let phase = shared.state.withLock { $0.phase }
            let draw = random.uniform()
            let began = ContinuousClock.now
            let kind: String
            if draw < 0.5 {
                let value = shared.memory.withLock { $0[Int(draw * 200)] }
                kind = value == nil ? "render" : "memory"
            } else {
                let name = draw < 0.9 ? "known \(Int(random.uniform() * 2_000))" : "new \(caller) \(turn)"
                kind = await request(RemoteKey(name), phase == "without" ? nil : tier, contents)
            }
            let now = ContinuousClock.now
            if kind == "value" { shared.state.withLock { if $0.firstValue == nil { $0.firstValue = now } } }
            // A request belongs to the phase in which it began and ended.
            if shared.state.withLock({ $0.phase }) == phase { shared.times.add("\(phase) \(kind)", now - began) }
            try? await Task.sleep(for: Self.pause)
        }
    }

    /// Returns how the request was answered.
    private func request(_ key: RemoteKey, _ tier: RemoteTier?, _ contents: ByteBuffer) async -> String {
        switch await tier?.lookup(key) {
        case .value: return "value"
        case .lease(let lease):
            try? await Task.sleep(for: Self.render)
            lease.store(contents, freshFor: .seconds(3_600))
        case .bypass, nil: try? await Task.sleep(for: Self.render)
        }
        return "render"
    }
}
