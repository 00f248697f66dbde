#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// Downloads that do not go well: files that were there stay, nothing is left lying about.
struct DownloadFailureTests {
    private let content = pattern(60_000)

    @Test(arguments: ["", "ftp://example.org/a", "file:///etc/passwd", "http://", "http:///a", "/a", "data:,a"])
    func whatIsNotHTTPIsRefused(url: String) async throws {
        let fixture = try DownloadFixture()
        let manager = fixture.manager()
        #expect(await code { try await manager.start(url) } == -600)
        #expect(try await manager.restore().isEmpty)
    }

    @Test(arguments: ["../a", "a/b", "/etc/passwd", "", ".", "..", "a\0b", ".bashrc", "a\u{202E}gpj.exe"])
    func namesThatLeaveTheDirectoryAreRefused(name: String) async throws {
        let fixture = try DownloadFixture()
        let wanted = request(try #require(URL(string: "http://127.0.0.1:1/a"))) { $0.name = name }
        #expect(await code { try await fixture.manager().start(wanted) } == -601)
    }

    /// libcurl is loaded, and its thread begins, when there are descriptors.
    @Test func aLoaderThatIsMadeWithoutDescriptorsLoadsLater() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let address = server.url("/a").absoluteString
        try await offPool {
            let child = try ChildProcess(executable: "DownloadChild", ["/", "/", address, "scarce=1"])
            let found = child.findings()
            #expect(child.wait() == .exit(0), "\(found)")
            #expect(found["without"].map { $0 != "200" } == true, "\(found)")
            #expect(found["with"] == "200", "\(found)")
        }
    }

    /// The directory is opened before the file is moved. A download whose file is in its place has not failed.
    @Test func aFileThatCannotBePlacedDurablyIsNotPlaced() async throws {
        let directory = try TemporaryDirectory()
        try await offPool {
            let child = try ChildProcess(executable: "DownloadChild", ["/", directory.path, "/", "place=1"])
            let found = child.findings()
            #expect(child.wait() == .exit(0), "\(found)")
            #expect(found["without"] == "false consistent" && found["with"] == "true consistent", "\(found)")
        }
        #expect(directory.names == ["file"])
    }

    @Test func aWrongChecksumDiscardsTheFile() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        try fixture.files.write("before", to: "a")
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager()
        let wrong = try #require(Checksum("sha256:" + String(repeating: "0", count: 64)))
        let download = try await manager.start(request(server.url("/a")) { $0.checksum = wrong })
        let found = Hexadecimal.text(SHA256Digest.digest(of: content))
        #expect(await code { _ = try await download.file } == -620)
        // It says both.
        #expect(download.status?.failure?.message.contains(found) == true)
        #expect(download.status?.failure?.message.contains(wrong.digest) == true)
        #expect(fixture.files.names == ["a"] && fixture.files.read("a") == "before")
        // It is loaded anew, not gone on with.
        let right = try #require(Checksum(.sha256, found))
        let second = try await manager.start(request(server.url("/a")) { $0.checksum = right })
        _ = try await second.file
        #expect(fixture.bytes("a") == content)
    }

    @Test func aWrongSizeIsToldBeforeTheEnd() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { site.reply(to: $0, upTo: 1000, then: [.hang]) }
        let download = try await fixture.manager().start(request(server.url("/a")) { $0.expectedSize = 1 })
        #expect(await code { _ = try await download.file } == -621)
        #expect(fixture.files.names.isEmpty)
    }

    @Test func aTransferEndsAfterItsMaximumTimeAndIsTriedAgain() async throws {
        let site = FileSite(content), fixture = try DownloadFixture(), requests = Counter()
        let server = try LoopbackServer { request in
            requests.add(1) == 1 ? site.reply(to: request, upTo: 30_000, then: [.hang]) : site.reply(to: request)
        }
        let wanted = request(server.url("/a")) { ($0.maximumTime, $0.attempts) = (.seconds(1), 2) }
        let download = try await fixture.manager().start(wanted)
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(requests.value == 2)
    }

    @Test(arguments: [404, 403, 410, 500]) func failuresOfServersMakeNoFile(status: Int) async throws {
        let fixture = try DownloadFixture()
        let server = try LoopbackServer { _ in [.reply(status, ["Content-Type: text/html"], body: [60, 62])] }
        let download = try await fixture.manager().start(request(server.url("/a")) { $0.attempts = 1 })
        #expect(await code { _ = try await download.file } == -402)
        #expect(download.status?.state == .failed && download.status?.failure?.code == -402)
        #expect(fixture.files.names.isEmpty)
    }

    @Test func whatMayPassIsTriedAgain() async throws {
        let site = FileSite(content), fixture = try DownloadFixture(), requests = Counter()
        let server = try LoopbackServer { request in
            requests.add(1) < 3 ? [.reply(503, ["Retry-After: 0"])] : site.reply(to: request)
        }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(download.status?.retries == 2)
    }

    enum PermanentFailure: String, CaseIterable { case busy, silent, cut, compressed, compressedAnywhere }

    /// A transfer repeats nothing by itself, or each attempt would send several requests.
    @Test(arguments: PermanentFailure.allCases)
    func aFailureThatStaysIsAskedForAsOftenAsThereAreAttempts(_ failure: PermanentFailure) async throws {
        let fixture = try DownloadFixture(), content = content, requests = Counter()
        // A block of gzip that is stored as it is (RFC 1951, section 3.2.4), and ends early.
        let size = [UInt8(content.count & 0xFF), UInt8(content.count >> 8)]
        let packed = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1] + size + size.map { ~$0 } + content
        let server = try LoopbackServer { _ in
            let number = requests.add(1)
            let bytes = failure == .compressedAnywhere && number % 2 == 0 ? packed.dropLast(9000) : packed[...]
            return switch failure {
            case .busy: [.reply(503)]
            case .silent: [.close]
            case .cut: [.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), .close]
            case .compressed, .compressedAnywhere:
                [
                    .text("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"),
                    .bytes(Array(bytes)), .close,
                ]
            }
        }
        let download = try await fixture.manager { $0.retryDelay = .milliseconds(1) }
            .start(server.url("/a").absoluteString)
        await #expect(throws: DownloadError.self) { _ = try await download.file }
        #expect(download.status?.state == .failed)
        #expect(requests.value == 5)
    }

    /// Each connection brings a part. A transfer that makes progress is none of the attempts.
    @Test func aTransferThatIsCutAgainAndAgainResumesAtOnce() async throws {
        let content = pattern(150_000)
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { site.reply(to: $0, upTo: 12_500) }
        let manager = fixture.manager { $0.network.retries.jitter = { 0 } }
        let download = try await manager.start(request(server.url("/a")) { $0.attempts = 1 })
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.count == 12)
        #expect(download.status?.retries == 0)
    }

    @Test func delayedOnesGoOnWhenTold() async throws {
        let site = FileSite(content), fixture = try DownloadFixture(), requests = Counter()
        let server = try LoopbackServer { request in
            requests.add(1) == 1 ? [.reply(503, ["Retry-After: 86400"])] : site.reply(to: request)
        }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        await download.reaches { $0.state == .delayed }
        #expect(download.status?.retryDate.map { $0 > Date() + 80_000 } == true)
        try await download.retry()
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
    }

    @Test func mirrorsAreTriedInTheirOrder() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        let server = try LoopbackServer { $0.target == "/good" ? site.reply(to: $0) : [.reply(404)] }
        let download = try await fixture.manager().start(
            request(server.url("/a")) { $0.mirrors = [server.url("/bad"), server.url("/good"), server.url("/never")] })
        _ = try await download.file
        #expect(fixture.bytes("a") == content)
        #expect(server.requests.map(\.target) == ["/a", "/bad", "/good"])
    }

    @Test func theReserveStaysFree() async throws {
        let fixture = try DownloadFixture()
        let values = try FileManager.default.attributesOfFileSystem(forPath: fixture.files.path)
        let free = try #require(values[.systemFreeSize] as? NSNumber).intValue
        // The file fits, but not with a reserve of its own size. Other programs may use a part of the space meanwhile.
        let size = free / 10 * 8
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n"), .bytes([1, 2, 3]), .hang]
        }
        let manager = fixture.manager { $0.reservedSpace = ByteCount(1 << 60) }
        let download = try await manager.start(server.url("/a").absoluteString)
        #expect(await code { _ = try await download.file } == -611)
    }

    @Test(arguments: [true, false]) func smallFilesNeedNoLargeReserve(isLengthTold: Bool) async throws {
        let fixture = try DownloadFixture(), content = content
        let server = try LoopbackServer { _ in
            isLengthTold
                ? [.reply(body: content)]
                : [.text("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), .bytes(content), .close]
        }
        let manager = fixture.manager { $0.reservedSpace = ByteCount(1 << 60) }
        _ = try await manager.start(server.url("/a").absoluteString).file
        #expect(fixture.bytes("a") == content)
    }

    @Test func delaysOfMoreThanADayAreFailures() async throws {
        let fixture = try DownloadFixture()
        let server = try LoopbackServer { _ in [.reply(503, ["Retry-After: 86401"])] }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        await #expect(throws: DownloadError.self) { _ = try await download.file }
        #expect(download.status?.state == .failed)
        #expect(server.requests.count == 1)
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"), arguments: [false, true])
    func aFullDiskIsToldAndTheNextRunHasTheFile(isLengthTold: Bool) async throws {
        let fixture = try DownloadFixture(), content = pattern(4_000_000)
        let server = try LoopbackServer { _ in
            isLengthTold
                ? [.reply(body: content)]
                : [.text("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), .bytes(content), .close]
        }
        let words = [fixture.journal.path, fixture.files.path, server.url("/a").absoluteString]
        try await offPool {
            for isFull in [true, false] {
                let child = try ChildProcess(
                    executable: "DownloadChild", words,
                    wrapper: isFull
                        ? Namespace.command("mount -t tmpfs -o size=1m tmpfs \"$0\"", fixture.files.path) : [])
                var last = ""
                while let line = child.line() { last = line }
                #expect(child.wait() == .exit(isFull ? 1 : 0))
                // Told beforehand, or when it is full.
                let reason = isLengthTold ? "error -611 " : "error -610 "
                #expect(last.hasPrefix(isFull ? reason : "file "), "\(last)")
                // The requested file, or its directory, but not the part file.
                #expect(last.contains(isFull && isLengthTold ? fixture.files.path : fixture.files.file("a")), "\(last)")
                #expect(!last.contains("/."), "\(last)")
            }
        }
        #expect(fixture.bytes("a") == content)
        #expect(fixture.files.names == ["a"])
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func theListIsReadOnAFullDisk() async throws {
        let fixture = try DownloadFixture(), site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager()
        _ = try await manager.start(server.url("/a").absoluteString).file
        await manager.close()
        let small = try TemporaryDirectory()
        let words = [small.file("small"), fixture.files.path, server.url("/a").absoluteString, "restore=1"]
        let journal = fixture.journal.path
        try await offPool {
            let child = try ChildProcess(
                executable: "DownloadChild", words,
                wrapper: Namespace.command(
                    """
                    mkdir "$0/small" && mount -t tmpfs -o size=1m tmpfs "$0/small" && cp \(journal)/*.sqlite "$0/small" \
                    && { cat /dev/zero > "$0/small/ballast" 2>/dev/null; true; }
                    """, small.path))
            var lines: [String] = []
            while let line = child.line() { lines.append(line) }
            #expect(child.wait() == .exit(0))
            #expect(lines == ["completed 0 a"])
        }
    }

    @Test(.enabled(if: Namespace.isRoot && Namespace.letsNobodyRun("DownloadChild"), "needs root"))
    func aDirectoryThatCannotBeWrittenIsTold() async throws {
        let fixture = try DownloadFixture(), content = content
        let server = try LoopbackServer { _ in [.reply(body: content)] }
        chmod(fixture.journal.path, 0o777)
        chmod(fixture.files.path, 0o755)
        let words = [fixture.journal.path, fixture.files.path, server.url("/a").absoluteString]
        let last = try await offPool {
            let child = try ChildProcess(executable: "DownloadChild", words, wrapper: Namespace.asNobody)
            var last = ""
            while let line = child.line() { last = line }
            #expect(child.wait() == .exit(1))
            return last
        }
        #expect(last.hasPrefix("error -610 "), "\(last)")
        #expect(fixture.files.names.isEmpty)
    }

    @Test func filesInTheWayAreTreatedAsAsked() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        try fixture.files.write("before", to: "a.tar.gz")
        let server = try LoopbackServer { site.reply(to: $0) }
        let manager = fixture.manager()
        let kept = try await manager.start(request(server.url("/a.tar.gz")) { $0.existing = .keep })
        #expect(await code { _ = try await kept.file } == -610)
        // What was loaded has nowhere to go.
        #expect(fixture.files.names == ["a.tar.gz"])
        let named = request(server.url("/b")) {
            $0.existing = .keep
            $0.name = "a.tar.gz"
        }
        #expect(await code { try await manager.start(named) } == -610)
        let numbered = try await manager.start(request(server.url("/a.tar.gz")) { $0.existing = .number })
        #expect(try await numbered.file == fixture.files.file("a (2).tar.gz"))
        #expect(fixture.files.read("a.tar.gz") == "before")
        let replaced = try await manager.start(request(server.url("/a.tar.gz")))
        _ = try await replaced.file
        #expect(fixture.bytes("a.tar.gz") == content)
        #expect(fixture.files.names == ["a (2).tar.gz", "a.tar.gz"])
    }

    @Test func aDirectoryInTheWayIsAnError() async throws {
        let site = FileSite(content), fixture = try DownloadFixture()
        try FileManager.default.createDirectory(
            atPath: fixture.files.file("a/b"), withIntermediateDirectories: true)
        let server = try LoopbackServer { site.reply(to: $0) }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        #expect(await code { _ = try await download.file } == -610)
        #expect(fixture.files.read("a/b") == nil)
    }

    @Test func namesOfServersStayInTheDirectory() async throws {
        let fixture = try DownloadFixture(), content = content
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Disposition: attachment; filename=\"../../.ssh/keys.txt\""], body: content)]
        }
        let download = try await fixture.manager().start(server.url("/a").absoluteString)
        #expect(try await download.file == fixture.files.file("keys.txt"))
    }

    @Test func twoThatEndAlikeDoNotTakeEachOthersPlace() async throws {
        let fixture = try DownloadFixture(), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { [.wait(barrier), .reply(body: Array($0.target.utf8))] }
        let manager = fixture.manager()
        let one = try await manager.start(server.url("/x/a.txt").absoluteString)
        let other = try await manager.start(server.url("/y/a.txt").absoluteString)
        barrier.open()
        #expect(try await one.file == fixture.files.file("a.txt"))
        #expect(try await other.file == fixture.files.file("a (2).txt"))
        #expect(fixture.files.read("a (2).txt") == "/y/a.txt")
    }
}
#endif
