#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Images at web addresses as inputs of commands.
@Suite struct AddressInputTests {
    private static func bytes(_ sample: String) throws -> [UInt8] {
        try Array(Data(contentsOf: URL(filePath: Samples.path(sample))))
    }

    /// A server with images, a document, and a web page.
    private static func site() throws -> LoopbackServer {
        let (image, document) = (try bytes("leaf.png"), try bytes("lake.pdf"))
        return try LoopbackServer { request in
            switch request.target {
            case "/leaf.png": [.reply(200, ["Content-Type: image/png"], body: image)]
            case "/files/manual.pdf?version=2": [.reply(200, ["Content-Type: application/pdf"], body: document)]
            // As badly configured servers do.
            case "/mistaken": [.reply(200, ["Content-Type: text/html"], body: image)]
            case "/index.html":
                [.reply(200, ["Content-Type: text/html; charset=utf-8"], body: Array("<html><p>Hello</html>".utf8))]
            default: [.reply(404)]
            }
        }
    }

    @Test func anImageIsLoadedWithoutABrowser() async throws {
        let (server, scratch) = (try Self.site(), try Scratch())
        for target in ["/leaf.png", "/mistaken", "/files/manual.pdf?version=2"] {
            let output = scratch.file("x.png").path
            let outcome = try await Tool.run(
                ["thumbnail", server.url(target).absoluteString, "--size", "40", "-o", output],
                environment: ["VITRINE_BROWSER": "/nonexistent"])
            #expect(outcome.status == 0, "\(target): \(outcome.errors)")
            #expect(try ImageInfo(of: .file(output)).size.longestSide == 40)
        }
    }

    @Test func theOutputHasTheNameOfTheFile() async throws {
        let (server, scratch) = (try Self.site(), try Scratch())
        let words = ["/leaf.png", "/files/manual.pdf?version=2"].map { server.url($0).absoluteString }
        let outcome = try await Tool.run(
            ["thumbnail"] + words + ["--size", "40", "--format", "jpeg", "-o", scratch.file("out").path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.file("out").path).sorted()
        #expect(names == ["leaf.jpg", "manual.jpg"])
    }

    @Test func otherCommandsLoadAddressesToo() async throws {
        let (server, scratch) = (try Self.site(), try Scratch())
        let url = server.url("/leaf.png").absoluteString
        let shown = try await Tool.run(["show", url, "--size", "10", "--protocol", "blocks"])
        #expect(shown.status == 0 && shown.output.split(separator: "\n").count == 5, "\(shown.errors)")
        let output = scratch.file("sheet.png").path
        let sheet = try await Tool.run(["contact-sheet", url, "--size", "40", "-o", output])
        #expect(sheet.status == 0, "\(sheet.errors)")
        #expect(try ImageInfo(of: .file(output)).size.height > 80)
    }

    @Test func aWebPageNamesTheOptionThatDrawsIt() async throws {
        let (server, scratch) = (try Self.site(), try Scratch())
        let url = server.url("/index.html").absoluteString
        let outcome = try await Tool.run(["thumbnail", url, "-o", scratch.file("x.png").path])
        #expect(outcome.status == 1)
        #expect(outcome.errors == "\(url): it is a web page; --web-page draws it with a browser\n")
        let missing = server.url("/missing").absoluteString
        let absent = try await Tool.run(["thumbnail", missing, "-o", scratch.file("x.png").path])
        #expect(absent.status == 1 && absent.errors == "\(missing): the server answers 404\n")
    }

    @Test func privateAddressesAreRefused() async throws {
        let scratch = try Scratch()
        let url = "http://127.0.0.1/leaf.png"
        let outcome = try await Tool.run(["thumbnail", url, "--public-only", "-o", scratch.file("x.png").path])
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("the address 127.0.0.1 is not public"))
    }

    @Test(.enabled(if: Namespace.isRoot, "needs root"))
    func rootIsToldWhichOptionHelps() async throws {
        let scratch = try Scratch()
        let words = ["thumbnail", "http://127.0.0.1:9/", "--web-page", "-o", scratch.file("x.png").path]
        let outcome = try await Tool.run(words)
        #expect(outcome.status == 1)
        #expect(
            outcome.errors == "http://127.0.0.1:9/: browsers have no sandbox for the user root; run as another user, "
                + "or add --no-browser-sandbox\n")
        let without = try await Tool.run(
            words + ["--no-browser-sandbox"], environment: ["VITRINE_BROWSER": "/nonexistent"])
        #expect(without.status == 1 && !without.errors.contains("sandbox"))
        #expect(try await Tool.run(["thumbnail", "a.jpg", "--no-browser-sandbox"]).status == 2)
    }
}
#endif
