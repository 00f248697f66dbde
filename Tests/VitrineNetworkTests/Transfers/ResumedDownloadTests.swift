#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

/// Downloads that break off are gone on with, and never put together of what does not belong together.
struct ResumedDownloadTests {
    private let content = pattern(20_000)
    /// Of the same length, different in every byte.
    private let other = pattern(20_000).map { ~$0 }

    /// Downloads from a server that breaks off at first, then as `answer` says to requests for the rest.
    private func resume(
        cutAt count: Int = 8000, change: (Destination) throws -> Void = { _ in },
        _ answer: @escaping @Sendable (LoopbackServer.Request) -> [LoopbackServer.Step]
    ) async throws -> (DownloadedFile, Destination, [LoopbackServer.Request]) {
        let site = FileSite(content), destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { turn.add(1) == 1 ? site.reply(to: $0, upTo: count) : answer($0) }
        let loader = makeDownloader(), request = patient(server.url("/file?token=1"))
        let error = await failure { _ = try await loader.download(request, to: destination.path) }
        guard case .truncated = error else { throw error ?? NetworkError.cancelled(url: "") }
        #expect(destination.bytes == nil)
        try change(destination)
        let file = try await loader.download(request, to: destination.path)
        #expect(destination.names == ["file"])
        return (file, destination, server.requests)
    }

    @Test func cutAtEveryKilobyteGoesOnWhereItWas() async throws {
        let site = FileSite(content)
        for cut in stride(from: 1, through: 19_999, by: 1000) {
            let (file, destination, requests) = try await resume(cutAt: cut) { site.reply(to: $0) }
            #expect(destination.bytes == content)
            #expect(file.resumedLength == cut)
            #expect(file.head.status == 200)
            #expect(file.head.contentLength == 20_000)
            #expect(!file.head.headers.contains("Content-Range"))
            #expect(requests.count == 2)
            #expect(requests[1].header("Range") == "bytes=\(cut)-")
            #expect(requests[1].header("If-Range") == "\"v1\"")
        }
    }

    @Test func whatWasResetGoesOnFromWhatHadArrived() async throws {
        let site = FileSite(content), destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { request in
            turn.add(1) < 20 ? site.reply(to: request, upTo: 1500, then: [.reset]) : site.reply(to: request)
        }
        let loader = makeDownloader(), request = patient(server.url("/"))
        while await failure({ _ = try await loader.download(request, to: destination.path) }) != nil {}
        #expect(destination.bytes == content)
    }

    @Test func oneCallGoesOnAsLongAsThereIsProgress() async throws {
        let site = FileSite(content), destination = try Destination(), progress = TransferProgress()
        let server = try LoopbackServer { site.reply(to: $0, upTo: 1000) }
        let file = try await makeDownloader(repetitions: 1).download(
            patient(server.url("/")), to: destination.path, progress: progress)
        #expect(destination.bytes == content)
        #expect(file.resumedLength == 0)
        #expect(server.requests.count == 20)
        #expect(progress.current.received == 20_000)
        #expect(progress.current.retries == 19)
    }

    @Test func withoutProgressItEnds() async throws {
        let site = FileSite(content), destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { site.reply(to: $0, upTo: turn.add(1) == 1 ? 1000 : 0) }
        let error = await failure {
            _ = try await makeDownloader(repetitions: 3).download(patient(server.url("/")), to: destination.path)
        }
        guard case .truncated = error else { Issue.record("\(String(describing: error))"); return }
        #expect(server.requests.count == 4)
    }

    @Test func smallerPartsThanAskedForArePutTogether() async throws {
        let content = content
        let (_, destination, requests) = try await resume { request in
            let range = request.header("Range")
            guard let start = range.flatMap({ Int($0.dropFirst(6).dropLast()) }) else { return [.close] }
            let end = min(start + 5000, content.count)
            return [
                .reply(
                    206, ["ETag: \"v1\"", "Content-Range: bytes \(start)-\(end - 1)/20000"],
                    body: Array(content[start..<end]))
            ]
        }
        #expect(destination.bytes == content)
        #expect(requests.count == 4)
    }

    // MARK: Changed sources

    @Test func aChangedSourceStartsOver() async throws {
        var changed = FileSite(other)
        changed.tag = "\"v2\""
        let site = changed
        let (file, destination, requests) = try await resume { site.reply(to: $0) }
        #expect(destination.bytes == other)
        #expect(file.restarts == 1)
        #expect(file.resumedLength == 0)
        #expect(file.head.headers["ETag"] == "\"v2\"")
        #expect(requests.count == 2)
    }

    @Test func aPartOfAnotherVersionIsNotTaken() async throws {
        // If-Range is not known to every server.
        let other = other
        let (_, destination, requests) = try await resume { request in
            guard request.header("Range") != nil else { return [.reply(200, ["ETag: \"v2\""], body: other)] }
            let fields = ["Content-Range: bytes 8000-19999/20000", "ETag: \"v2\""]
            return [.reply(206, fields, body: Array(other[8000...]))]
        }
        #expect(destination.bytes == other)
        #expect(requests.count == 3)
        #expect(requests[2].header("Range") == nil)
    }

    @Test(arguments: [
        "bytes 7999-19999/20000", "bytes 8001-19999/20000", "bytes 0-19999/20000", "bytes 8000-19999/20001",
        "bytes 8000-20000/20000", "bytes */20000", "items 8000-19999/20000", "bytes 8000-19999/*", "nonsense", "",
        "bytes 8000-19999/20000\r\nContent-Range: bytes 8000-19999/20000",
        "bytes 8000-19999/20000\r\nContent-Encoding: gzip", "bytes 8000-19998/20000",
    ])
    func wrongPartsAreNotTaken(_ range: String) async throws {
        let content = content, other = other
        let (_, destination, requests) = try await resume { request in
            guard request.header("Range") != nil else { return [.reply(200, ["ETag: \"v1\""], body: content)] }
            // Bytes that would show.
            return [.reply(206, range.isEmpty ? [] : ["Content-Range: \(range)"], body: Array(other[8000...]))]
        }
        // Where only the total is missing, a second request shows that the bytes are others.
        #expect(destination.bytes == content)
        #expect(requests.count == (range == "bytes 8000-19999/*" ? 4 : 3))
    }

    @Test func withoutATotalWhatTheWholeWasSaidToBeCounts() async throws {
        let content = content
        let (_, destination, requests) = try await resume { _ in
            [.reply(206, ["Content-Range: bytes 8000-19999/*", "ETag: \"v1\""], body: Array(content[8000...]))]
        }
        #expect(destination.bytes == content)
        #expect(requests.count == 2)
    }

    /// A server that does not know If-Range, and does not say of which version its parts are.
    @Test(arguments: [8000, 19_000, 1])
    func partsThatDoNotSayOfWhatAreComparedFirst(_ cut: Int) async throws {
        let content = content, other = other
        for (source, isChanged) in [(content, false), (other, true)] {
            let (file, destination, requests) = try await resume(cutAt: cut) { request in
                guard let (start, last) = FileSite.range(request) else { return [.reply(200, ["ETag: \"v2\""], body: source)] }
                let end = last ?? source.count - 1
                return [.reply(206, ["Content-Range: bytes \(start)-\(end)/20000"], body: Array(source[start...end]))]
            }
            #expect(destination.bytes == source)
            #expect(file.restarts == (isChanged ? 1 : 0))
            #expect(file.resumedLength == (isChanged ? 0 : cut))
            #expect(requests[1].header("Range") == "bytes=\(cut)-")
            #expect(requests[2].header("Range") == "bytes=0-")
        }
    }

    @Test func ofLongBeginningsTheEndIsCompared() async throws {
        let content = pattern(400_000), other = content.map { ~$0 }
        for (source, isChanged) in [(content, false), (other, true)] {
            let site = FileSite(content), destination = try Destination(), turn = Counter()
            let server = try LoopbackServer { request in
                guard turn.add(1) > 1 else { return site.reply(to: request, upTo: 300_000) }
                guard let (start, _) = FileSite.range(request) else { return [.reply(200, [], body: source)] }
                return [.reply(206, ["Content-Range: bytes \(start)-399999/400000"], body: Array(source[start...]))]
            }
            let loader = makeDownloader()
            _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
            _ = try await loader.download(patient(server.url("/")), to: destination.path)
            #expect(destination.bytes == source)
            let ranges = server.requests.map { $0.header("Range") }
            #expect(Array(ranges[..<3]) == [nil, "bytes=300000-", "bytes=234464-"])
            #expect(ranges.count == (isChanged ? 4 : 3))
        }
    }

    @Test func smallPartsThatDoNotSayOfWhatAreComparedToo() async throws {
        let content = content
        let (file, destination, _) = try await resume { request in
            guard let (start, _) = FileSite.range(request) else { return [.reply(200, [], body: content)] }
            let end = min(start + 5000, content.count)
            return [.reply(206, ["Content-Range: bytes \(start)-\(end - 1)/20000"], body: Array(content[start..<end]))]
        }
        #expect(destination.bytes == content)
        #expect(file.restarts == 0)
    }

    @Test func serversWithoutPartsStartOver() async throws {
        let content = content
        let (file, destination, _) = try await resume { _ in [.reply(200, ["ETag: \"v1\""], body: content)] }
        #expect(destination.bytes == content)
        #expect(file.restarts == 1)
    }

    @Test func anotherPlaceBehindARedirectIsAnotherSource() async throws {
        let site = FileSite(content), elsewhere = FileSite(other), destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { request in
            switch request.target {
            case "/x": site.reply(to: request, upTo: 8000)
            case "/y": elsewhere.reply(to: request)
            default: [.reply(302, ["Location: \(turn.add(1) == 1 ? "/x" : "/y")"])]
            }
        }
        let loader = makeDownloader()
        _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
        // The same tag, but of something else.
        _ = try await loader.download(patient(server.url("/")), to: destination.path)
        #expect(destination.bytes == other)
    }

    @Test(arguments: [true, false]) func anotherQueryBehindARedirectIsCompared(isSame: Bool) async throws {
        let site = FileSite(content), elsewhere = FileSite(isSame ? content : other), turn = Counter()
        let destination = try Destination()
        let server = try LoopbackServer { request in
            switch request.target {
            case "/x?sign=1": site.reply(to: request, upTo: 8000)
            case "/x?sign=2": elsewhere.reply(to: request)
            default: [.reply(302, ["Location: /x?sign=\(turn.add(1) == 1 ? 1 : 2)"])]
            }
        }
        let loader = makeDownloader()
        _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
        // The same tag, of the same file under a newly signed address or of something else.
        let file = try await loader.download(patient(server.url("/")), to: destination.path)
        #expect(destination.bytes == (isSame ? content : other))
        #expect(file.resumedLength == (isSame ? 8000 : 0))
    }

    // MARK: Answers without a body to take

    @Test(arguments: [0, 70_000, 149_999]) func changedBytesOfAPartAreReceivedAgain(offset: Int) async throws {
        let content = pattern(200_000), site = FileSite(content), destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { site.reply(to: $0, upTo: turn.add(1) == 1 ? 150_000 : nil) }
        let loader = makeDownloader(), request = patient(server.url("/file"))
        #expect(await failure { _ = try await loader.download(request, to: destination.path) } != nil)
        try Destination.damage(destination.partPath, at: offset)
        let file = try await loader.download(request, to: destination.path)
        #expect(destination.bytes == content)
        #expect(destination.names == ["file"])
        // The bytes before the block with the changed one are kept.
        let kept = offset / 65_536 * 65_536
        #expect(file.resumedLength == kept)
        #expect(server.requests.last?.header("Range") == (kept == 0 ? nil : "bytes=\(kept)-"))
    }

    @Test func wholePartsAreConfirmedWithoutLoading() async throws {
        let site = FileSite(content), content = content
        let (file, destination, requests) = try await resume(change: { try $0.extendPart(content[8000...]) }) {
            site.reply(to: $0)
        }
        #expect(destination.bytes == content)
        #expect(file.resumedLength == 20_000)
        #expect(file.head.status == 200)
        #expect(file.head.contentLength == 20_000)
        #expect(requests.count == 2)
    }

    @Test func unsatisfiableRangesOfAnotherLengthStartOver() async throws {
        let content = content
        let (_, destination, requests) = try await resume { request in
            request.header("Range") == nil ? [.reply(body: content)] : [.reply(416, ["Content-Range: bytes */5"])]
        }
        #expect(destination.bytes == content)
        #expect(requests.count == 3)
    }

    @Test func busyServersLeaveWhatIsThereAndMissingFilesDoNot() async throws {
        for (status, isKept) in [(503, true), (404, false), (410, false)] {
            let site = FileSite(content), destination = try Destination(), turn = Counter()
            let server = try LoopbackServer { request in
                turn.add(1) == 1 ? site.reply(to: request, upTo: 8000) : [.reply(status)]
            }
            let loader = makeDownloader()
            for _ in 0..<2 {
                _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
            }
            #expect(destination.names.isEmpty == !isKept, "\(status)")
        }
    }

    // MARK: What cannot be gone on with

    @Test(arguments: [nil, "W/\"v1\"", "v1"])
    func withoutAStrongValidatorNothingIsKept(_ tag: String?) async throws {
        var plain = FileSite(content)
        plain.tag = tag
        let site = plain, destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { site.reply(to: $0, upTo: turn.add(1) == 1 ? 8000 : nil) }
        let loader = makeDownloader()
        _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
        #expect(destination.names.isEmpty)
        _ = try await loader.download(patient(server.url("/")), to: destination.path)
        #expect(destination.bytes == content)
        #expect(server.requests.allSatisfy { $0.header("Range") == nil })
    }

    @Test func aDateServesWhereTheBodyDoesNotVary() async throws {
        let fields = ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Mon, 07 Nov 1994 08:49:37 GMT"]
        for (more, isResumed) in [([], true), (["Vary: Accept"], false)] {
            var dated = FileSite(content)
            dated.tag = nil
            dated.fields = fields + more
            let site = dated, destination = try Destination(), turn = Counter()
            let server = try LoopbackServer { site.reply(to: $0, upTo: turn.add(1) == 1 ? 8000 : nil) }
            let loader = makeDownloader()
            _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
            _ = try await loader.download(patient(server.url("/")), to: destination.path)
            #expect(destination.bytes == content)
            let condition = server.requests.last?.header("If-Range")
            #expect(condition == (isResumed ? "Sun, 06 Nov 1994 08:49:37 GMT" : nil))
        }
    }

    @Test func codedBodiesAreDecodedUnlessTheFileItselfIsCoded() async throws {
        let packed = try gzip(content), destination = try Destination()
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Encoding: gzip", "ETag: \"v1\""], body: packed)] }
        let loader = makeDownloader()
        let file = try await loader.download(patient(server.url("/file")), to: destination.path)
        #expect(destination.bytes == content)
        #expect(file.head.decodedFrom == "gzip")
        #expect(server.requests.count == 1)
        _ = try await loader.download(patient(server.url("/file.tar.gz")), to: destination.path)
        #expect(destination.bytes == packed)
        #expect(server.requests.count == 2)
    }

    @Test func othersIdentitiesAreNotGoneOnWith() async throws {
        let site = FileSite(content), destination = try Destination()
        let server = try LoopbackServer { site.reply(to: $0, upTo: 8000) }
        let loader = makeDownloader()
        var options = DownloadOptions()
        options.identity = "film"
        for target in ["/?signature=1", "/?signature=2"] {
            _ = await failure { [options] in
                _ = try await loader.download(patient(server.url(target)), to: destination.path, options: options)
            }
        }
        // Under another query the received bytes are compared.
        #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=8000-", "bytes=0-"])
        _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
        #expect(server.requests.last?.header("Range") == nil)
        options.resumes = false
        _ = await failure { [options] in
            _ = try await loader.download(patient(server.url("/")), to: destination.path, options: options)
        }
        #expect(server.requests.last?.header("Range") == nil)
        #expect(destination.names.isEmpty)
    }

    // MARK: Servers that contradict themselves

    @Test func aPartWithStatus200IsAppended() async throws {
        let content = content
        let (file, destination, _) = try await resume { request in
            let range = request.header("Range")
            guard let start = range.flatMap({ Int($0.dropFirst(6).dropLast()) }) else { return [.close] }
            let fields = ["ETag: \"v1\"", "Content-Range: bytes \(start)-19999/20000"]
            return [.reply(200, fields, body: Array(content[start...]))]
        }
        #expect(destination.bytes == content)
        #expect(file.resumedLength == 8000)
    }

    @Test func theSameTagWithAnotherLengthIsRefused() async throws {
        let error = await failure {
            _ = try await resume { _ in [.reply(200, ["ETag: \"v1\""], body: [1, 2, 3])] }
        }
        guard case .invalidResponse = error else { Issue.record("\(String(describing: error))"); return }
    }

    @Test func aBodyWithoutALengthIsCompleteIfTheServerConfirmsIt() async throws {
        let content = content, destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { request in
            guard turn.add(1) > 1 else {
                let head = "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nTransfer-Encoding: chunked\r\n\r\n"
                // Everything but the last chunk.
                return [.text(head + String(content.count, radix: 16) + "\r\n"), .bytes(content), .text("\r\n"), .close]
            }
            return [.reply(416, ["Content-Range: bytes */20000", "ETag: \"v1\""])]
        }
        let loader = makeDownloader(), request = patient(server.url("/"))
        #expect(await failure { _ = try await loader.download(request, to: destination.path) } != nil)
        _ = try await loader.download(request, to: destination.path)
        #expect(destination.bytes == content)
        #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=20000-"])
    }
}
#endif
