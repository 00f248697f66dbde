#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline
import VitrineWebPages

/// Pages drawn by the browser of this machine.
@Suite(.enabled(if: WebPageSource.isAvailable, "needs Chromium or Google Chrome"), .serialized)
struct WebPageTests {
    /// Red above, green below from the 400th pixel on, blue far below.
    private static let html = """
        <!doctype html><style>body{margin:0;background:#0f0}div{height:400px;background:#f00}\
        p{margin:1600px 0 0;height:400px;background:#00f}</style><div></div><p></p>
        """

    private static func page(_ url: String) -> WebPageSource {
        var page = WebPageSource(url: url)
        page.allowedSchemes = [.file, .data, .http]
        // Tests often run as root, in containers.
        page.usesSandbox = false
        page.viewportWidth = 800
        page.timeLimit = 120
        return page
    }

    private static func request(_ width: Int, _ height: Int) -> RenderRequest {
        var request = RenderRequest(size: PixelSize(width: width, height: height))
        request.limits.deadline = 120
        return request
    }

    @Test func drawsAFileAtTheExactSize() throws {
        let directory = try TemporaryDirectory()
        try directory.write(Self.html, to: "a page.html")
        let page = Self.page("file://" + directory.file("a%20page.html"))
        let image = try page.image(Self.request(400, 400))
        #expect(image.size == PixelSize(400))
        #expect(image.colorName(0.5, 0.1) == "red" && image.colorName(0.99, 0.49) == "red")
        #expect(image.colorName(0.5, 0.51) == "green" && image.colorName(0.99, 0.99) == "green")
    }

    @Test func drawsTheWholePage() throws {
        var page = Self.page("data:text/html;base64," + Data(Self.html.utf8).base64EncodedString())
        page.showsFullPage = true
        let image = try page.image(Self.request(600, 300))
        #expect(image.size == PixelSize(width: 100, height: 300))
        #expect(image.colorName(0.5, 0.1) == "red" && image.colorName(0.5, 0.5) == "green")
        #expect(image.colorName(0.5, 0.95) == "blue")
    }

    @Test func drawsFinerForLargerSizes() throws {
        // Stripes of one CSS pixel are grey unless there are two pixels for each.
        let style = "margin:0;height:400px;background:repeating-linear-gradient(#000 0 1px,#fff 1px 2px)"
        let stripes = "<body style='\(style)'>"
        var page = Self.page("data:text/html;base64," + Data(stripes.utf8).base64EncodedString())
        page.viewportWidth = 300
        let image = try page.image(Self.request(600, 600))
        #expect(image.size == PixelSize(600))
        let reds = (100..<108).map { image[300, $0].red }
        #expect(reds.count { $0 < 40 } == 4 && reds.count { $0 > 215 } == 4)
    }

    @Test func drawsAPageServedOnThisMachine() throws {
        let server = try PageServer(html: Self.html)
        let image = try Self.page(server.url).image(Self.request(80, 80))
        #expect(image.colorName(0.5, 0.2) == "red" && image.colorName(0.5, 0.8) == "green")
        #expect(server.paths.all.first == "/")
    }

    @Test func tellsWhenAPageCannotBeLoaded() throws {
        let server = try PageServer(html: "")
        let url = server.url
        server.stop()
        let error = #expect(throws: ImagePipelineError.self) { try Self.page(url).image(Self.request(80, 80)) }
        #expect(error?.caseName == "unreadable" && error?.reason.contains("Connection refused") == true)
        let missing = "file:///nowhere/page.html"
        #expect(thrown { _ = try Self.page(missing).image(Self.request(80, 80)) } == "unreadable")
    }

    @Test func givesUpOnAPageThatNeverEnds() throws {
        let server = try PageServer(html: nil)
        var page = Self.page(server.url)
        page.timeLimit = 5
        #expect(thrown { _ = try page.image(Self.request(80, 80)) } == "timedOut")
    }

    @Test func answersWhatAPageAsks() throws {
        let page = Self.page("data:text/html,<script>alert(1);confirm(2)</script><body bgcolor=blue>")
        #expect(try page.image(Self.request(80, 80)).colorName() == "blue")
    }

    @Test func reachesNothingWhenOnlyFilesAreAllowed() throws {
        let server = try PageServer(html: Self.html)
        let directory = try TemporaryDirectory()
        let local = server.url.replacing("127.0.0.1", with: "localhost")
        try directory.write("<body bgcolor=blue><img src='\(local)picture.png'>", to: "page.html")
        var page = Self.page("file://" + directory.file("page.html"))
        page.allowedSchemes = [.file]
        #expect(try page.image(Self.request(80, 80)).colorName() == "blue")
        #expect(server.paths.all.isEmpty)
    }
}
#endif
