#if os(Linux)
import Foundation
import Glibc
import Testing
import VitrineServer

/// The gallery in a real browser.
@Suite(.enabled(if: TestPage.isAvailable, TestPage.reason), .serialized)
struct GalleryBrowserTests {
    private static func browse(
        _ root: GalleryRoot, place: String = "", _ body: @escaping @Sendable (TestPage) throws -> Void
    ) async throws {
        try await TestPage.browse(root, place: place) { page, _ in try body(page) }
    }

    private static func samples() throws -> GalleryRoot {
        let root = try GalleryRoot()
        for name in [
            "lake.jpg", "lake-progressive.jpg", "lake.mp4", "lake.pdf", "leaf.png", "moon.gif", "vitrine.svg",
            "lake.webp",
        ] {
            try root.copy(name, to: name)
        }
        try root.folder("Album")
        try root.copy("lake.jpg", to: "Album/inside.jpg")
        return root
    }

    private static let summary = "1 album · 6 photos · 1 video · 1 document"

    @Test func opensWithPicturesAndAccessibleControls() async throws {
        try await Self.browse(try Self.samples()) { page in
            try page.waitForPictures()
            #expect(try page.number("document.querySelectorAll('.tile img.shown').length") == 8)
            try page.wait("document.querySelector('.album img.shown')")
            #expect(try page.text("document.querySelector('#summary').textContent") == Self.summary)
            #expect(try page.accessibilityProblems() == [])
            // Rows fill the width, without gaps or overlaps.
            let faults = try page.number("""
                (() => { const boxes = [...document.querySelectorAll('.cell')].map((cell) => \
                cell.getBoundingClientRect()); return boxes.filter((one, index) => boxes.some((other, place) => \
                place > index && one.left < other.right - 1 && other.left < one.right - 1 \
                && one.top < other.bottom - 1 && other.top < one.bottom - 1)).length; })()
                """)
            #expect(faults == 0)
            try page.keepScreenshot("light")
            for isDark in [true, false] {
                try page.click("#theme")
                #expect(try page.text("document.documentElement.dataset.theme") == (isDark ? "dark" : "light"))
                #expect(try page.accessibilityProblems() == [])
                if isDark { try page.keepScreenshot("dark") }
            }
            try page.resize(390, 780, 2)
            try page.waitForPictures()
            #expect(try page.holds("document.documentElement.scrollWidth <= innerWidth"))
            #expect(try page.accessibilityProblems() == [])
            try page.keepScreenshot("small")
        }
    }

    @Test func pictureSizesFollowTheDensity() async throws {
        let root = try GalleryRoot()
        try root.copy("lake-progressive.jpg", to: "lake.jpg")
        try await Self.browse(root) { page in
            try page.waitForPictures()
            let plain = try page.text("document.querySelector('.tile img').currentSrc")
            try page.resize(1280, 800, 2)
            try page.open(try page.text("location.href.replace('#/', '') + '?again'"))
            try page.waitForPictures()
            let dense = try page.text("document.querySelector('.tile img').currentSrc")
            func height(_ address: String) -> Int {
                address.split(separator: "/").first { $0.hasPrefix("h:") }.flatMap { Int($0.dropFirst(2)) } ?? 0
            }
            #expect(height(plain) > 0 && height(dense) > height(plain))
        }
    }

    @Test func tenThousandPicturesScrollSmoothly() async throws {
        let root = try GalleryRoot()
        try root.links(of: "leaf.webp", count: 10_000)
        try await Self.browse(root) { page in
            try page.waitForPictures()
            try page.evaluate("""
                globalThis.tasks = []; new PerformanceObserver((list) => { for (const entry of list.getEntries()) \
                tasks.push(Math.round(entry.duration)); }).observe({ type: 'longtask' })
                """)
            let height = try page.number("document.documentElement.scrollHeight")
            #expect(height > 100_000)
            // A second of scrolling at reading speed, then a fling through all of it.
            try page.evaluate("""
                new Promise((done) => { let frames = 0; const step = () => { scrollBy(0, 12); \
                frames += 1; if (frames < 60) requestAnimationFrame(step); else done(); }; step(); })
                """)
            try page.evaluate("""
                new Promise((done) => { const end = document.documentElement.scrollHeight - innerHeight; \
                let at = scrollY; const by = (end - at) / 90; const step = () => { at += by; scrollTo(0, at); \
                if (at < end) requestAnimationFrame(step); else done(); }; step(); })
                """)
            try page.waitForPictures()
            let last = try page.number(
                "Math.max(...[...document.querySelectorAll('.tile')].map((tile) => Number(tile.dataset.index)))")
            #expect(last == 9_999)
            // What flew by was not asked for, and little is in the document.
            #expect(try page.number("gallery.statistics.started") < 1_000)
            #expect(try page.number("document.querySelectorAll('.cell').length") <= 1_000)
            let tasks = try page.evaluate("tasks") as? [Int] ?? []
            print("long tasks while scrolling 10,000 pictures: \(tasks)")
            try page.evaluate("scrollTo(0, 0)")
            try page.waitForPictures()
            #expect(try page.holds("document.querySelector('.tile[data-index=\"0\"]') !== null"))
        }
    }

    @Test func requestsThatLeaveTheWindowAreCancelled() async throws {
        let root = try GalleryRoot()
        try root.links(of: "lake-progressive.jpg", count: 2_000)
        let gate = RequestGate("/gallery/media/")
        try await TestPage.browse(root, gate: gate) { page, _ in
            try page.waitForPictures()
            gate.close()
            try page.evaluate("scrollTo(0, 40000)")
            try page.wait { gate.held > 0 }
            try page.evaluate("scrollTo(0, 80000)")
            try page.wait("gallery.statistics.cancelled > 0")
            gate.open()
            try page.waitForPictures()
            #expect(page.cancelled > 0)
        }
    }

    @Test func lightboxOpensStepsZoomsAndTells() async throws {
        try await Self.browse(try Self.samples()) { page in
            try page.waitForPictures()
            try page.click(".tile[data-name='lake.jpg']")
            try page.wait("gallery.lightbox.zoom?.shownRung > 0")
            #expect(try page.text("location.hash") == "#/?view=lake.jpg")
            #expect(try page.text("document.querySelector('.lightbox h2 bdi').textContent") == "lake.jpg")
            try page.keepScreenshot("lightbox")
            try page.wheel(640, 400, by: -600)
            try page.wait("gallery.lightbox.zoom.scale > 2")
            try page.press("0")
            #expect(try page.number("gallery.lightbox.zoom.scale") == 1)
            try page.click(".lightbox [aria-label=Information]")
            try page.wait(
                "[...document.querySelectorAll('.info dt')].some((node) => node.textContent === 'Dimensions')")
            #expect(try page.accessibilityProblems() == [])
            try page.keepScreenshot("information")
            try page.click(".lightbox .next")
            try page.wait("document.querySelector('.lightbox h2 bdi').textContent !== 'lake.jpg'")
            try page.evaluate("history.back()")
            try page.wait("!gallery.lightbox.isOpen")
            #expect(try page.holds("['', '#/'].includes(location.hash)"))
        }
    }

    @Test func documentsHavePagesAndVideosFrames() async throws {
        try await Self.browse(try Self.samples(), place: "#/?view=lake.pdf") { page in
            try page.wait("gallery.lightbox.zoom?.shownRung > 0 && document.querySelectorAll('.strip button').length")
            try page.wait("document.querySelector('.strip img').naturalWidth > 0")
            #expect(try page.accessibilityProblems() == [])
            try page.keepScreenshot("document")
            try page.evaluate("gallery.lightbox.close()")
            try page.wait("!gallery.lightbox.isOpen")
            try page.click(".tile[data-name='lake.mp4']")
            try page.wait("document.querySelector('video')?.readyState >= 1")
            try page.wait("document.querySelectorAll('.frames img').length > 3")
            try page.wait("[...document.querySelectorAll('.frames img')].every((frame) => frame.naturalWidth > 0)")
            #expect(try page.accessibilityProblems() == [])
            let y = try page.number("document.querySelector('.frames').getBoundingClientRect().y + 30")
            try page.move(640, y)
            try page.wait("!document.querySelector('.peek').hidden")
            try page.wait("document.querySelector('.peek img').naturalWidth > 0")
            try page.keepScreenshot("video")
            try page.click(".frames")
            try page.wait("document.querySelector('video').currentTime > 0")
        }
    }

    @Test func everythingWorksByKeysAlone() async throws {
        try await Self.browse(try Self.samples()) { page in
            try page.waitForPictures()
            try page.press("Tab")
            #expect(try page.text("document.activeElement.id") == "skip")
            try page.press("Enter")
            try page.wait("document.activeElement.matches('.tile')")
            try page.press("ArrowRight")
            try page.wait("document.activeElement.dataset.index === '1'")
            try page.press("End")
            try page.wait("document.activeElement.dataset.index === '7'")
            try page.press("ArrowUp")
            try page.wait("Number(document.activeElement.dataset.index) < 7")
            try page.press("Home")
            try page.wait("document.activeElement.dataset.index === '0'")
            try page.press("Enter")
            try page.wait("gallery.lightbox.isOpen && gallery.lightbox.index === 0")
            try page.press("ArrowRight")
            try page.wait("gallery.lightbox.index === 1")
            try page.wait("gallery.lightbox.zoom?.shownRung > 0")
            try page.press("+")
            try page.wait("gallery.lightbox.zoom.scale > 1.2")
            try page.press("0")
            try page.press("i")
            try page.wait("!gallery.lightbox.info.hidden")
            try page.press("Escape")
            try page.wait("!gallery.lightbox.isOpen && document.activeElement.dataset.index === '1'")
            // What has the focus can be seen.
            #expect(try page.holds("getComputedStyle(document.activeElement).outlineStyle !== 'none'"))
            try page.press("/")
            try page.wait("document.activeElement.id === 'words'")
            try page.type("leaf")
            try page.wait("document.querySelector('#summary').textContent === '1 result'")
            try page.press("ArrowDown")
            try page.wait("document.activeElement.dataset.name === 'leaf.png'")
        }
    }

    @Test func searchSortAndFoldersShowTheirResults() async throws {
        try await Self.browse(try Self.samples()) { page in
            try page.waitForPictures()
            try page.click("#words")
            try page.type("inside")
            try page.wait("document.querySelector('#summary').textContent === '1 result'")
            try page.waitForPictures()
            #expect(try page.text("document.querySelector('.tile').dataset.name") == "Album/inside.jpg")
            try page.press("Escape")
            try page.wait("document.querySelector('#summary').textContent === '\(Self.summary)'")
            try page.evaluate("document.querySelector('#sort').value = 'size-'")
            try page.evaluate("document.querySelector('#sort').dispatchEvent(new Event('change'))")
            try page.wait("document.querySelector('.tile')?.dataset.name === 'lake.jpg'")
            try page.click("#words")
            try page.type("zzzz")
            try page.wait("!document.querySelector('#state').hidden")
            #expect(try page.accessibilityProblems() == [])
            try page.keepScreenshot("nothing")
            try page.press("Escape")
            try page.wait("document.querySelector('.album')")
            try page.click(".album")
            try page.wait("document.querySelector('[aria-current=page]').textContent === 'Album'")
            try page.waitForPictures()
            try page.evaluate("history.back()")
            try page.wait("document.querySelectorAll('.tile').length === 8")
        }
    }

    @Test func newAndDeletedFilesAppearAndGo() async throws {
        let root = try Self.samples()
        try await Self.browse(root) { page in
            try page.waitForPictures()
            try page.evaluate("document.querySelector('.tile[data-name=\"lake.jpg\"] img').marked = true")
            try root.copy("leaf.webp", to: "aaa.webp")
            try page.wait("document.querySelector('.tile[data-name=\"aaa.webp\"] img.shown')")
            try root.remove("moon.gif")
            try page.wait("!document.querySelector('.tile[data-name=\"moon.gif\"]')")
            // Pictures that stay are not loaded again.
            #expect(try page.holds("document.querySelector('.tile[data-name=\"lake.jpg\"] img').marked === true"))
            // A file that changes has another picture.
            let old = try page.text("document.querySelector('.tile[data-name=\"leaf.png\"] img').currentSrc")
            try root.copy("lake-palette.png", to: "leaf.png")
            try page.evaluate("globalThis.old = \(JSONText.quoted(old))")
            let shown = "document.querySelector('.tile[data-name=\"leaf.png\"] img.shown')"
            try page.wait("(\(shown)?.currentSrc ?? old) !== old")
        }
    }

    /// A recording of silence, without a cover.
    private static var silence: [UInt8] {
        func number(_ value: UInt32, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(value >> (8 * UInt32($0)) & 255) }
        }
        let rate: UInt32 = 8_000
        let format = number(1, 2) + number(1, 2) + number(rate, 4) + number(rate, 4) + number(1, 2) + number(8, 2)
        let chunks = Array("WAVEfmt ".utf8) + number(16, 4) + format + Array("data".utf8) + number(rate, 4)
        return Array("RIFF".utf8) + number(UInt32(chunks.count) + rate, 4) + chunks
            + [UInt8](repeating: 128, count: Int(rate))
    }

    @Test func filesWithoutAnImageHaveATileThatSaysWhyAtOnce() async throws {
        let root = try GalleryRoot()
        try root.copy("lake.jpg", to: "lake.jpg")
        try root.write(Self.silence, to: Array("silence.wav".utf8))
        try root.write(Array("no photo".utf8), to: Array("text.jpg".utf8))
        try root.write(Array((try Samples.bytes("lake.jpg")).prefix(3_000)), to: Array("cut.jpg".utf8))
        try await GalleryTests.run(root) { program in
            let port = program.port
            try await TestPage.onThread {
                let page = try TestPage()
                try page.open("http://127.0.0.1:\(port)/gallery/")
                try page.waitForPictures()
                #expect(try page.text("document.querySelector('#summary').textContent") == "3 photos · 1 recording")
                for (name, reason, spoken) in [
                    ("text.jpg", "Unknown content", "unknown content"), ("cut.jpg", "Damaged", "damaged"),
                    ("silence.wav", "", "no image"),
                ] {
                    let tile = "document.querySelector('.tile.failed[data-name=\"\(name)\"]')"
                    #expect(try page.text("\(tile).querySelector('.plate bdi').textContent") == name)
                    #expect(try page.text("\(tile).querySelector('.plate small')?.textContent ?? ''") == reason)
                    #expect(try page.holds("\(tile).getAttribute('aria-label').endsWith(', \(spoken)')"), "\(name)")
                    let asked = page.requests.count { $0.url.contains("/media/") && $0.url.contains(name) }
                    // Once for what is not told by the beginning of the file.
                    #expect(asked <= 1, "\(name)")
                }
                #expect(try page.accessibilityProblems() == [])
                try page.click(".tile[data-name='cut.jpg']")
                try page.wait("document.querySelector('.lightbox .broken strong')")
                let title = try page.text("document.querySelector('.lightbox .broken strong').textContent")
                #expect(title == "This photo cannot be shown.")
                try page.evaluate("gallery.lightbox.close()")
                try page.click(".tile[data-name='silence.wav']")
                try page.wait("document.querySelector('.lightbox audio')?.duration === 1")
                try page.wait("document.querySelector('.lightbox .sound')")
                #expect(try page.accessibilityProblems() == [])
                #expect(page.problems.allSatisfy { $0.contains("422") }, "\(page.problems)")
            }
        }
    }

    @Test func addressOfAMissingFileSaysSo() async throws {
        try await Self.browse(try Self.samples(), place: "#/?view=gone.jpg") { page in
            try page.wait("document.querySelector('#notice').matches(':popover-open')")
            #expect(try page.holds("document.querySelector('#notice').textContent.includes('gone.jpg')"))
            #expect(try page.text("location.hash") == "#/")
            try page.waitForPictures()
            #expect(try page.holds("!gallery.lightbox.isOpen"))
            #expect(try page.accessibilityProblems() == [])
        }
    }

    @Test func hostileFilesLeaveThePageWhole() async throws {
        let root = try Self.samples()
        try root.write(Array("not a picture".utf8), to: Array("broken.jpg".utf8))
        try root.write(Array((try Samples.bytes("lake.jpg")).prefix(3_000)), to: Array("cut.jpg".utf8))
        try root.write([], to: Array("empty.png".utf8))
        try root.write(try Samples.bytes("lake.jpg"), to: Array("<img src=x onerror=alert(1)>.jpg".utf8))
        try root.write(try Samples.bytes("lake.jpg"), to: [0xFF, 0xFE] + Array("é.jpg".utf8))
        let script = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>"
            + "<script>parent.hacked=1</script></svg>"
        try root.write(Array(script.utf8), to: Array("script.svg".utf8))
        try await GalleryTests.run(root) { program in
            let port = program.port
            try await TestPage.onThread {
                let page = try TestPage()
                try page.open("http://127.0.0.1:\(port)/gallery/")
                try page.waitForPictures()
                #expect(try page.number("document.querySelectorAll('.tile').length") == 14)
                #expect(try page.number("document.querySelectorAll('.tile.failed').length") >= 2)
                #expect(try page.holds("globalThis.hacked === undefined"))
                try page.click(".tile[data-name='broken.jpg']")
                try page.wait("document.querySelector('.lightbox .broken')")
                try page.press("ArrowRight")
                try page.wait("gallery.lightbox.item.name !== 'broken.jpg'")
                try page.keepScreenshot("hostile")
                // The browser reports answers of 422; nothing else went wrong.
                #expect(page.problems.allSatisfy { $0.contains("422") }, "\(page.problems)")
            }
        }
    }

    @Test func offlineAndErrorsAreSaidAndEnd() async throws {
        try await Self.browse(try Self.samples()) { page in
            try page.waitForPictures()
            try page.setOffline(true)
            try page.wait("document.querySelector('#notice').matches(':popover-open')")
            #expect(try page.number("document.querySelectorAll('.tile img.shown').length") == 8)
            #expect(try page.accessibilityProblems() == [])
            try page.evaluate("location.hash = '#/Album'")
            try page.wait("!document.querySelector('#state').hidden")
            #expect(try page.text("document.querySelector('#state h2').textContent") == "The server cannot be reached")
            try page.keepScreenshot("offline")
            try page.setOffline(false)
            try page.wait("document.querySelector('.tile')?.dataset.name === 'inside.jpg'")
            try page.evaluate("location.hash = '#/nowhere'")
            try page.wait("document.querySelector('#state h2')?.textContent === 'No such folder'")
            page.forgetProblems()
        }
    }

    @Test func operatorsPageShowsTheServerAtWork() async throws {
        try await ImageProgram.run { program in
            let admin = program.adminPort
            try await TestPage.onThread {
                let page = try TestPage(width: 1400, height: 1000, isDark: true)
                try page.open("http://127.0.0.1:\(admin)/admin")
                try page.wait("document.querySelector('#health').textContent === 'The server runs.'")
                try page.evaluate("document.querySelector('[name=source]').value = 'local:///lake.jpg'")
                try page.click("#preview button")
                try page.wait("!document.querySelector('#result').hidden")
                let signed = try page.text("document.querySelector('#signed').value")
                #expect(signed.hasPrefix("/insecure/rs:fit:640:640/plain/local:///"))
                try page.evaluate("document.querySelector('#purge [name=text]').value = 'local:///lake.jpg'")
                try page.click("#purge button")
                try page.wait("document.querySelector('#purged').textContent.includes('removed')")
                #expect(try page.accessibilityProblems() == [])
                #expect(try page.holds("document.documentElement.scrollWidth <= innerWidth"))
                try page.keepScreenshot("operator")
                #expect(page.problems.isEmpty, "\(page.problems)")
            }
        }
    }
}
#endif
