#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineWebPages

/// Pages that lead on to others, and pages that take more than they get.
@Suite(.enabled(if: WebPageSource.isAvailable, "needs Chromium or Google Chrome"), .serialized)
struct WebPageLeadingTests {
    @Test(arguments: [
        "<script>location.href = '/next'</script>", "<script>location.replace('/next')</script>",
        "<body onload=\"location = '/next'\">", "<script>setTimeout(() => location = '/next')</script>",
        "<meta http-equiv=refresh content='0;url=/next'>", "<meta http-equiv=refresh content='1;url=/next'>",
        "<form action=/next></form><script>document.forms[0].submit()</script>", "<script>location = '/hop'</script>",
        .redirect(302, to: "/hop"),
    ] as [PageSite.Page])
    func drawsThePageThatAnotherLeadsToAtOnce(_ first: PageSite.Page) throws {
        let site = try PageSite([
            "/": first, "/hop": "<meta http-equiv=refresh content='0;url=/next'>",
            "/next": .init(stringLiteral: PageSite.green), "/next?": .init(stringLiteral: PageSite.green),
        ])
        #expect(try site.source().image(PageSite.request).colorName() == "green")
    }

    @Test(arguments: [
        "<meta http-equiv=refresh content='60;url=/next'>", "<script>location.hash = '#x'</script>",
        "<script>history.pushState({}, '', '/elsewhere')</script>", "<script>location = '/nothing'</script>",
        "<script>location = '/file'</script>", "<script>location = 'nobody:x'</script>",
    ] as [PageSite.Page])
    func drawsAPageThatStays(_ first: PageSite.Page) throws {
        var (nothing, file): (PageSite.Page, PageSite.Page) = ("", "x")
        nothing.status = 204
        file.fields = ["Content-Disposition: attachment"]
        let site = try PageSite([
            "/": .init(stringLiteral: PageSite.green + first.body), "/next": .init(stringLiteral: PageSite.red),
            "/nothing": nothing, "/file": file,
        ])
        #expect(try site.source().image(PageSite.request).colorName() == "green")
    }

    @Test func endsWithPagesThatLeadOnForEver() throws {
        let site = try PageSite([
            "/": "<script>location.replace('/again')</script>", "/again": "<script>location.replace('/')</script>",
            "/hop": .redirect(302, to: "/hop?"), "/hop?": .redirect(302, to: "/hop"),
        ])
        let error = #expect(throws: ImagePipelineError.self) { try site.source().image(PageSite.request) }
        #expect(error?.caseName == "unreadable" && error?.reason.contains("more than 10 times") == true)
        #expect(thrown { _ = try site.source("/hop").image(PageSite.request) } == "unsupported")
    }

    @Test(arguments: [
        "<script>let a = []; for (;;) a.push(new Uint8Array(1 << 24).fill(1))</script>",
        "<script>let a = []; for (;;) a.push(new Array(1 << 16).fill(a.length + 0.5))</script>",
        """
        <script>let a = []; setInterval(() => { for (let i = 0; i < 8; i++) { let c = document.createElement('canvas');
        c.width = c.height = 2048; c.getContext('2d').fillRect(0, 0, 2048, 2048); a.push(c) } })</script><img src=/slow>
        """,
    ] as [PageSite.Page])
    func endsAPageThatAllocatesWithoutEnd(_ first: PageSite.Page) throws {
        let site = try PageSite(["/": first])
        var page = site.source()
        page.maximumMemory = 1 << 30
        let error = #expect(throws: ImagePipelineError.self) { try page.image(PageSite.request) }
        #expect(error?.caseName == "limitExceeded", "\(String(describing: error))")
    }

    @Test func drawsAPageOfTheSizeThatPagesHave() throws {
        let site = try PageSite(["/": PageSite.page(doing: "new Promise(d => d(new Uint8Array(1 << 26).fill(1)))")])
        #expect(try site.source().image(PageSite.request).colorName() == "green")
    }
}
#endif
