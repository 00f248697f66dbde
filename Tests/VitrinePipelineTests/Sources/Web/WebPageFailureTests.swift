#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineWebPages

/// Browsers that are not there, do not answer, or answer nonsense; pages that may not be drawn.
@Suite struct WebPageFailureTests {
    /// A new one each time: they can be cancelled.
    private static var request: RenderRequest { RenderRequest(size: PixelSize(width: 300, height: 200)) }

    @Test(.enabled(if: !WebPageSource.isAvailable, "needs a machine without a browser"))
    func saysWhichToolIsMissing() throws {
        let page = WebPageSource(url: "https://example.org/")
        let error = #expect(throws: ImagePipelineError.self) { try page.image(Self.request) }
        #expect(error?.caseName == "toolMissing")
        #expect(error?.reason.contains("VITRINE_BROWSER") == true)
    }

    @Test func namesTheBrowserThatDoesNotStart() throws {
        var page = WebPageSource(url: "https://example.org/", browser: "/nowhere/chromium")
        page.usesSandbox = false
        let error = #expect(throws: ImagePipelineError.self) { try page.image(Self.request) }
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
            #expect(thrown { _ = try browser.page(url).image(Self.request) } == "unsupported", "\(url)")
        }
        var strangers = browser.page("http://127.0.0.1/")
        strangers.policy = .publicOnly
        #expect(thrown { _ = try strangers.image(Self.request) } == "unsupported")
        let long = "https://example.org/" + String(repeating: "x", count: 3 << 20)
        let error = #expect(throws: ImagePipelineError.self) { try browser.page(long).image(Self.request) }
        #expect((error?.source.count ?? .max) < 300)
        #expect(browser.directory.read("started") == nil)
    }

    @Test func endsABrowserThatHangsWithAllItsProcesses() throws {
        let browser = try FakeBrowser(
            FakeBrowser.noteProfile
                + "\nsh -c 'echo $$ > child; exec sleep 1000' &\nwhile ! test -s child; do :; done\nwait")
        var page = browser.page()
        page.timeLimit = 2
        #expect(thrown { _ = try page.image(Self.request) } == "timedOut")
        // It is killed already, but may take a moment to be gone.
        while FakeBrowser.isRunning(browser.directory.read("child")) { sched_yield() }
        if let profile = browser.profile { #expect(!FileManager.default.fileExists(atPath: profile)) }
    }

    @Test func endsWhenItIsCancelled() async throws {
        let browser = try FakeBrowser(FakeBrowser.noteProfile + "\necho $$ > process\nexec sleep 1000")
        let request = Self.request
        let page = browser.page()
        async let result = BlockingExecutor(threads: 1).run { thrown { _ = try page.image(request) } }
        while browser.directory.read("process")?.hasSuffix("\n") != true { await Task.yield() }
        request.cancellation.cancel()
        #expect(await result == "cancelled")
        #expect(!FakeBrowser.isRunning(browser.directory.read("process")))
        #expect(browser.profile.map { FileManager.default.fileExists(atPath: $0) } == false)
        #expect(thrown { _ = try page.image(request) } == "cancelled")
    }

    @Test(arguments: [
        "exit 1", "kill -9 $$", FakeBrowser.say(["this is no answer"]), FakeBrowser.say([#"{"id":1,"result":3}"#]),
        FakeBrowser.say([#"{"id":1,"error":{"message":"refused"}}"#]), "exec 3<&- 4>&-; exec sleep 1000",
    ])
    func reportsABrowserThatFails(script: String) throws {
        #expect(thrown { _ = try FakeBrowser(script).page().image(Self.request) } == "unreadable")
    }

    @Test func reportsAPageThatCannotBeLoaded() throws {
        let replies = FakeBrowser.preparation + [
            #"{"id":9,"result":{"loaderId":"L","errorText":"net::ERR_NAME_NOT_RESOLVED"}}"#
        ]
        let browser = try FakeBrowser(FakeBrowser.say(replies) + "\nexec sleep 1000")
        let error = #expect(throws: ImagePipelineError.self) { try browser.page().image(Self.request) }
        #expect(error?.caseName == "unreadable" && error?.reason == "net::ERR_NAME_NOT_RESOLVED")
    }

    @Test func tellsThatAPageCrashed() throws {
        let replies = FakeBrowser.preparation + [
            #"{"id":9,"result":{"loaderId":"L","frameId":"T"}}"#, #"{"method":"Inspector.targetCrashed","params":{}}"#,
        ]
        let browser = try FakeBrowser(FakeBrowser.say(replies) + "\nexec sleep 1000")
        let error = #expect(throws: ImagePipelineError.self) { try browser.page().image(Self.request) }
        #expect(error?.caseName == "unreadable" && error?.reason == "the page's process has ended")
    }

    @Test func endsABrowserThatTakesTooMuchMemory() throws {
        let browser = try FakeBrowser("tail -c 200M /dev/zero > /dev/null &\nexec tail -f /dev/zero")
        var page = browser.page()
        page.maximumMemory = 100 << 20
        let error = #expect(throws: ImagePipelineError.self) { try page.image(Self.request) }
        guard case .limitExceeded(_, .memory, let actual, let allowed)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(actual > allowed && allowed == 100 << 20)
    }

    @Test func browsersShareTheMemoryOfHelpers() async throws {
        let memory = HelperMemory(total: HelperMemory.minimumTotal)
        let browser = try FakeBrowser.drawing(PixelImage(size: PixelSize(4), color: .black))
        var page = browser.page()
        page.memory = memory
        var other = memory.reserve(1 << 30) { false }
        #expect(memory.reserved == HelperMemory.minimumTotal && other?.share.total == HelperMemory.minimumTotal)
        // Cancelling ends the wait for memory.
        var request = Self.request
        request.cancellation = CancellationToken()
        let (token, waiting) = (request.cancellation, page)
        let wait = Task { [request] in try await offPool { thrown { _ = try waiting.image(request) } } }
        token.cancel()
        #expect(try await wait.value == "cancelled")
        // Released memory lets the browser start; it returns its own when it has ended.
        let drawing = Task { [page] in try await offPool { try page.image(Self.request).size } }
        other = nil
        #expect(try await drawing.value == Self.request.size)
        #expect(memory.reserved == 0)
    }

    @Test func errorsNameNoPasswords() throws {
        let browser = try FakeBrowser("exit 1")
        let error = #expect(throws: ImagePipelineError.self) {
            try browser.page("https://me:secret@example.org/").image(Self.request)
        }
        #expect(error?.source == "https://example.org/")
    }

    @Test func boundsWhatABrowserSays() throws {
        let browser = try FakeBrowser("exec tr '\\000' x < /dev/zero >&4")
        var request = Self.request
        request.limits.maximumInputBytes = 1 << 20
        #expect(thrown { _ = try browser.page().image(request) } == "limitExceeded")
        let large = try FakeBrowser.drawing(PixelImage(size: PixelSize(400), color: .black))
        request.limits.maximumPixels = 100_000
        #expect(thrown { _ = try large.page().image(request) } == "limitExceeded")
        #expect(thrown {
            _ = try large.page().image(RenderRequest(size: PixelSize(9_000)))
        } == "limitExceeded")
        #expect(thrown { _ = try large.page().image(RenderRequest(size: PixelSize(0))) } == "underlying")
    }
}
#endif
