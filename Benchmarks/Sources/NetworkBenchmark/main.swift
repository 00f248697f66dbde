// Measures the network module against a server: see Benchmarks/Scripts/network-benchmark, which starts one.
import CNetworkPeer
import Foundation
import VitrineCore
import VitrineNetwork

func microseconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

/// Prints what a run took: requests per second, processor time, the most memory.
func report(_ name: String, count: Int, _ body: () async throws -> Void) async rethrows {
    let start = Moment()
    try await body()
    start.report(name, count: count)
}

/// The same for what blocks.
func report(_ name: String, count: Int, _ body: () throws -> Void) rethrows {
    let start = Moment()
    try body()
    start.report(name, count: count)
}

/// When something began.
struct Moment {
    private let wall = microseconds(CLOCK_MONOTONIC), cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID)

    func report(_ name: String, count: Int) {
        let seconds = (microseconds(CLOCK_MONOTONIC) - wall) / 1e6
        let used = (microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e6
        let rate = Int(Double(count) / seconds), cost = Int(used * 1e6 / Double(count))
        let peak = network_peer_peak()
        print("\(name) requests/s \(rate) seconds \(seconds) cpu \(used) cpu-us/request \(cost) peak-kB \(peak)")
    }
}

struct Arguments {
    let mode: String
    let contender: String
    let address: String
    let rest: [String]

    init?(_ arguments: [String]) {
        guard arguments.count >= 4 else { return nil }
        mode = arguments[1]
        contender = arguments[2]
        address = arguments[3]
        rest = Array(arguments.dropFirst(4))
    }

    func number(_ index: Int, default value: Int) -> Int {
        rest.indices.contains(index) ? Int(rest[index]) ?? value : value
    }
    func text(_ index: Int) -> String { rest.indices.contains(index) ? rest[index] : "" }
}

guard let arguments = Arguments(CommandLine.arguments) else {
    print("usage: NetworkBenchmark small vitrine|curl BASE [COUNT CONCURRENCY CA-FILE HTTP2]")
    print("       NetworkBenchmark cached vitrine|curl|curl-files|urlsession BASE [COUNT CONCURRENCY disk|memory|none|loader]")
    print("       NetworkBenchmark cold vitrine URL [COUNT]")
    print("       NetworkBenchmark file vitrine URL PATH [MICROSECONDS-PER-MEGABYTE]")
    exit(2)
}

switch (arguments.mode, arguments.contender) {
case ("small", "curl"), ("cached", "curl"): loadByPeer(arguments, into: "")
case ("cached", "curl-files"): try loadIntoFiles(arguments)
case ("small", _): try await loadSmall(arguments)
case ("cached", "urlsession"): try await loadBySession(arguments)
case ("cached", _): try await loadCached(arguments)
case ("cold", _): try await loadCold(arguments)
case ("file", _): try await loadFile(arguments)
default: exit(2)
}
