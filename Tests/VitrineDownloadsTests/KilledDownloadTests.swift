#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// A program that downloads is killed at instants by chance, over and over; the next one goes on.
@Suite struct KilledDownloadTests {
    private static let rounds = 60
    private static let content = pattern(4_000_000)

    @Test func nothingIsLostOrLoadedTwice() async throws {
        try await offPool { try Self.run(changing: false) }
    }

    @Test func aSourceThatChangesIsNeverSpliced() async throws {
        try await offPool { try Self.run(changing: true) }
    }

    private static func run(changing: Bool) throws {
        let fixture = try DownloadFixture()
        let version = Locked(0)
        let server = try LoopbackServer { request in site(version.withLock { $0 }).reply(to: request) }
        var random = SeededGenerator(7)
        var kept: [Int] = []
        for round in 0..<(changing ? rounds / 4 : rounds) {
            if changing, round % 3 == 2 { version.withLock { $0 += 1 } }
            let child = try ChildProcess(
                executable: "DownloadChild",
                [fixture.journal.path, fixture.files.path, server.url("/a.bin").absoluteString, "1000000"])
            // Some before it has begun, some after it has come further than the one before.
            if round % 10 != 9 {
                let goal = (kept.last ?? 0) + Int.random(in: 0..<30_000, using: &random)
                while let line = child.line(), goal >= (received(line) ?? 0) {
                    #expect(!line.hasPrefix("error"), "\(line)")
                    if changing, received(line) ?? 0 > 0 { break }
                }
                usleep(UInt32.random(in: 0..<20_000, using: &random))
            }
            child.kill()
            while child.line() != nil {}
            #expect(child.wait() == .signal(SIGKILL))
            kept.append(fixture.partSize)
        }
        let child = try ChildProcess(
            executable: "DownloadChild",
            [fixture.journal.path, fixture.files.path, server.url("/a.bin").absoluteString, "0"])
        var last: String?
        while let line = child.line() { last = line }
        #expect(child.wait() == .exit(0))
        #expect(last?.hasPrefix("file ") == true, "\(last ?? "nothing")")
        #expect(fixture.bytes("a.bin") == site(version.withLock { $0 }).content)
        #expect(fixture.files.names == ["a.bin"])
        if !changing {
            // Each went on at the byte where the one before had been killed.
            let starts = server.requests.compactMap { $0.header("Range") }
            #expect(starts.allSatisfy { start in kept.contains { "bytes=\($0)-" == start } })
            #expect(kept == kept.sorted() && kept.max() ?? 0 > 0)
        }
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
