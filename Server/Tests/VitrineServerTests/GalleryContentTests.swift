#if os(Linux)
import Foundation
import Glibc
import ServerTestSupport
import Testing
import VitrineImaging
import VitrineServer

/// The kinds of files in a gallery, and the reasons of those that cannot be shown.
@Suite struct GalleryContentTests {
    /// The code of the failure of each file of the root, as the details tell it.
    private static func failures(_ program: ImageProgram, placeholders: Bool) async throws -> [String: String] {
        let folder = try await GalleryTests.folder(program)
        let more = placeholders ? "&placeholders=1" : ""
        let reply = try await program.ask("/gallery/api/details?listing=\(folder.listing)\(more)")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any])
        let details = try #require(object["details"] as? [Any])
        var failures: [String: String] = [:]
        for (name, known) in zip(folder.names, details) { failures[name] = (known as? [Any])?[5] as? String }
        return failures
    }

    @Test func everyKindThatIsReadIsListed() async throws {
        let root = try GalleryRoot()
        let kinds = [
            "lake.jpg": 0, "raw.NEF": 0, "old.jfif": 0, "layers.psd": 0, "paper.pdf": 1, "film.mkv": 2, "song.mp3": 3,
            "song.opus": 3, "letters.woff2": 4, "novel.epub": 5, "novel.fb2.zip": 5, "comic.cbz": 5, "table.xlsx": 5,
        ]
        for name in kinds.keys { try root.write([1, 2, 3], to: Array(name.utf8)) }
        for name in ["notes.txt", "program.swift", "archive.zip", "plain", "jpg", ".fb2.zip", "a.jpg.bak"] {
            try root.write([1, 2, 3], to: Array(name.utf8))
        }
        try await GalleryTests.run(root) { program in
            let folder = try await GalleryTests.folder(program)
            #expect(folder.kinds == kinds)
        }
    }

    @Test func filesThatCannotBeShownSayWhy() async throws {
        let root = try GalleryRoot()
        try root.write(Array("no photo".utf8), to: Array("text.jpg".utf8))
        try root.write([], to: Array("empty.png".utf8))
        try root.write(Array("no sound".utf8), to: Array("text.mp3".utf8))
        try root.write(Array(try Samples.bytes("lake.jpg").prefix(3_000)), to: Array("cut.jpg".utf8))
        try root.write(Self.lockedDocument, to: Array("locked.pdf".utf8))
        try root.copy("lake.jpg", to: "lake.jpg")
        try await GalleryTests.run(root) { program in
            // By their beginnings, without a helper program.
            let early = try await Self.failures(program, placeholders: false)
            let others = ["text.jpg", "empty.png", "text.mp3"]
            #expect(early == Dictionary(uniqueKeysWithValues: others.map { ($0, "not-an-image") }))
            let all = try await Self.failures(program, placeholders: true)
            #expect(all.count == others.count + 2)
            #expect(all["cut.jpg"] == "damaged-image" && all["locked.pdf"] == "encrypted")
            // A file that was mended is another one.
            try root.copy("lake.jpg", to: "cut.jpg")
            let mended = try await Self.failures(program, placeholders: true)
            #expect(mended["cut.jpg"] == nil)
        }
    }

    /// A document that no password opens.
    private static var lockedDocument: [UInt8] {
        let key = String(repeating: "41", count: 32)
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 90 60] >>",
            "<< /Filter /Standard /V 1 /R 2 /P -4 /O <\(key)> /U <\(key)> >>",
        ]
        let body = objects.enumerated().map { "\($0 + 1) 0 obj \($1) endobj\n" }.joined()
        let trailer = "trailer << /Size 5 /Root 1 0 R /Encrypt 4 0 R /ID [<00><00>] >>\n%%EOF\n"
        return Array("%PDF-1.4\n\(body)\(trailer)".utf8)
    }

    /// The names of presentations are those of keys, too.
    @Test func namesOfDocumentsOpenNoOtherFile() async throws {
        let root = try GalleryRoot()
        try root.write(Array("-----BEGIN PRIVATE KEY-----".utf8), to: Array("server.key".utf8))
        try root.write(Array("no photo".utf8), to: Array("text.jpg".utf8))
        try await GalleryTests.run(root) { program in
            let key = try await program.ask("/gallery/original/server.key")
            #expect(key.status == 422 && !key.text.contains("BEGIN"))
            // A damaged photo can be taken away.
            #expect(try await program.ask("/gallery/original/text.jpg?download=1").text == "no photo")
        }
    }

    @Test func filesAfterTheLastFolderOfAListAreInIt() async throws {
        let root = try GalleryRoot()
        for number in 0...10_000 { try root.folder("folder \(number)") }
        for number in 0..<50 { try root.copy("leaf.webp", to: "leaf \(number).webp") }
        try await GalleryTests.run(root) { program in
            let folder = try await GalleryTests.folder(program)
            #expect(folder.total == 50 && folder.folders.count == 10_000 && folder.isTruncated)
            let found = try await GalleryTests.folder(program, "q=leaf")
            #expect(found.total == 50 && found.isTruncated)
        }
    }

    @Test(.enabled(if: geteuid() != 0, "root may read everything"))
    func foldersAndFilesWithoutRightsAreNotMissing() async throws {
        let root = try GalleryRoot()
        try root.folder("closed")
        try root.copy("lake.jpg", to: "closed.jpg")
        #expect(chmod(root.path + "/closed", 0) == 0 && chmod(root.path + "/closed.jpg", 0) == 0)
        defer { chmod(root.path + "/closed", 0o755) }
        try await GalleryTests.run(root) { program in
            #expect(try await GalleryTests.folder(program).folders == ["closed"])
            for path in ["api/folder?path=closed", "api/cover?path=closed", "original/closed.jpg"] {
                let reply = try await program.ask("/gallery/\(path)")
                #expect(reply.status == 403 && reply.text.contains("not-readable"), "\(path)")
            }
            let refused = try await program.ask("/gallery/list?path=closed").text
            #expect(refused.contains("may not read this folder"))
            let closed = try await Self.failures(program, placeholders: false)
            #expect(closed == ["closed.jpg": "not-readable"])
            // The rights may change, without a restart.
            #expect(chmod(root.path + "/closed.jpg", 0o644) == 0)
            let opened = try await Self.failures(program, placeholders: false)
            #expect(opened.isEmpty)
        }
    }

    @Test func listsOfPlainLinksNeedNoScript() async throws {
        let root = try GalleryRoot()
        try root.folder("Été & <hiver>")
        let lake = try Samples.bytes("lake.jpg")
        let names: [[UInt8]] = [
            Array("\"<script>alert(1)<".utf8) + Array("\u{202E}.jpg".utf8), Array("line\nbreak.jpg".utf8),
            [0xFF, 0x80] + Array(".jpg".utf8), Array("שלום עולם.jpg".utf8),
        ]
        for name in names { try root.write(lake, to: name) }
        try await GalleryTests.run(root) { program in
            let page = try await program.ask("/gallery/list")
            #expect(page.status == 200 && page["content-type"] == "text/html; charset=utf-8")
            #expect(page["content-security-policy"]?.contains("default-src 'none'") == true)
            #expect(!page.text.contains("<script") && !page.text.contains("\u{202E}") && page.text.contains("<h1>"))
            #expect(page.text.contains("Été &amp; &lt;hiver&gt;") && page.text.contains("שלום עולם.jpg"))
            let links = page.text.matches(of: #/href="(\/gallery\/(?:original|list)[^"]*)"/#).map { String($0.1) }
            let originals = links.filter { $0.hasPrefix("/gallery/original/") }
            #expect(originals.count == names.count)
            for link in links {
                let reply = try await program.ask(link)
                #expect(reply.status == 200, "\(link)")
                if link.hasPrefix("/gallery/original/") { #expect(reply.body == lake, "\(link)") }
            }
            #expect(try await program.ask("/gallery/list?path=nowhere").status == 404)
            #expect(try await program.ask("/gallery/list?offset=x").status == 400)
            let head = try await program.ask("/gallery/list", method: "HEAD")
            #expect(head.status == 200 && head.body.isEmpty)
            // Both pages of a browser without scripts lead to it or say a sentence.
            let gallery = try await program.ask("/gallery/").text
            #expect(gallery.contains("url=/gallery/list"))
            let admin = try RawConnection(port: program.adminPort)
            let operators = try await admin.ask("/admin").text
            #expect(operators.contains("<noscript>"))
        }
    }

    @Test func longListsOfLinksHaveSeveralPages() async throws {
        let root = try GalleryRoot()
        try root.links(of: "leaf.webp", count: 1_200)
        try await GalleryTests.run(root) { program in
            var page = try await program.ask("/gallery/list")
            var count = 0, pages = 0
            while true {
                count += page.text.matches(of: #/href="\/gallery\/original\//#).count
                pages += 1
                guard let next = page.text.firstMatch(of: #/href="([^"]*)">Next files/#) else { break }
                page = try await program.ask(String(next.1).replacing("&amp;", with: "&"))
                try #require(pages < 10)
            }
            #expect(count == 1_200 && pages == 3 && page.text.contains("1001 to 1200 of 1200"))
            #expect(page.text.contains("Previous files"))
        }
    }

    @Test func listsOfPlainLinksAskForTheToken() async throws {
        let root = try GalleryRoot()
        try root.copy("lake.jpg", to: "lake.jpg")
        try await GalleryTests.run(root, { $0.galleryToken = "right" }) { program in
            let page = try await program.ask("/gallery/list")
            #expect(page.status == 401 && page.text.contains("action=\"/gallery/token\""))
            #expect(!page.text.contains("lake.jpg"))
            let connection = try program.connect()
            await connection.send(
                "POST /gallery/token HTTP/1.1\r\nHost: localhost\r\nAccept: text/html,*/*\r\n"
                    + "Content-Length: 11\r\n\r\ntoken=wrong")
            let reply = try #require(await connection.readReply())
            #expect(reply.status == 401 && reply.text.contains("This is not the token."))
            #expect(reply["content-type"] == "text/html; charset=utf-8" && reply["set-cookie"] == nil)
        }
    }

    @Test func openPagesAreNoRequestsUnderWay() async throws {
        let root = try GalleryRoot()
        try await GalleryTests.run(root) { program in
            let connection = try program.connect()
            await connection.send("GET /gallery/api/changes?path= HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try #require(await connection.read(until: "retry: 2000"))
            let admin = try RawConnection(port: program.adminPort)
            let debug = try await admin.ask("/debug").text
            #expect(debug.contains("\"in_flight\":[]"))
            let metrics = try await admin.ask("/metrics").text
            #expect(metrics.contains("\nvitrine_requests_in_flight 0\n"))
            // Its changes still arrive.
            try root.copy("lake.jpg", to: "new.jpg")
            #expect(await connection.read(until: "event: changed") != nil)
        }
    }
}
#endif
