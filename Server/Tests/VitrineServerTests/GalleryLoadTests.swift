#if os(Linux)
import Foundation
import Testing
import VitrineServer

/// The gallery in a real browser with many files, hostile ones, and other circumstances of life.
@Suite(.enabled(if: TestPage.isAvailable, TestPage.reason), .serialized)
struct GalleryLoadTests {
    private static let scroll = """
        (by, frames) => new Promise((done) => { let count = 0; const step = () => { scrollBy(0, by); count += 1; \
        if (count < frames) requestAnimationFrame(step); else done(); }; requestAnimationFrame(step); })
        """

    @Test func hundredThousandFilesNeedLittleMemoryAndNoLongTask() async throws {
        let root = try GalleryRoot()
        try root.links(of: "leaf.webp", count: 100_000)
        try await TestPage.browse(root) { page, _ in
            let longest = try page.longestTask {
                try page.waitForPictures()
                try page.evaluate("(\(Self.scroll))(20, 120)")
                try page.waitForPictures()
                try page.evaluate("(\(Self.scroll))(40000, 60)")
                try page.waitForPictures()
                try page.press("Tab")
                try page.evaluate("gallery.grid.focus(50000)")
                try page.wait("document.activeElement.dataset.index === '50000'")
                try page.press("End")
                try page.wait("document.activeElement.dataset.index === '99999'")
                try page.waitForPictures()
            }
            #expect(longest < 50, "\(longest) ms")
            #expect(try page.text("document.querySelector('#summary').textContent") == "100,000 photos")
            #expect(try page.number("document.querySelectorAll('.cell').length") <= 600)
            #expect(try page.number("gallery.statistics.started") < 1_500)
            #expect(try page.scriptBytes() < 40e6)
            #expect(try page.number("document.querySelectorAll('*').length") < 3_500)
        }
    }

    @Test func serverSeesWhatWasScrolledAway() async throws {
        let root = try GalleryRoot()
        // Files of their own, as one render is for all the names of a file.
        for number in 0..<400 { try root.copy("lake-progressive.jpg", to: "IMG_\(number).jpg") }
        let gate = RequestGate("/gallery/media/")
        try await TestPage.browse(root, { $0.workers = 1 }, gate: gate) { page, program in
            try page.wait("gallery.statistics.started > 0")
            for _ in 0..<5 {
                // A fling, and a moment of rest.
                try page.evaluate("(\(Self.scroll))(150, 12)")
                try page.evaluate("new Promise((done) => setTimeout(done, 200))")
            }
            gate.close()
            try page.evaluate("scrollTo(0, document.body.scrollHeight)")
            try page.wait { gate.held > 0 }
            try page.evaluate("scrollTo(0, 0)")
            try page.wait("gallery.statistics.cancelled > 0")
            let seen = { try program.metric("vitrine_requests_total", "status=\"499\"") }
            try page.wait { try seen() > 0 }
            gate.open()
            try page.waitForPictures()
            let gone = try seen()
            let made = try program.metric("vitrine_cache_results_total", "level=\"made\"")
            let (started, cancelled) = (
                try page.number("gallery.statistics.started"), try page.number("gallery.statistics.cancelled"))
            let counts = "\(started) started, \(cancelled) cancelled, \(gone) seen by the server, \(made) made"
            // What was cancelled was not made.
            #expect(gone <= Double(page.cancelled) && made < started, "\(counts)")
        }
    }

    @Test func whatIsNotVisibleWaitsBehindAllOthers() async throws {
        let root = try GalleryRoot()
        for number in 0..<60 { try root.copy("lake.jpg", to: "IMG_\(number).jpg") }
        try await TestPage.browse(root) { page, _ in
            try page.waitForPictures()
            try page.wait("gallery.grid.running.size === 0")
            func names(_ condition: String) throws -> [String] {
                try #require(try page.evaluate("""
                    [...document.querySelectorAll('.tile')].filter((tile) => { \
                    const box = tile.getBoundingClientRect(); return \(condition); }).map((tile) => tile.dataset.name)
                    """) as? [String])
            }
            func priorities(_ name: String) -> [String?] {
                page.requests.filter { $0.url.contains("/media/insecure/h:") && $0.url.contains("/\(name)@") }
                    .map(\.priority)
            }
            // Sizes that arrive move what is near the edge of the window.
            let visible = try names("box.bottom < innerHeight - 250")
            let others = try names("box.top > innerHeight + 250")
            #expect(!visible.isEmpty && visible.allSatisfy { priorities($0).first == .some(nil) })
            // They are prepared, and come from the browser's own cache when they are shown.
            let prepared = others.map(priorities).filter { !$0.isEmpty }
            #expect(!prepared.isEmpty && prepared.allSatisfy { $0.first == "u=7" })
        }
    }

    @Test func policyStopsScriptsAndStylesInThePage() async throws {
        try await TestPage.browse(try GalleryRoot()) { page, _ in
            try page.evaluate("""
                globalThis.stopped = []; addEventListener('securitypolicyviolation', (event) => \
                stopped.push(event.effectiveDirective)); \
                const script = document.createElement('script'); script.textContent = 'globalThis.hacked = 1'; \
                document.body.append(script); \
                document.body.insertAdjacentHTML( \
                'beforeend', '<p style="color: red"><img src="http://a.example/x"></p>')
                """)
            try page.wait("stopped.length >= 3")
            #expect(try page.holds("globalThis.hacked === undefined"))
            let stopped = try page.evaluate("stopped") as? [String] ?? []
            #expect(Set(stopped).isSuperset(of: ["script-src-elem", "style-src-attr", "img-src"]), "\(stopped)")
            #expect(page.problems.count >= 3 && page.problems.allSatisfy { $0.contains("Content Security Policy") })
            page.forgetProblems()
        }
    }

    /// Every name is shown as text, opened, zoomed where its address can be one of IIIF, and described.
    @Test func namesOfEveryKindAreOpenedAndZoomed() async throws {
        let root = try GalleryRoot()
        let names: [[UInt8]] = [
            Array("<img src=x onerror=hacked=1>.jpg".utf8), Array("\"'><script>hacked=1<.jpg".utf8),
            Array("& &amp; %3Cb%3E ?q#h;1.jpg".utf8), Array("line\nbreak.jpg".utf8),
            Array("\u{202E}gpj.txt\u{202C}.jpg".utf8), Array("صورة عربية.jpg".utf8), Array("שלום.jpg".utf8),
            [0xFF, 0xFE, 0x80] + Array(".jpg".utf8), [UInt8](repeating: 0xE9, count: 251) + Array(".jpg".utf8),
            Array(String(repeating: "é", count: 125).utf8) + Array("x.jpg".utf8), Array("%2F..%2Fpasswd.jpg".utf8),
            Array("  spaces  .jpg".utf8), Array("`${hacked=1}`.jpg".utf8), Array("javascript:hacked=1.jpg".utf8),
        ]
        let lake = try Samples.bytes("lake.jpg")
        for name in names { try root.write(lake, to: name) }
        try root.folder("<b>&\"'\u{202E}")
        try root.write(lake, to: Array("<b>&\"'\u{202E}/in.jpg".utf8))
        try await TestPage.browse(root) { page, _ in
            try page.waitForPictures()
            #expect(try page.number("document.querySelectorAll('.tile').length") == Double(names.count))
            #expect(try page.accessibilityProblems() == [])
            #expect(try page.holds("document.documentElement.scrollWidth <= innerWidth"))
            // Nothing that is shown or read out turns the direction of what follows, or breaks the line.
            #expect(try page.holds("""
                [...document.querySelectorAll('.tile')].every((tile) => \
                !/[\\u0000-\\u001f\\u202a-\\u202e\\u2066-\\u2069]/.test(tile.textContent + tile.ariaLabel))
                """))
            for index in 0..<names.count {
                try page.evaluate("gallery.lightbox.show(\(index))")
                try page.wait("gallery.lightbox.zoom?.shownRung > 0")
                let whole = try page.number("gallery.lightbox.zoom.shownRung")
                try page.evaluate("gallery.lightbox.zoom.zoom(4)")
                try page.wait("gallery.lightbox.zoom.tiles ? gallery.lightbox.zoom.tiles.isComplete "
                    + ": gallery.lightbox.zoom.shownRung > \(whole)")
                #expect(try page.accessibilityProblems() == [])
                #expect(try page.holds("location.hash.length > 8 && document.title.length > 4"))
            }
            try page.press("i")
            try page.wait(
                "[...document.querySelectorAll('.info dt')].some((node) => node.textContent === 'Dimensions')")
            try page.keepScreenshot("names")
            try page.press("Escape")
            try page.wait("!gallery.lightbox.isOpen")
            try page.evaluate("scrollTo(0, 0)")
            try page.click(".album")
            try page.wait("document.querySelector('.tile')?.dataset.name === 'in.jpg'")
            try page.waitForPictures()
            #expect(try page.text("document.querySelector('[aria-current=page]').textContent") == "<b>&\"'\u{FFFD}")
            #expect(try page.holds("globalThis.hacked === undefined"))
        }
    }

    @Test func shownFilesThatChangeOrGoAreSaid() async throws {
        let root = try GalleryRoot()
        for name in ["a.jpg", "b.jpg", "c.jpg"] { try root.copy("lake.jpg", to: name) }
        try await TestPage.browse(root, place: "#/?view=b.jpg") { page, _ in
            try page.wait("gallery.lightbox.zoom?.shownRung > 0")
            let old = try page.text("document.querySelector('.picture > img').src")
            try root.copy("orientation-6.jpg", to: "b.jpg")
            try page.wait("gallery.lightbox.zoom?.shownRung > 0 && "
                + "document.querySelector('.picture > img').src !== \(JSONText.quoted(old))")
            // Others that come and go change its number only.
            try page.evaluate("document.querySelector('.picture > img').marked = true")
            try root.copy("lake.jpg", to: "0.jpg")
            try page.wait("document.querySelector('.lightbox small').textContent === '3 of 4'")
            #expect(try page.holds("document.querySelector('.picture > img').marked === true"))
            try root.remove("b.jpg")
            try page.wait("document.querySelector('.lightbox .broken strong')?.textContent === 'This file is gone.'")
            #expect(try page.accessibilityProblems() == [])
            try page.press("ArrowRight")
            try page.wait("gallery.lightbox.item.name === 'c.jpg' && gallery.lightbox.zoom?.shownRung > 0")
            #expect(try page.text("document.querySelector('.lightbox small').textContent") == "3 of 3")
        }
    }

    @Test func reducedMotionMovesNothing() async throws {
        let root = try GalleryRoot()
        for name in ["moon.gif", "lake.mp4", "lake.jpg"] { try root.copy(name, to: name) }
        let still: @Sendable () throws -> TestPage = { try TestPage(isMotionReduced: true) }
        try await TestPage.browse(root, on: still) { page, _ in
            try page.waitForPictures()
            try page.evaluate("gallery.lightbox.show(1)")
            try page.wait("document.querySelector('.lightbox video')")
            #expect(try page.holds("""
                [...document.querySelectorAll('*')].every((node) => { const style = getComputedStyle(node); \
                return style.transitionDuration.split(', ').every((time) => time === '0s') \
                && style.animationName === 'none' && style.scrollBehavior === 'auto'; })
                """))
            #expect(try page.holds("document.querySelector('video').paused"))
            try page.press("Escape")
            try page.wait("!gallery.lightbox.isOpen")
            // No preview starts below the pointer.
            try page.evaluate("""
                document.querySelector('.tile[data-name="moon.gif"]').dispatchEvent(new PointerEvent('pointerover', \
                { bubbles: true, pointerType: 'mouse' }))
                """)
            #expect(try page.holds("!gallery.grid.previews.hovered"))
        }
        try await TestPage.browse(root) { page, _ in
            try page.waitForPictures()
            try page.evaluate("""
                document.querySelector('.tile[data-name="moon.gif"]').dispatchEvent(new PointerEvent('pointerover', \
                { bubbles: true, pointerType: 'mouse' }))
                """)
            try page.wait("document.querySelectorAll('.tile[data-name=\"moon.gif\"] img').length === 2")
        }
    }

    @Test func focusFollowsTheOrderOfThePageAndIsSeen() async throws {
        let root = try GalleryRoot()
        for name in ["a.jpg", "b.jpg"] { try root.copy("lake.jpg", to: name) }
        try root.folder("Album")
        try root.copy("lake.jpg", to: "Album/inside.jpg")
        for isDark in [false, true] {
            let make: @Sendable () throws -> TestPage = { try TestPage(isDark: isDark) }
            try await TestPage.browse(root, on: make) { page, _ in
                try page.waitForPictures()
                func walk(_ count: Int) throws -> [String] {
                    var names: [String] = []
                    for _ in 0..<count {
                        try page.press("Tab")
                        names.append(try page.text(Self.focused))
                        #expect(try page.number(Self.ring) >= 3, "\(names.last ?? "")")
                    }
                    return names
                }
                let expected = [
                    "Skip to the photos", "words", "dates", "sort", "theme", "album", "tile",
                ]
                #expect(try walk(expected.count) == expected)
                try page.press("Enter")
                try page.wait("gallery.lightbox.isOpen && gallery.lightbox.zoom?.shownRung > 0")
                let inside = try walk(8)
                let shown = inside.filter { $0 != "BODY" && $0 != "DIALOG" }
                #expect(shown.prefix(4) == ["Next", "Information", "Download the original", "Close"])
                // The page below is out of reach.
                #expect(!inside.contains("words") && !inside.contains("tile"))
                try page.press("Escape")
                try page.wait("!gallery.lightbox.isOpen && document.activeElement.matches('.tile')")
            }
        }
    }

    private static let focused = """
        (() => { const node = document.activeElement; return node.matches('.tile') ? 'tile' \
        : node.matches('.album') ? 'album' : node.id === 'skip' ? node.textContent \
        : node.id || node.ariaLabel || node.tagName; })()
        """

    /// The contrast of the line about the focused element with the background behind it; 21 for the page itself.
    private static let ring = """
        (() => { const node = document.activeElement; \
        if (node === document.body || node.tagName === 'DIALOG') return 21; \
        const shown = node.matches('.side') ? node.querySelector('span') : node; \
        const style = getComputedStyle(shown); \
        if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) return 0; \
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true }); \
        const light = (text) => { canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); \
        const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; \
        const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data; \
        return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); }; \
        const page = node.closest('dialog') ?? document.body; \
        const [a, b] = [light(style.outlineColor), light(getComputedStyle(page).backgroundColor)] \
        .sort((x, y) => y - x); \
        return (a + 0.05) / (b + 0.05); })()
        """

    @Test func otherMachinesAreAskedForTheToken() async throws {
        let root = try GalleryRoot()
        try root.copy("lake.jpg", to: "lake.jpg")
        let far: @Sendable () throws -> TestPage = {
            let page = try TestPage()
            try page.setFields(["X-Forwarded-For": "203.0.113.9"])
            return page
        }
        try await TestPage.browse(root, { $0.galleryToken = "correct horse battery" }, on: far) { page, _ in
            try page.wait("document.activeElement.id === 'token'")
            #expect(try page.accessibilityProblems() == [])
            #expect(try page.number("document.querySelectorAll('.tile').length") == 0)
            try page.keepScreenshot("token")
            try page.type("wrong")
            try page.press("Enter")
            try page.wait("document.querySelector('#door-text').textContent === 'This is not the token.'")
            #expect(try page.accessibilityProblems() == [])
            // The wrong one is selected, so that typing replaces it.
            try page.type("correct horse battery")
            try page.loading { try page.press("Enter") }
            try page.waitForPictures()
            #expect(try page.holds("document.querySelector('#door').hidden && document.cookie === ''"))
            // The browser reports answers of 401; nothing else went wrong.
            #expect(page.problems.allSatisfy { $0.contains("401") }, "\(page.problems)")
            page.forgetProblems()
        }
    }
}
#endif
