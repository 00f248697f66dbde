#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

/// What downloading promises when nothing is amiss, and about the destination in every case.
struct DownloadTests {
    private let content = pattern(100_000)

    @Test func theWholeAppearsWithItsHead() async throws {
        let site = FileSite(content), destination = try Destination(), progress = TransferProgress()
        let server = try LoopbackServer { site.reply(to: $0) }
        let file = try await makeDownloader().download(
            patient(server.url("/a.bin?x")), to: destination.path, progress: progress)
        #expect(destination.bytes == content)
        #expect(destination.names == ["file"])
        #expect(file.path == destination.path)
        #expect(file.length == content.count)
        #expect(file.head.status == 200)
        #expect(file.head.headers["ETag"] == "\"v1\"")
        #expect(file.resumedLength == 0)
        #expect(progress.current.isComplete)
        #expect(progress.current.received == content.count)
        #expect(server.requests.first?.header("Accept-Encoding") == "identity")
        #expect(server.requests.first?.header("Range") == nil)
    }

    @Test func filesAndInlineDataAreCopied() async throws {
        let directory = try TemporaryDirectory(), destination = try Destination()
        try Data(content).write(to: URL(filePath: directory.file("source")))
        let loader = makeDownloader()
        _ = try await loader.download(HTTPRequest(url: URL(filePath: directory.file("source"))), to: destination.path)
        #expect(destination.bytes == content)
        let url = try #require(URL(string: "data:,hello"))
        let file = try await loader.download(HTTPRequest(url: url), to: destination.path)
        #expect(destination.bytes == Array("hello".utf8))
        #expect(file.head.contentType == "text/plain")
        #expect(destination.names == ["file"])
    }

    @Test func anEmptyBodyIsAnEmptyFile() async throws {
        let server = try LoopbackServer { _ in [.reply()] }, destination = try Destination()
        let file = try await makeDownloader().download(patient(server.url("/")), to: destination.path)
        #expect(destination.bytes?.isEmpty == true)
        #expect(file.length == 0)
    }

    @Test(arguments: [204, 205])
    func aReplyWithoutContentIsNoFile(_ status: Int) async throws {
        let server = try LoopbackServer { _ in [.text("HTTP/1.1 \(status) No Content\r\nETag: \"1\"\r\n\r\n"), .close] }
        for connections in [1, 4] {
            let destination = try Destination()
            try destination.directory.write("before", to: "file")
            var options = DownloadOptions()
            options.connections = connections
            let error = await failure { [options] in
                _ = try await makeDownloader().download(patient(server.url("/")), to: destination.path, options: options)
            }
            guard case .status(_, let head) = error else { Issue.record("\(String(describing: error))"); continue }
            #expect(head.status == status)
            #expect(destination.directory.read("file") == "before")
            #expect(destination.names == ["file"])
        }
    }

    @Test func errorsNameTheDestination() async throws {
        let site = FileSite(content), destination = try Destination()
        let server = try LoopbackServer { site.reply(to: $0) }
        // Where the part file would be is something that is no file.
        try FileManager.default.createDirectory(atPath: destination.partPath, withIntermediateDirectories: false)
        let error = await failure {
            _ = try await makeDownloader().download(patient(server.url("/")), to: destination.path)
        }
        guard case .file(let cause) = error else { Issue.record("\(String(describing: error))"); return }
        #expect(cause.path == destination.path)
        #expect(!"\(cause)".contains("vitrine-part"))
        // The same for what is known of it.
        let other = try Destination()
        let head = PartialFile.headPath(other.partPath)
        try FileManager.default.createDirectory(atPath: head + "/x", withIntermediateDirectories: true)
        let second = await failure {
            _ = try await makeDownloader().download(patient(server.url("/")), to: other.path)
        }
        guard case .file(let cause) = second else { Issue.record("\(String(describing: second))"); return }
        #expect(cause.path == other.path)
    }

    // MARK: The destination

    @Test func aFileIsReplacedByAWholeOneOnly() async throws {
        let site = FileSite(content), destination = try Destination()
        try destination.directory.write("before", to: "file")
        chmod(destination.path, 0o640)
        let server = try LoopbackServer { $0.target == "/cut" ? site.reply(to: $0, upTo: 5000) : site.reply(to: $0) }
        let loader = makeDownloader()
        _ = await failure { _ = try await loader.download(patient(server.url("/cut")), to: destination.path) }
        #expect(destination.directory.read("file") == "before")
        _ = try await loader.download(patient(server.url("/")), to: destination.path)
        #expect(destination.bytes == content)
        #expect(destination.names == ["file"])
        let attributes = try FileManager.default.attributesOfItem(atPath: destination.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o640)
    }

    @Test func whatMustNotBeReplacedIsToldBeforeAnythingIsLoaded() async throws {
        let site = FileSite(content), destination = try Destination()
        let server = try LoopbackServer { site.reply(to: $0) }, loader = makeDownloader()
        var options = DownloadOptions()
        options.replacesFile = false
        _ = try await loader.download(patient(server.url("/")), to: destination.path, options: options)
        #expect(destination.bytes == content)
        let there = await failure { [options] in
            _ = try await loader.download(patient(server.url("/")), to: destination.path, options: options)
        }
        guard case .file(.alreadyExists) = there else { Issue.record("\(String(describing: there))"); return }
        let directory = await failure {
            _ = try await loader.download(patient(server.url("/")), to: destination.directory.path)
        }
        guard case .file(.system(_, _, EISDIR)) = directory else {
            Issue.record("\(String(describing: directory))")
            return
        }
        let missing = await failure {
            _ = try await loader.download(patient(server.url("/")), to: destination.directory.file("no/file"))
        }
        guard case .file(.notFound(destination.directory.file("no/file"))) = missing else {
            Issue.record("\(String(describing: missing))")
            return
        }
        #expect(server.requests.count == 1)
        #expect(destination.names == ["file"])
    }

    @Test func aLinkStaysAndWhatItPointsToIsReplaced() async throws {
        let site = FileSite(content), destination = try Destination()
        let server = try LoopbackServer { site.reply(to: $0) }
        try destination.directory.write("before", to: "target")
        try FileManager.default.createSymbolicLink(
            atPath: destination.path, withDestinationPath: destination.directory.file("target"))
        let file = try await makeDownloader().download(patient(server.url("/")), to: destination.path)
        #expect(file.path == destination.directory.file("target"))
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: destination.path) == file.path)
        #expect(destination.bytes == content)
    }

    // MARK: Several at once

    @Test func oneAtATimeWritesToADestination() async throws {
        let site = FileSite(content), destination = try Destination(), barrier = LoopbackServer.Barrier()
        let server = try LoopbackServer { site.reply(to: $0, upTo: 1000, then: [.wait(barrier), .close]) }
        let loader = makeDownloader(), url = server.url("/"), progress = TransferProgress()
        let first = Task { try await loader.download(patient(url), to: destination.path, progress: progress) }
        for await step in progress where step.received >= 1000 { break }
        let second = await failure { _ = try await loader.download(patient(url), to: destination.path) }
        guard case .busy(url.absoluteString, destination.path) = second else {
            Issue.record("\(String(describing: second))")
            return
        }
        barrier.open()
        _ = await first.result
        // Free again the moment the first has ended.
        let whole = try LoopbackServer { site.reply(to: $0) }
        for _ in 0..<20 { _ = try await loader.download(patient(whole.url("/")), to: destination.path) }
        #expect(destination.bytes == content)
    }

    @Test func cancellingKeepsWhatIsThere() async throws {
        let site = FileSite(content), destination = try Destination()
        let server = try LoopbackServer { request in
            if request.header("Range") != nil { return site.reply(to: request) }
            return site.reply(to: request, upTo: 1000, then: [.hang])
        }
        let loader = makeDownloader(), url = server.url("/"), progress = TransferProgress()
        let task = Task { try await loader.download(patient(url), to: destination.path, progress: progress) }
        for await step in progress where step.received >= 1000 { break }
        task.cancel()
        let error = await failure { _ = try await task.value }
        guard case .cancelled = error else { Issue.record("\(String(describing: error))"); return }
        #expect(progress.current.isFinished && !progress.current.isComplete)
        let file = try await loader.download(patient(url), to: destination.path)
        #expect(file.resumedLength == 1000)
        #expect(destination.bytes == content)
    }

    // MARK: Requests

    @Test func partsAreNotDownloaded() async throws {
        let server = try LoopbackServer { _ in [.reply()] }, destination = try Destination()
        var ranged = patient(server.url("/")), fielded = patient(server.url("/"))
        ranged.range = .toEnd(from: 5)
        fielded.headers["Range"] = "bytes=5-"
        for request in [ranged, fielded] {
            let error = await failure { _ = try await makeDownloader().download(request, to: destination.path) }
            guard case .invalidRequest = error else { Issue.record("\(String(describing: error))"); continue }
        }
        #expect(server.requests.isEmpty)
        #expect(destination.names.isEmpty)
    }

    @Test func policyAndStatusAreCheckedBeforeAnythingIsKept() async throws {
        let destination = try Destination()
        let table: [(Int, String, Int)] = [(404, "image/png", -402), (500, "image/png", -402), (200, "text/html", -400)]
        for (status, type, code) in table {
            let server = try LoopbackServer { _ in [.reply(status, ["Content-Type: \(type)"], body: [1, 2, 3])] }
            let loader = makeDownloader { $0.policy.contentTypes = ["image/*"] }
            let error = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
            #expect(error?.code == code)
            #expect(destination.names.isEmpty)
        }
    }

    @Test func theWholeMayNotBeLargerThanAllowed() async throws {
        let site = FileSite(content), destination = try Destination()
        let server = try LoopbackServer { request in
            request.header("Range") == nil ? site.reply(to: request, upTo: 60_000) : site.reply(to: request)
        }
        let loader = makeDownloader()
        // What comes of it later is counted with what is there.
        _ = await failure { _ = try await loader.download(patient(server.url("/")), to: destination.path) }
        var request = patient(server.url("/"))
        request.maximumBodySize = .kilobytes(70)
        let error = await failure { [request] in _ = try await loader.download(request, to: destination.path) }
        guard case .bodyTooLarge(_, .kilobytes(70)) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        request.maximumBodySize = .kilobytes(100)
        #expect(try await loader.download(request, to: destination.path).resumedLength == 60_000)
        #expect(destination.bytes == content)
    }
}
#endif
