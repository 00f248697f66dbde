#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

/// Files that come over several connections, in pieces of a megabyte at least.
struct PiecewiseDownloadTests {
    /// Eight pieces.
    private static let size = 8_400_000
    private let content = pattern(PiecewiseDownloadTests.size)
    private var other: [UInt8] { content.map { ~$0 } }
    private let destination: Destination

    init() throws { destination = try Destination() }

    private func download(
        _ server: LoopbackServer, connections: Int = 4, repetitions: Int = 0, progress: TransferProgress? = nil
    ) async throws -> DownloadedFile {
        var options = DownloadOptions()
        options.connections = connections
        return try await makeDownloader(repetitions: repetitions).download(
            patient(server.url("/file")), to: destination.path, options: options, progress: progress)
    }

    @Test func piecesOfAnyNumberOfConnectionsAreCounted() {
        for total in [Int.max, .min, -1, 0, 1 << 40] {
            for connections in [Int.max, .min, -1, 0, 2, Int.max / 4 + 1] {
                let divided = PieceTable(dividing: total, among: connections)
                for table in [divided, PieceTable(total: total, lengths: [connections])].compactMap({ $0 }) {
                    #expect((1...256).contains(table.count))
                    #expect((0..<table.count).reduce(0) { $0 + table.missing(of: $1).count } <= total)
                }
            }
        }
        #expect(PieceTable(dividing: 1 << 40, among: .max)?.count == 256)
    }

    @Test func piecesComeAtTheSameTime() async throws {
        let site = FileSite(content), barrier = LoopbackServer.Barrier(), asked = Counter()
        let server = try LoopbackServer { request in
            // Three more have to ask before any of them gets something.
            let number = asked.add(1)
            if number == 4 { barrier.open() }
            return (number == 1 ? [] : [.wait(barrier)]) + site.reply(to: request)
        }
        let progress = TransferProgress()
        let file = try await download(server, progress: progress)
        #expect(destination.bytes == content)
        #expect(destination.names == ["file"])
        #expect(file.length == Self.size && file.resumedLength == 0 && file.restarts == 0)
        #expect(file.head.status == 200)
        #expect(file.head.contentLength == Self.size)
        #expect(!file.head.headers.contains("Content-Range"))
        #expect(progress.current.received == Self.size && progress.current.isComplete)
        #expect(server.requests.first?.header("Range") == "bytes=0-")
        #expect(server.requests.dropFirst().allSatisfy { $0.header("If-Range") == "\"v1\"" })
        #expect(server.requests.count == 8)
    }

    @Test(arguments: ["no ranges", "weak tag", "no validator", "small", "unknown length"])
    func whatCannotComeInPiecesComesAsAWhole(why: String) async throws {
        var site = FileSite(why == "small" ? Array(content[..<1_900_000]) : content)
        if why == "weak tag" { site.tag = "W/\"v1\"" }
        if why == "no validator" { site.tag = nil }
        let server = try LoopbackServer { [site] request in
            switch why {
            case "no ranges": [.reply(body: site.content)]
            case "unknown length":
                [.text("HTTP/1.1 200 OK\r\nConnection: close\r\nETag: \"v1\"\r\n\r\n"), .bytes(site.content), .close]
            default: site.reply(to: request)
            }
        }
        let file = try await download(server)
        #expect(destination.bytes == site.content)
        #expect(file.head.status == 200)
        #expect(server.requests.count == 1)
        #expect(destination.names == ["file"])
    }

    /// It tells at once how long to wait, as over one connection.
    @Test func aRefusalIsNotAskedForAgain() async throws {
        let server = try LoopbackServer { _ in [.reply(503, ["Retry-After: 9223372036854775806"], body: [])] }
        await #expect(throws: NetworkError.self) { try await download(server) }
        #expect(server.requests.count == 1)
    }

    @Test func aPartIsNotTakenForTheWhole() async throws {
        // Too small for pieces, and sent in parts nevertheless.
        let site = FileSite(Array(content[..<1_900_000]))
        let server = try LoopbackServer { request in
            guard request.header("Range") == "bytes=0-" else { return site.reply(to: request) }
            return [
                .reply(
                    206, ["ETag: \"v1\"", "Content-Range: bytes 0-999/1900000"], body: Array(site.content[..<1000]))
            ]
        }
        #expect(try await download(server).length == 1_900_000)
        #expect(destination.bytes == site.content)
    }

    @Test func smallerPartsThanAskedForArePutTogether() async throws {
        let content = content
        let server = try LoopbackServer { request in
            let bounds = request.header("Range")?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
            guard let start = bounds.first else { return [.close] }
            let end = min(start + 400_000, (bounds.dropFirst().first ?? content.count - 1) + 1)
            return [
                .reply(
                    206, ["ETag: \"v1\"", "Content-Range: bytes \(start)-\(end - 1)/\(content.count)"],
                    body: Array(content[start..<end]))
            ]
        }
        #expect(try await download(server).restarts == 0)
        #expect(destination.bytes == content)
    }

    @Test func emptyAndMissingFilesAreWhatTheyAre() async throws {
        let empty = FileSite([])
        let server = try LoopbackServer { request in
            request.target == "/file" ? empty.reply(to: request) : [.reply(404)]
        }
        #expect(try await download(server).length == 0)
        #expect(destination.bytes == [])
        let error = await failure {
            var options = DownloadOptions()
            options.connections = 4
            _ = try await makeDownloader().download(
                patient(server.url("/none")), to: destination.path, options: options)
        }
        guard case .status(_, let head) = error else { throw error ?? NetworkError.cancelled(url: "") }
        #expect(head.status == 404)
        #expect(destination.names == ["file"])
    }

    /// Calls once, which breaks off after 300,000 bytes of the first piece; the others have nothing by then.
    ///
    /// - Parameter next: What the server has from then on.
    private func breakOff(then next: FileSite? = nil) async throws -> LoopbackServer {
        let site = next ?? FileSite(content)
        return try await breakOff { site.reply(to: $0) }
    }

    private func breakOff(
        then answer: @escaping @Sendable (LoopbackServer.Request) -> [LoopbackServer.Step]
    ) async throws -> LoopbackServer {
        let site = FileSite(content), isCut = Locked(true)
        let server = try LoopbackServer { request in
            guard isCut.withLock({ $0 }) else { return answer(request) }
            return request.header("Range") == "bytes=0-" ? site.reply(to: request, upTo: 300_000) : [.hang]
        }
        let error = await failure { _ = try await download(server) }
        guard case .truncated = error else { throw error ?? NetworkError.cancelled(url: "") }
        #expect(destination.names == ["file.vitrine-head", "file.vitrine-part", "file.vitrine-sums"])
        isCut.withLock { $0 = false }
        return server
    }

    @Test func whatBrokeOffGoesOnWhereItWas() async throws {
        let server = try await breakOff()
        let file = try await download(server)
        #expect(file.resumedLength == 300_000)
        #expect(file.restarts == 0)
        #expect(destination.bytes == content)
        #expect(destination.names == ["file"])
        #expect(server.requests.filter { $0.header("Range") == "bytes=0-" }.count == 1)
        #expect(server.requests.contains { $0.header("Range") == "bytes=300000-1049999" })
    }

    @Test(arguments: [1, 3]) func anotherNumberOfConnectionsGoesOnToo(connections: Int) async throws {
        let server = try await breakOff()
        let file = try await download(server, connections: connections)
        #expect(destination.bytes == content)
        #expect(file.resumedLength == 300_000)
    }

    @Test func repetitionsAreOfThePieceThatBrokeOff() async throws {
        let site = FileSite(content), progress = TransferProgress()
        let server = try LoopbackServer { site.reply(to: $0, upTo: 400_000) }
        _ = try await download(server, repetitions: 1, progress: progress)
        #expect(destination.bytes == content)
        #expect(progress.current.retries >= 4)
    }

    @Test func aSourceThatChangesMeanwhileIsLoadedAnew() async throws {
        let turn = Counter(), content = content, other = other
        let server = try LoopbackServer { request in
            var site = FileSite(turn.add(1) <= 2 ? content : other)
            if site.content == other { site.tag = "\"v2\"" }
            return site.reply(to: request)
        }
        let file = try await download(server)
        #expect(destination.bytes == other)
        #expect(file.restarts == 1)
        #expect(destination.names == ["file"])
    }

    /// A server that does not know If-Range and does not say of which version its parts are.
    @Test func piecesThatDoNotSayOfWhatAreNotTaken() async throws {
        let other = other
        let server = try await breakOff { request in
            guard let (start, last) = FileSite.range(request) else { return [.reply(200, ["ETag: \"v2\""], body: other)] }
            let end = last ?? other.count - 1
            return [
                .reply(
                    206, ["Content-Range: bytes \(start)-\(end)/\(other.count)"], body: Array(other[start...end]))
            ]
        }
        let file = try await download(server)
        #expect(destination.bytes == other)
        #expect(file.restarts == 1)
    }

    @Test func aSourceThatChangedBetweenCallsIsLoadedAnew() async throws {
        var site = FileSite(other)
        site.tag = "\"v2\""
        let server = try await breakOff(then: site)
        let file = try await download(server)
        #expect(destination.bytes == other)
        #expect(file.restarts == 1)
    }

    @Test func aServerThatGivesNoMorePartsSendsItAll() async throws {
        let turn = Counter(), content = content
        let server = try LoopbackServer { request in
            turn.add(1) == 1
                ? FileSite(content).reply(to: request) : [.reply(200, ["ETag: \"v1\""], body: content)]
        }
        let file = try await download(server)
        #expect(destination.bytes == content)
        #expect(file.restarts == 1)
    }

    @Test func whatIsThereAndNotOnTheMediumIsNotBelievedAfterACrash() async throws {
        let server = try await breakOff()
        try destination.rewriteHead { head in
            head.session = "another"
            head.durablePieces = head.durablePieces.map { _ in 0 }
        }
        let file = try await download(server)
        #expect(file.resumedLength == 0)
        #expect(destination.bytes == content)
    }

    @Test func whatIsOnTheMediumIsGoneOnWithAfterACrash() async throws {
        let server = try await breakOff()
        // What a machine that crashed may leave: the old notes, and less than they say.
        try destination.rewriteHead { head in
            head.session = "another"
            head.durablePieces = head.durablePieces.indices.map { $0 == 0 ? 250_000 : 0 }
            var sum = CRC32C()
            content[196_608..<250_000].withUnsafeBytes { sum.update($0) }
            head.durableSums = head.durablePieces.indices.map { $0 == 0 ? sum.value : 0 }
        }
        let file = try await download(server)
        #expect(file.resumedLength == 250_000)
        #expect(destination.bytes == content)
    }

    @Test func damagedNotesAreNotBelieved() async throws {
        let server = try await breakOff()
        // On a slow machine some may be on the medium by now.
        try destination.rewriteHead { head in head.durablePieces = head.durablePieces.map { _ in 0 } }
        let part = try FileHandle(forUpdating: URL(filePath: destination.partPath))
        try part.seek(toOffset: UInt64(Self.size))
        try part.write(contentsOf: Data(repeating: 0xFF, count: 8))
        try part.close()
        let file = try await download(server)
        #expect(file.resumedLength == 0)
        #expect(destination.bytes == content)
    }

    @Test func tooLargeIsSaidBeforeAnythingIsThere() async throws {
        let site = FileSite(content)
        let server = try LoopbackServer { site.reply(to: $0) }
        var request = patient(server.url("/file")), options = DownloadOptions()
        request.maximumBodySize = ByteCount(3_000_000)
        options.connections = 4
        let error = await failure { [request, options] in
            _ = try await makeDownloader().download(request, to: destination.path, options: options)
        }
        guard case .bodyTooLarge = error else { throw error ?? NetworkError.cancelled(url: "") }
        #expect(destination.names.isEmpty)
    }
}
#endif
