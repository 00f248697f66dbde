import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// How often the cache hits on recorded requests, beside least recently used. The traces are not part of the
/// repository: `$VITRINE_SHARED/traces`, or `shared/traces` beside the checkout.
@Suite(.enabled(if: Trace.isAvailable, "needs the shared traces"))
struct HitRatioTests {
    /// 0.5 % to 20 % of the objects, each of cost 1.
    private static let shares = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]

    @Test func isAboveLeastRecentlyUsedOnEveryTrace() throws {
        var gains: [Double] = []
        for name in ["web07", "web12", "oltp"] {
            let trace = try Trace(name)
            for share in Self.shares {
                let capacity = max(1, Int(Double(trace.objectCount) * share))
                let gain = 100 * (trace.hitRatio(capacity: capacity) - trace.leastRecentlyUsedRatio(capacity: capacity))
                #expect(gain > -0.2, "\(name) at \(share)")
                gains.append(gain)
            }
        }
        let mean = gains.reduce(0, +) / Double(gains.count)
        #expect(mean >= 2, "mean gain \(mean)")
    }

    /// Scans, loops, programs that read back once and never again: no cell may be worse.
    @Test(arguments: ["sprite", "multi3", "2_pools", "loop", "corda-loop-corda", "cloudphysics"])
    func isNotBelowLeastRecentlyUsed(name: String) throws {
        let trace = try Trace(name)
        for share in Self.shares {
            let capacity = max(1, Int(Double(trace.objectCount) * share))
            let gain = 100 * (trace.hitRatio(capacity: capacity) - trace.leastRecentlyUsedRatio(capacity: capacity))
            #expect(gain > -0.2, "at \(share)")
        }
    }
}

/// Recorded requests.
private struct Trace {
    let requests: [Int32]
    let objectCount: Int

    static let folder: URL? = {
        let checkout = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let beside = checkout.deletingLastPathComponent().appending(path: "shared")
        let named = ProcessInfo.processInfo.environment["VITRINE_SHARED"].map { URL(filePath: $0) }
        return [named, beside].compactMap { $0?.appending(path: "traces") }.first {
            FileManager.default.fileExists(atPath: $0.appending(path: "web07.bin.gz").path)
        }
    }()

    static var isAvailable: Bool { folder != nil }

    /// Pairs of little-endian 32-bit numbers, object and size, compressed: unpacked by gzip.
    init(_ name: String) throws {
        let folder = try #require(Self.folder)
        let process = Process(), pipe = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", folder.appending(path: name + ".bin.gz").path]
        process.standardOutput = pipe
        try process.run()
        let bytes = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0 && !bytes.isEmpty)
        requests = bytes.withUnsafeBytes { raw in
            (0..<raw.count / 8).map { Int32(littleEndian: raw.loadUnaligned(fromByteOffset: $0 * 8, as: Int32.self)) }
        }
        objectCount = Int(requests.max() ?? 0) + 1
    }

    func hitRatio(capacity: Int) -> Double {
        let cache = MemoryCache<Int, Int>(.init(capacity: ByteCount(capacity), trimsOn: nil), cost: { _ in 1 })
        for request in requests where cache.value(forKey: Int(request)) == nil {
            cache.set(1, forKey: Int(request), cost: 1)
        }
        return cache.statistics.hitRatio
    }

    func leastRecentlyUsedRatio(capacity: Int) -> Double {
        // A doubly linked ring of all objects; the last place is its head.
        var next = [Int](repeating: -1, count: objectCount + 1), previous = next
        let head = objectCount
        next[head] = head
        previous[head] = head
        var count = 0, hits = 0
        func unlink(_ object: Int) {
            next[previous[object]] = next[object]
            previous[next[object]] = previous[object]
            next[object] = -1
        }
        for request in requests {
            let object = Int(request)
            if next[object] >= 0 {
                hits += 1
                unlink(object)
            } else if count == capacity {
                unlink(previous[head])
            } else {
                count += 1
            }
            next[object] = next[head]
            previous[object] = head
            previous[next[head]] = object
            next[head] = object
        }
        return Double(hits) / Double(requests.count)
    }
}
