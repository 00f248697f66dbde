#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// Sources that do not say for sure whether they are still the same: the end of what is there is loaded again, and
/// compared.
struct ComparedResumeTests {
    private let content = pattern(300_000)
    private let overlap = 65_536

    private func site(_ content: [UInt8], tag: String? = nil) -> FileSite {
        var site = FileSite(content)
        site.tag = tag
        return site
    }

    /// Pauses a download after some bytes, and lets it go on with another site.
    private func download(
        _ first: FileSite, cut: Int, then second: FileSite
    ) async throws -> (status: DownloadStatus?, bytes: [UInt8]?, ranges: [String?]) {
        let fixture = try DownloadFixture(), isFirst = Locked(true)
        let server = try LoopbackServer { request in
            isFirst.withLock { $0 } ? first.reply(to: request, upTo: cut, then: [.hang]) : second.reply(to: request)
        }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        await download.reaches { $0.received == cut }
        isFirst.withLock { $0 = false }
        try await download.pause()
        try await download.resume()
        _ = try await download.file
        #expect(fixture.files.names == ["a"])
        #expect(server.requests.allSatisfy { $0.header("If-Range") == nil })
        return (download.status, fixture.bytes("a"), server.requests.dropFirst().map { $0.header("Range") })
    }

    @Test(arguments: [nil, "W/\"v1\""]) func whatIsTheSameIsGoneOnWith(tag: String?) async throws {
        for cut in [70_000, 150_000, 299_999] {
            let result = try await download(site(content, tag: tag), cut: cut, then: site(content, tag: tag))
            #expect(result.bytes == content)
            #expect(result.ranges == ["bytes=\(cut - overlap)-"])
            #expect(result.status?.restarts == 0)
        }
    }

    @Test func whatDiffersInTheOverlapBeginsAnew() async throws {
        for place in [84_464, 100_000, 149_999] {
            var other = content
            other[place] ^= 1
            let result = try await download(site(content), cut: 150_000, then: site(other))
            #expect(result.bytes == other)
            #expect(result.ranges == ["bytes=84464-", nil])
            #expect(result.status?.restarts == 1)
        }
    }

    @Test func anotherWeakTagOrLengthBeginsAnew() async throws {
        let tagged = try await download(
            site(content, tag: "W/\"v1\""), cut: 150_000, then: site(content, tag: "W/\"v2\""))
        #expect(tagged.bytes == content && tagged.status?.restarts == 1)
        let longer = try await download(site(content), cut: 150_000, then: site(content + [1]))
        #expect(longer.bytes == content + [1] && longer.status?.restarts == 1)
        let shorter = try await download(site(content), cut: 150_000, then: site(Array(content[..<1000])))
        #expect(shorter.bytes == Array(content[..<1000]) && shorter.status?.restarts == 1)
    }

    @Test func littleIsNotWorthAComparison() async throws {
        let result = try await download(site(content), cut: overlap, then: site(content))
        #expect(result.bytes == content)
        #expect(result.ranges == [nil])
    }
}
#endif
