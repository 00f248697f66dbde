import Foundation
import NIOCore
import Synchronization
import VitrineFleet

/// A fleet whose nodes have small caches, asked for values by Zipf's law, each request at any node.
///
/// The stand-in for a render takes 7 ms, the processor time of a 12 MP JPEG at 200 pixels, and a node renders two at
/// once. A source has 1.05 MB. Each node keeps the last 400 results and the last 50 sources.
struct ZipfFleet {
    let url: String?
    let nodes: Int
    let requests: Int

    private static let sources = 1_000
    private static let variants = 4
    private static let exponent = 0.9
    private static let callers = 8

    func run() async throws -> Report {
        var fleet: [FleetNode] = []
        for _ in 0..<nodes {
            var tier: RemoteTier?
            if let url {
                tier = try RemoteTier(.init(redis: RedisConfiguration(url: url), namespace: "zipf"))
                try await tier?.connect()
            }
            fleet.append(FleetNode(tier))
        }
        let members = fleet
        var zipf = Zipf(count: Self.sources * Self.variants, exponent: Self.exponent, seed: 1)
        let drawn = (0..<requests).map { _ in
            (key: zipf.next(), node: min(nodes - 1, Int(zipf.uniform() * Double(nodes))))
        }
        let next = Counter()
        let began = ContinuousClock.now
        let times = await withTaskGroup(of: [Duration].self) { group in
            for _ in 0..<Self.callers * nodes {
                group.addTask {
                    var times: [Duration] = []
                    while case let turn = next.next(), turn < drawn.count {
                        let (key, node) = drawn[turn]
                        let began = ContinuousClock.now
                        // Ranks are spread over the sources.
                        let source = key % Self.sources
                        await members[node].request(source: source, variant: key / Self.sources)
                        times.append(ContinuousClock.now - began)
                    }
                    return times
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        let elapsed = ContinuousClock.now - began
        var report = Report()
        report.add("time", times)
        report.add("rate", Double(requests) / (elapsed.milliseconds / 1_000))
        report.add("unique", Set(drawn.map(\.key)).count)
        report.add("memory hits", fleet.reduce(0) { $0 + $1.counts.hits })
        report.add("tier hits", fleet.reduce(0) { $0 + ($1.tier?.statistics.hits ?? 0) })
        report.add("renders", fleet.reduce(0) { $0 + $1.counts.renders })
        report.add("source fetches", fleet.reduce(0) { $0 + $1.counts.fetches })
        report.add("bypasses", fleet.reduce(0) { $0 + ($1.tier?.statistics.bypasses ?? 0) })
        for node in fleet { await node.tier?.shutDown() }
        return report
    }
}

/// The caches of a node, and its renders.
final class FleetNode: Sendable {
    struct Counts {
        var hits = 0
        var renders = 0
        var fetches = 0
    }

    private struct State {
        var counts = Counts()
        var results = RecentKeys(limit: 400)
        var sources = RecentKeys(limit: 50)
        /// The requests under way, by key.
        var loads: [Int: Task<Void, Never>] = [:]
        var rendering = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    let tier: RemoteTier?
    private let state = Mutex(State())
    private static let slots = 2
    private static let contents = ByteBuffer(repeating: 9, count: 20_000)

    init(_ tier: RemoteTier?) { self.tier = tier }

    var counts: Counts { state.withLock { $0.counts } }

    /// Answers a request from memory, by a load that is under way, or by a load.
    func request(source: Int, variant: Int) async {
        let key = source * 16 + variant
        let load = state.withLock { state -> Task<Void, Never>? in
            if state.results.contains(key) {
                state.counts.hits += 1
                return nil
            }
            if let load = state.loads[key] { return load }
            let load = Task { await self.load(source: source, variant: variant, key) }
            state.loads[key] = load
            return load
        }
        await load?.value
    }

    private func load(source: Int, variant: Int, _ key: Int) async {
        switch await tier?.lookup(RemoteKey(group: "source \(source)", name: "variant \(variant)")) {
        case .value: break
        case .lease(let lease):
            await render(source)
            lease.store(Self.contents, contentType: "image/webp", freshFor: .seconds(3_600))
        case .bypass, nil: await render(source)
        }
        state.withLock { state in
            state.results.insert(key)
            state.loads[key] = nil
        }
    }

    private func render(_ source: Int) async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.rendering == Self.slots {
                    state.waiting.append(continuation)
                    return false
                }
                state.rendering += 1
                return true
            }
            if isFree { continuation.resume() }
        }
        state.withLock { state in
            state.counts.renders += 1
            if !state.sources.contains(source) { state.counts.fetches += 1 }
            state.sources.insert(source)
        }
        try? await Task.sleep(for: .milliseconds(7))
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiting.isEmpty {
                state.rendering -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}

/// The keys that were used last.
struct RecentKeys {
    let limit: Int
    private var used: [Int: Int] = [:]
    private var clock = 0

    init(limit: Int) { self.limit = limit }

    /// Whether a key is kept, which counts as a use.
    mutating func contains(_ key: Int) -> Bool {
        guard used[key] != nil else { return false }
        clock += 1
        used[key] = clock
        return true
    }

    mutating func insert(_ key: Int) {
        clock += 1
        used[key] = clock
        guard used.count > limit, let oldest = used.min(by: { $0.value < $1.value }) else { return }
        used[oldest.key] = nil
    }
}
