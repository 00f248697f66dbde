// Measures VitrineFleet against a Redis server that runs. The script `Benchmarks/measure-fleet` starts the servers.
//
//   fleet-benchmark operations URL get|set|lookup|store CALLERS SECONDS BYTES [loops]
//   fleet-benchmark frozen URL PID SECONDS
//   fleet-benchmark purge URL ROUNDS
//   fleet-benchmark zipf URL|none NODES REQUESTS
//
// Each prints one object of JSON.
import Foundation
import VitrineFleet

let arguments = CommandLine.arguments.dropFirst()

func argument(_ index: Int) throws -> String {
    guard index < arguments.count else { throw RedisError.invalidConfiguration("an argument is missing") }
    return arguments[arguments.startIndex + index]
}

func number(_ index: Int) throws -> Int {
    guard let number = Int(try argument(index)), number > 0 else {
        throw RedisError.invalidConfiguration("argument \(index + 1) is not a positive number")
    }
    return number
}

let report: Report
switch try argument(0) {
case "operations":
    report = try await Operations(
        url: argument(1), kind: argument(2), callers: number(3), seconds: number(4), size: number(5),
        loops: arguments.count > 6
    ).run()
case "frozen": report = try await FrozenTier(url: argument(1), server: Int32(number(2)), seconds: number(3)).run()
case "purge": report = try await Purges(url: argument(1), rounds: number(2)).run()
case "zipf":
    report = try await ZipfFleet(
        url: argument(1) == "none" ? nil : argument(1), nodes: number(2), requests: number(3)
    ).run()
default: throw RedisError.invalidConfiguration("the first argument is none of operations, frozen, purge, zipf")
}
print(report.text)
