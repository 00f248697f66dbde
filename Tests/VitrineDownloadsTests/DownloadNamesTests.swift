import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// Names that servers and addresses give, and checksums people write.
struct DownloadNamesTests {
    @Test(arguments: [
        ("attachment; filename=a.txt", "a.txt"),
        ("attachment; filename=\"a b.txt\"; size=3", "a b.txt"),
        ("inline;filename=\"a\\\"b.txt\"", "a\"b.txt"),
        ("attachment; filename=old.txt; filename*=UTF-8''%e2%82%ac%20rates.txt", "€ rates.txt"),
        ("attachment; FileName*=iso-8859-1'en'%A3.txt", "£.txt"),
        ("attachment; filename*=UTF-8''%zz; filename=plain.txt", "plain.txt"),
        ("attachment; filename=a;b.txt", "a"), ("attachment; x; filename=b.txt", "b.txt"),
        ("attachment; filename=\"C:\\\\dir\\\\x.txt\"", "C:\\dir\\x.txt"),
    ])
    func serversProposeNames(field: String, name: String) {
        #expect(ContentDisposition.fileName(field) == name)
    }

    @Test(arguments: ["attachment", "", "attachment;", "attachment; name=x", "filename=x"])
    func otherFieldsProposeNone(field: String) {
        #expect(ContentDisposition.fileName(field) == nil)
    }

    @Test(arguments: [
        ("../../etc/passwd", "passwd"), ("a/", "a"),
        ("C:\\dir\\x.txt", "x.txt"), (" a .txt ", "a .txt"), (".bashrc", "bashrc"),
        ("a\u{202E}gpj.exe", "agpj.exe"), ("a\nb\0c", "abc"), ("name.", "name"), ("täst.jpg", "täst.jpg"),
    ])
    func strangersNamesAreMadeSafe(name: String, safe: String) {
        #expect(DownloadName.safe(name) == safe)
    }

    @Test(arguments: ["", ".", "..", "/", "\\", "...", "//", "\u{200B}"]) func nothingIsLeftOfOthers(name: String) {
        #expect(DownloadName.safe(name) == nil)
    }

    @Test func longNamesKeepTheirEnding() throws {
        let long = try #require(DownloadName.safe(String(repeating: "ü", count: 300) + ".tar.gz"))
        #expect(long.utf8.count <= 255 && long.hasSuffix(".tar.gz"))
        let numbered = DownloadName.numbered(long, 1000)
        #expect(numbered.utf8.count <= 255 && numbered.hasSuffix(" (1000).tar.gz"))
        #expect(DownloadName.numbered("a", 2) == "a (2)")
        #expect(DownloadName.numbered("a.b.txt", 3) == "a.b (3).txt")
        #expect(DownloadName.numbered("a.txt", 1) == "a.txt")
    }

    @Test(arguments: [
        ("http://h/a/b.txt?q#f", "b.txt"), ("http://h/", "download"), ("http://h", "download"),
        ("http://h/%2e%2e", "download"), ("http://h/a%2Fb.txt", "b.txt"), ("http://h/%E2%82%AC", "€"),
    ])
    func addressesHaveNames(url: String, name: String) throws {
        #expect(DownloadName.name(for: try #require(URL(string: url))) == name)
    }

    @Test func checksumsAreRead() throws {
        let digest = String(repeating: "aB", count: 20)
        #expect(Checksum("SHA-1:" + digest)?.description == "sha1:" + digest.lowercased())
        for text in ["", "sha1", "sha1:", "sha1:xyz", "md5:" + digest, "crc32:00000000", "sha256:" + digest] {
            #expect(Checksum(text) == nil)
        }
    }

    /// FIPS 180-4's examples, as published by NIST.
    @Test(arguments: [
        ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        ),
    ])
    func sha1HasTheDigestsOfItsStandard(text: String, digest: String) {
        var sha1 = SHA1Digest()
        sha1.update(Array(text.utf8))
        #expect(sha1.hexadecimal == digest)
    }

    /// Statuses and records come from a journal or another process; no number in them ends this one.
    @Test(arguments: [Int.min, -1, 0, 1, .max]) func anyNumbersOfRecordsAreRead(_ number: Int) throws {
        for other in [Int.min, 0, .max] {
            let status = """
                {"id":"a","url":"https://example.org/a","state":"running","path":"/a","received":\(number),\
                "total":\(other),"speed":1,"restarts":0,"retries":0,"priority":0,"added":0}
                """
            let read = try JSONDecoder().decode(Stored<DownloadStatus>.self, from: Data(status.utf8)).wrappedValue
            #expect(read.timeLeft.map { $0 >= 0 } ?? false)
            _ = read.fraction
            let record = """
                {"id":"a","request":{"url":"https://example.org/a"},"status":\(status),"position":0,"source":\(number),\
                "revision":\(other)}
                """
            let found = try JSONDecoder().decode(DownloadRecord.self, from: Data(record.utf8))
            #expect(found.url.absoluteString == "https://example.org/a")
        }
    }

    @Test func anyIdleTimeOfAnAgentIsPassedOn() throws {
        // Longer than any machine runs: kept within what a duration holds.
        let words = try #require(AgentArguments(["--idle", String(Int.max)])).words
        #expect(words.suffix(2) == ["--idle", "1000000000000000"])
        #expect(AgentArguments(words)?.words == words)
    }

    @Test func requestsSurviveTheJournal() throws {
        var request = DownloadRequest(try #require(URL(string: "https://example.org/a")))
        request.mirrors = [try #require(URL(string: "https://example.com/a"))]
        request.headers = ["Authorization": "Bearer x"]
        request.checksum = Checksum(.md5, String(repeating: "0", count: 32))
        request.maximumRate = .kilobytes(5)
        request.existing = .number
        let data = try JSONEncoder().encode(Stored(wrappedValue: request))
        #expect(try JSONDecoder().decode(Stored<DownloadRequest>.self, from: data).wrappedValue == request)
        // What a later version leaves out, and what it adds.
        let short = Data(#"{"url": "https://example.org/a", "new": 1}"#.utf8)
        let read = try JSONDecoder().decode(Stored<DownloadRequest>.self, from: short).wrappedValue
        #expect(read == DownloadRequest(request.url))
        // Words that no release writes are refused, not taken for another.
        for member in [#""existing": "other""#, #""checksum": "md5:0""#] {
            let wrong = Data("{\"url\": \"https://example.org/a\", \(member)}".utf8)
            #expect(throws: DecodingError.self) { try JSONDecoder().decode(Stored<DownloadRequest>.self, from: wrong) }
        }
    }

    @Test func statusesSurviveTheJournal() throws {
        let url = try #require(URL(string: "https://example.org/a"))
        for state in DownloadStatus.State.allCases {
            let text = """
                {"id":"a","url":"https://example.org/a","state":"\(state.name)","path":"/a","received":1,"total":2,\
                "speed":3.5,"restarts":4,"retries":5,\
                "priority":\(RequestPriority.veryHigh.rawValue),"failure":{"code":-402,"message":"no"},\
                "retryDate":6,"added":7,"ended":8}
                """
            let status = try JSONDecoder().decode(Stored<DownloadStatus>.self, from: Data(text.utf8)).wrappedValue
            #expect(status.id == "a" && status.url == url && status.state == state && status.path == "/a")
            #expect(status.received == 1 && status.total == 2 && status.speed == 3.5)
            #expect(status.restarts == 4 && status.retries == 5 && status.priority == .veryHigh)
            #expect(status.error?.code == -402 && status.error?.description == "no")
            #expect(status.retryDate == Date(timeIntervalSinceReferenceDate: 6))
            #expect(status.added == Date(timeIntervalSinceReferenceDate: 7))
            #expect(status.ended == Date(timeIntervalSinceReferenceDate: 8))
            let written = try JSONEncoder().encode(Stored(wrappedValue: status))
            #expect(try JSONDecoder().decode(Stored<DownloadStatus>.self, from: written).wrappedValue == status)
        }
    }
}
