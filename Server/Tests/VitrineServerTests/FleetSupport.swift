#if os(Linux)
import ServerTestSupport
import Synchronization
import Testing
import VitrineServer

/// Several servers with one tier.
struct Fleet {
    let nodes: [ImageServerProcess]

    static func start(
        _ count: Int, _ arguments: [String] = [], lease: Int = 60, root: String = Samples.directory,
        each: (Int) -> [String] = { _ in [] }
    ) async throws -> Fleet {
        var nodes: [ImageServerProcess] = []
        for index in 0..<count {
            // Commands may take long on a machine under load.
            let shared = [
                "--redis-timeout", "5", "--redis-connect-timeout", "10", "--redis-wait", "120", "--timeout", "300",
                "--redis-lease", "\(lease)",
            ]
            nodes.append(try await .start(shared + arguments + each(index), root: root))
        }
        for node in nodes {
            try await eventually("the tier is up") { try await node.metrics.contains("vitrine_tier_up 1\n") }
        }
        return Fleet(nodes: nodes)
    }

    /// The sum of a metric over all nodes.
    func sum(_ series: String) async throws -> Int {
        var sum = 0
        for node in nodes where node.process.status == nil { sum += try await node.value(series) }
        return sum
    }

    /// How many images were made.
    var renders: Int {
        get async throws { try await sum("vitrine_stage_duration_seconds_count{stage=\"encode\"}") }
    }

    /// Asks all nodes for each image at the same time. One of them must make it.
    func makeOnce(_ names: [String], from origin: Origin, _ comment: Comment) async throws {
        let before = try await renders
        try await withThrowingTaskGroup(of: (String, PlainClient.Answer).self) { group in
            for name in names {
                for node in nodes { group.addTask { (name, try await node.image(origin.url(name))) } }
            }
            var tags: [String: Set<String?>] = [:]
            for try await (name, answer) in group {
                #expect(answer.status == 200, comment)
                tags[name, default: []].insert(answer.fields["etag"])
            }
            #expect(tags.count == names.count && tags.values.allSatisfy { $0.count == 1 }, comment)
        }
        for name in names { #expect(origin.count(of: name) == 1, comment) }
        #expect(try await renders == before + names.count, comment)
    }

    /// Waits until each node has noticed the loss of a server and uses the tier again.
    func waitUntilRecovered(after outages: Int) async throws {
        for node in nodes {
            try await eventually("the loss is noticed") {
                try await node.value("vitrine_tier_outages_total") > outages
            }
            try await eventually("the tier is up again") { try await node.metrics.contains("vitrine_tier_up 1\n") }
        }
    }

    func end() async throws {
        for node in nodes where node.process.status == nil { try await node.end() }
    }
}

extension ImageServerProcess {
    func value(_ series: String) async throws -> Int {
        let line = try await metrics.split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line?.split(separator: " ").last.flatMap { Double($0) }.map { Int($0) } ?? 0
    }

    static let made = "vitrine_cache_results_total{level=\"made\"}"

    func isReady() async throws -> Bool { try await get(main, "/ready").status == 200 }
}

/// Requests for images, new ones and old ones, again and again until it is ended.
final class FleetLoad: Sendable {
    private struct State {
        var answered = 0
        var failures: [String] = []
        var names: [String] = []
        var isEnded = false
    }
    private let state = Mutex(State())

    /// The answers so far.
    var answered: Int { state.withLock { $0.answered } }
    var failures: [String] { state.withLock { $0.failures } }
    /// The images that were asked for.
    var names: [String] { state.withLock { $0.names } }

    func end() { state.withLock { $0.isEnded = true } }

    /// Runs until ``end()``.
    ///
    /// - Parameter prefix: The beginning of the names of new images.
    func run(_ fleet: Fleet, _ origin: Origin, _ prefix: String) async {
        await withTaskGroup(of: Void.self) { group in
            for caller in 0..<2 {
                group.addTask { [self] in
                    var turn = 0
                    while !state.withLock({ $0.isEnded }) {
                        turn += 1
                        let name = "\(prefix)-\(caller)-\(turn)"
                        state.withLock { $0.names.append(name) }
                        await withTaskGroup(of: Void.self) { requests in
                            for node in fleet.nodes { requests.addTask { await self.ask(node, origin.url(name)) } }
                        }
                        let old = origin.url("\(prefix)-\(caller)-\(turn / 2 + 1)")
                        await ask(fleet.nodes[turn % fleet.nodes.count], old)
                    }
                }
            }
        }
    }

    private func ask(_ node: ImageServerProcess, _ source: String) async {
        let failure: String?
        do {
            let answer = try await node.image(source)
            failure = answer.status == 200 && answer.fields["content-type"] == "image/jpeg" ? nil : "\(answer)"
        } catch {
            failure = "\(error)"
        }
        state.withLock { state in
            state.answered += 1
            if let failure { state.failures.append(failure) }
        }
    }
}
#endif
