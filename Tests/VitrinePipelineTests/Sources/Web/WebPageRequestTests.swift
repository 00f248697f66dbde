#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineWebPages

/// What a browser is asked for, and what becomes of its picture.
@Suite struct WebPageRequestTests {
    @Test func optionsOfWebPagesReachTheirSource() throws {
        let plain = try #require(BuiltInSource.webPage("https://example.org").base as? WebPageSource)
        #expect(plain.allowedSchemes == [.http, .https] && plain.viewportWidth == nil)
        #expect(!plain.showsFullPage && plain.usesSandbox && plain.policy.allowsPrivateAddresses)
        let chosen = BuiltInSource.webPage(
            "file:///a.html", viewportWidth: 800, showsFullPage: true, policy: .publicOnly, schemes: [.file],
            usesSandbox: false)
        let source = try #require(chosen.base as? WebPageSource)
        #expect(source.allowedSchemes == [.file] && source.viewportWidth == 800)
        #expect(source.showsFullPage && !source.usesSandbox && !source.policy.allowsPrivateAddresses)
    }

    private static let blue = PixelColor(red: 0, green: 0, blue: 255)

    @Test func givesExactlyTheSizeAskedFor() throws {
        let browser = try FakeBrowser.drawing(PixelImage(size: PixelSize(width: 300, height: 201), color: Self.blue))
        for mode: ImageResizer.Mode in [.fit, .fill, .stretch, .crop(.center)] {
            let image = try browser.page().image(
                RenderRequest(size: PixelSize(width: 150, height: 100), mode: mode))
            #expect(image.size == PixelSize(width: 150, height: 100), "\(mode)")
            #expect(image[75, 50] == Self.blue)
        }
        let own = try browser.page().image(RenderRequest(size: .zero, mode: .none))
        #expect(own.size == PixelSize(width: 300, height: 201))
    }

    @Test(arguments: [
        (nil, 100, 50, 300, 150, 1.0), (nil, 600, 300, 600, 300, 1), (1_280, 320, 240, 1_280, 960, 1),
        (400, 800, 800, 400, 400, 2), (1, 3_000, 30, 300, 3, 4), (nil, 10, 8_000, 300, 16_384, 1),
    ] as [(Int?, Int, Int, Int, Int, Double)])
    func laysOutForAViewportInProportion(
        viewportWidth: Int?, width: Int, height: Int, expectedWidth: Int, expectedHeight: Int, scale: Double
    ) throws {
        var page = WebPageSource(url: "https://example.org")
        page.viewportWidth = viewportWidth
        let viewport = page.viewport(RenderRequest(size: PixelSize(width: width, height: height)))
        #expect(viewport.width == expectedWidth && viewport.height == expectedHeight && viewport.scale == scale)
    }

    @Test func tellsTheAddressToTheBrowserOnly() throws {
        let before = "printf '%s\\n' \"$@\" > arguments\nenv > environment\n" + FakeBrowser.noteProfile
        let browser = try FakeBrowser.drawing(PixelImage(size: PixelSize(300), color: Self.blue), before: before)
        let url = "https://example.org/?a='\"$(touch x)`;--no-sandbox"
        _ = try browser.page(url).image(RenderRequest(size: PixelSize(300)))
        let arguments = try #require(browser.directory.read("arguments"))
        #expect(arguments.contains("--remote-debugging-pipe\n") && arguments.contains("--no-sandbox\n"))
        #expect(!arguments.contains("example.org"))
        #expect(arguments.contains("MAP vitrine-proxy.invalid 127.0.0.1, MAP * ~NOTFOUND\n"))
        let profile = try #require(browser.profile)
        #expect(!FileManager.default.fileExists(atPath: profile))
        let environment = try #require(browser.directory.read("environment")).split(separator: "\n")
        #expect(environment.contains("HOME=\(profile)") && environment.contains("TMPDIR=\(profile)"))
        #expect(environment.allSatisfy { !$0.hasPrefix("VITRINE") })
        var local = browser.page("data:text/html,x")
        local.allowedSchemes = [.data]
        _ = try local.image(RenderRequest(size: PixelSize(300)))
        #expect(browser.directory.read("arguments")?.contains("--host-resolver-rules=MAP * ~NOTFOUND\n") == true)
    }

    @Test func drawsSizesThatAreLaidOutAlikeOnce() throws {
        let before = "echo x >> count"
        let browser = try FakeBrowser.drawing(PixelImage(size: PixelSize(600), color: Self.blue), before: before)
        var page = browser.page()
        page.viewportWidth = 600
        let requests = [64, 256, 128].map { RenderRequest(size: PixelSize($0)) }
        #expect(try page.images(requests).map(\.size.width) == [64, 256, 128])
        #expect(browser.directory.read("count") == "x\n")
        page.viewportWidth = nil
        _ = try page.images([RenderRequest(size: PixelSize(310)), RenderRequest(size: PixelSize(620))])
        #expect(browser.directory.read("count") == "x\nx\nx\n")
        #expect(try page.images([]).isEmpty)
    }

    @Test func isKnownByItsAddressAndLayout() throws {
        var page = WebPageSource(url: "https://example.org/")
        var known = [try page.identity()]
        page.viewportWidth = 800
        known.append(try page.identity())
        page.showsFullPage = true
        known.append(try page.identity())
        page.policy = .publicOnly
        known.append(try page.identity())
        page.policy.blockedHosts = ["ads.example"]
        known.append(try page.identity())
        page.allowedSchemes = [.https]
        known.append(try page.identity())
        page.identifier = "mine"
        known.append(try page.identity())
        #expect(Set(known).count == 7 && known[6] == "mine")
        let long = WebPageSource(url: "https://example.org/" + String(repeating: "x", count: 9_999))
        #expect(try long.identity().identity.utf8.count < 200)
    }

    @Test func isChangedByItsFile() throws {
        let directory = try TemporaryDirectory()
        try directory.write("<p>one", to: "a page.html")
        let page = WebPageSource(url: "file://" + directory.file("a%20page.html#top"))
        let before = try page.identity()
        try directory.write("<p>longer", to: "a page.html")
        #expect(try page.identity() != before)
        let missing = WebPageSource(url: "file://localhost" + directory.file("missing.html"))
        #expect(thrown { _ = try missing.identity() } == "unreadable")
    }

    @Test(arguments: [
        ("file:///a/b%20c?d#e", "/a/b c"), ("FILE:///a", "/a"), ("file:/a", "/a"), ("file://localhost/a", "/a"),
        ("file://other/a", nil), ("file:////a", nil), ("file:a", nil), ("https:///a", nil), ("file:///a%4", "/a%4"),
        ("file:///%zz%C3%A4", "/%zzä"),
    ] as [(String, String?)])
    func findsThePathOfAFile(url: String, path: String?) {
        #expect(WebAddress.path(ofFile: url) == path)
    }
}
#endif
