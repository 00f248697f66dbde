import ArgumentParser
import Foundation

/// Recorded requests: objects numbered from 0 on, in the order in which they were asked for.
struct RequestTrace {
    let name: String
    let requests: [Int32]
    let objectCount: Int
    /// What each object costs in bytes where the trace knows; else 1.
    let costs: [Int]
    let hasSizes: Bool

    /// The cost of all objects together.
    var footprint: Int { costs.reduce(0, +) }

    /// Reads pairs of little-endian 32-bit numbers, object and size (0: unknown), packed with gzip, which unpacks them.
    init(_ file: URL) throws {
        name = String(file.lastPathComponent.split(separator: ".")[0])
        let process = Process(), pipe = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", file.path]
        process.standardOutput = pipe
        try process.run()
        let bytes = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0, !bytes.isEmpty else {
            throw ValidationError("\(file.path) cannot be unpacked")
        }
        let numbers = bytes.withUnsafeBytes { raw in
            (0..<raw.count / 4).map { UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self)) }
        }
        requests = stride(from: 0, to: numbers.count - 1, by: 2).map { Int32(truncatingIfNeeded: numbers[$0]) }
        objectCount = Int(requests.max() ?? -1) + 1
        var costs = [Int](repeating: 1, count: objectCount)
        for (index, object) in requests.enumerated() { costs[Int(object)] = max(1, Int(numbers[index * 2 + 1])) }
        self.costs = costs
        hasSizes = costs.contains { $0 != 1 }
    }
}
