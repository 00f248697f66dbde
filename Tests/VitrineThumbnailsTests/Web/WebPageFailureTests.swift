#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineThumbnails

/// Browsers that are not there, do not answer, or answer nonsense; pages that may not be drawn.
@Suite struct WebPageFailureTests {
    /// A new one each time: they can be cancelled.
    private static var request: RenderRequest { RenderRequest(size: PixelSize(width: 300, height: 200)) }

    @Test func saysWhichToolIsMissing() throws {
        // A path that is none makes what the search finds.
        let page = WebPageSource(url: "https://example.org/")
        guard !WebPageSource.isAvailable else { return }
        let error = #expect(throws: ThumbnailError.self) { try page.thumbnail(Self.request) }
        #expect(error?.caseName == "toolMissing")
        #expect(error?.reason.contains("VITRINE_BROWSER") == true)
    }

    @Test func namesTheBrowserThatDoesNotStart() throws {
        var page = WebPageSource(url: "https://example.org/", browser: "/nowhere/chromium")
        page.usesSandbox = false
        let error = #expect(throws: ThumbnailError.self) { try page.thumbnail(Self.request) }
        #expect(error?.caseName == "unreadable")
        #expect(error?.reason.contains("/nowhere/chromium") == true)
    }

    @Test func refusesAddressesThatAreNotAllowed() throws {
        let browser = try FakeBrowser("echo started > started")
        let urls = [
            "file:///etc/passwd", "FILE:///etc/passwd", "data:text/html,x", "javascript:alert(1)", "chrome://version",
            "view-source:https://example.org", "--no-sandbox", "example.org", "", ":", " https://example.org",
            "https://example.org/\n", "ftp://example.org", "/etc/passwd",
        ]
        for url in urls {
            #expect(thrown { _ = try browser.page(url).thumbnail(Self.request) } == "unsupported", "\(url)")
        }
        let long = "https://example.org/" + String(repeating: "x", count: 3 << 20)
        let error = #expect(throws: ThumbnailError.self) { try browser.page(long).thumbnail(Self.request) }
        #expect((error?.source.count ?? .max) < 300)
        #expect(browser.directory.read("started") == nil)
    }

    @Test func endsABrowserThatHangsWithAllItsProcesses() throws {
        let browser = try FakeBrowser(
            FakeBrowser.noteProfile
                + "\nsh -c 'echo $$ > child; exec sleep 1000' &\nwhile ! test -s child; do :; done\nwait")
        var page = browser.page()
        page.timeLimit = 2
        #expect(thrown { _ = try page.thumbnail(Self.request) } == "timedOut")
        // It is killed already, but may take a moment to be gone.
        while FakeBrowser.isRunning(browser.directory.read("child")) { sched_yield() }
        if let profile = browser.profile { #expect(!FileManager.default.fileExists(atPath: profile)) }
    }

    @Test func endsWhenItIsCancelled() async throws {
        let browser = try FakeBrowser(FakeBrowser.noteProfile + "\necho $$ > process\nexec sleep 1000")
        let request = Self.request
        let page = browser.page()
        async let result = BlockingExecutor(threads: 1).run { thrown { _ = try page.thumbnail(request) } }
        while browser.directory.read("process")?.hasSuffix("\n") != true { await Task.yield() }
        request.cancellation.cancel()
        #expect(await result == "cancelled")
        #expect(!FakeBrowser.isRunning(browser.directory.read("process")))
        #expect(browser.profile.map { FileManager.default.fileExists(atPath: $0) } == false)
        #expect(thrown { _ = try page.thumbnail(request) } == "cancelled")
    }

    @Test(arguments: [
        "exit 1", "kill -9 $$", FakeBrowser.say(["this is no answer"]), FakeBrowser.say([#"{"id":1,"result":3}"#]),
        FakeBrowser.say([#"{"id":1,"error":{"message":"refused"}}"#]), "exec 3<&- 4>&-; exec sleep 1000",
    ])
    func reportsABrowserThatFails(script: String) throws {
        #expect(thrown { _ = try FakeBrowser(script).page().thumbnail(Self.request) } == "unreadable")
    }

    @Test func reportsAPageThatCannotBeLoaded() throws {
        let replies = (1...5).map { #"{"id":\#($0),"result":{}}"# } + [
            #"{"id":6,"result":{"loaderId":"L","errorText":"net::ERR_NAME_NOT_RESOLVED"}}"#
        ]
        let browser = try FakeBrowser(FakeBrowser.say(replies) + "\nexec sleep 1000")
        let error = #expect(throws: ThumbnailError.self) { try browser.page().thumbnail(Self.request) }
        #expect(error?.caseName == "unreadable" && error?.reason == "net::ERR_NAME_NOT_RESOLVED")
    }

    @Test func boundsWhatABrowserSays() throws {
        let browser = try FakeBrowser("exec tr '\\000' x < /dev/zero >&4")
        var request = Self.request
        request.limits.maximumInputBytes = 1 << 20
        #expect(thrown { _ = try browser.page().thumbnail(request) } == "limitExceeded")
        let large = try FakeBrowser.drawing(Image(size: PixelSize(400), color: .black))
        request.limits.maximumPixels = 100_000
        #expect(thrown { _ = try large.page().thumbnail(request) } == "limitExceeded")
        #expect(thrown {
            _ = try large.page().thumbnail(RenderRequest(size: PixelSize(9_000)))
        } == "limitExceeded")
        #expect(thrown { _ = try large.page().thumbnail(RenderRequest(size: PixelSize(0))) } == "underlying")
    }
}
#endif
