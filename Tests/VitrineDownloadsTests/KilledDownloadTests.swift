#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// A program that downloads is killed at instants by chance, over and over; the next one goes on. The server gives a
/// bit of the rest to each, so that none can come to the end before it is killed.
@Suite struct KilledDownloadTests {
    private static let rounds = 60
    private static let content = pattern(4_000_000)

    @Test func nothingIsLostOrLoadedTwice() async throws {
        try await offPool { try Self.run(changing: false) }
    }

    @Test func aSourceThatChangesIsNeverSpliced() async throws {
        try await offPool { try Self.run(changing: true) }
    }

    private struct Plan {
        var version = 0
        /// How many bytes the next reply brings; nil for all.
        var size: Int? = 0
    }

    private static func run(changing: Bool) throws {
        let fixture = try DownloadFixture(), plan = Locked(Plan())
        let server = try LoopbackServer { request in
            let plan = plan.withLock { $0 }
            return site(plan.version).reply(to: request, upTo: plan.size, then: [.hang])
        }
        let words = [fixture.journal.path, fixture.files.path, server.url("/a.bin").absoluteString]
        var random = SeededGenerator(7)
        var kept: [Int] = []
        for round in 0..<(changing ? rounds / 4 : rounds) {
            let size = Int.random(in: 1..<60_000, using: &random)
            plan.withLock { plan in
                if changing, round % 3 == 2 { plan.version += 1 }
                plan.size = size
            }
            let child = try ChildProcess(executable: "DownloadChild", words)
            // Some before they have begun, some when they have all they get, some in between.
            let goal = changing ? 1 : (kept.last ?? 0) + Int.random(in: 0...size, using: &random)
            while round % 10 != 9, let line = child.line(), goal > received(line) ?? 0 {
                #expect(!line.hasPrefix("error"), "\(line)")
            }
            usleep(UInt32.random(in: 0..<20_000, using: &random))
            child.kill()
            while child.line() != nil {}
            #expect(child.wait() == .signal(SIGKILL))
            kept.append(fixture.partSize)
        }
        plan.withLock { $0.size = nil }
        let child = try ChildProcess(executable: "DownloadChild", words)
        var last: String?
        while let line = child.line() { last = line }
        #expect(child.wait() == .exit(0))
        #expect(last?.hasPrefix("file ") == true, "\(last ?? "nothing")")
        #expect(fixture.bytes("a.bin") == site(plan.withLock { $0.version }).content)
        #expect(fixture.files.names == ["a.bin"])
        if !changing {
            // Each went on at the byte where the one before had been killed.
            let starts = server.requests.compactMap { $0.header("Range") }
            #expect(starts.allSatisfy { start in kept.contains { "bytes=\($0)-" == start } })
            #expect(kept == kept.sorted() && kept.max() ?? 0 > 0)
        }
    }

    @Test func piecesAreGoneOnWith() async throws {
        try await offPool { try Self.runInPieces() }
    }

    private static func runInPieces() throws {
        let fixture = try DownloadFixture(), size = Locked(Int?.some(0))
        let server = try LoopbackServer { site(0).reply(to: $0, upTo: size.withLock { $0 }, then: [.hang]) }
        let words = [fixture.journal.path, fixture.files.path, server.url("/a.bin").absoluteString, "connections=3"]
        var random = SeededGenerator(11)
        var seen = 0
        for _ in 0..<20 {
            size.withLock { $0 = Int.random(in: 1..<60_000, using: &random) }
            let child = try ChildProcess(executable: "DownloadChild", words)
            let before = seen
            while seen == before, let line = child.line() {
                #expect(!line.hasPrefix("error"), "\(line)")
                seen = max(seen, received(line) ?? 0)
            }
            usleep(UInt32.random(in: 0..<20_000, using: &random))
            child.kill()
            while let line = child.line() { seen = max(seen, received(line) ?? 0) }
            #expect(child.wait() == .signal(SIGKILL))
            #expect(fixture.files.names.allSatisfy { $0.hasPrefix(".") })
        }
        size.withLock { $0 = nil }
        try server.settle()
        let before = server.requests.count
        let child = try ChildProcess(executable: "DownloadChild", words)
        while let line = child.line() { #expect(!line.hasPrefix("error"), "\(line)") }
        #expect(child.wait() == .exit(0))
        #expect(fixture.bytes("a.bin") == content)
        #expect(fixture.files.names == ["a.bin"])
        // Nothing of what was there has been asked for again.
        let asked = server.requests.dropFirst(before).map { request in
            let bounds = request.header("Range")?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
            return bounds.count == 2 ? bounds[1] - bounds[0] + 1 : content.count
        }
        #expect(seen >= 20)
        #expect(asked.reduce(0, +) <= content.count - seen)
    }

    private static func received(_ line: String) -> Int? {
        line.hasPrefix("received ") ? Int(line.dropFirst(9)) : nil
    }

    private static func site(_ version: Int) -> FileSite {
        var site = FileSite(content.map { $0 ^ UInt8(truncatingIfNeeded: version) })
        site.tag = "\"v\(version)\""
        return site
    }
}

extension DownloadFixture {
    /// How much lies in the part file.
    fileprivate var partSize: Int {
        let part = files.names.first { $0.hasSuffix("-part") }
        let attributes = part.flatMap { try? FileManager.default.attributesOfItem(atPath: files.file($0)) }
        return (attributes?[.size] as? NSNumber)?.intValue ?? 0
    }
}
#endif
