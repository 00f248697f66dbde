#if os(Linux)
import Foundation
import Testing
import VitrineImaging
import VitrineServer

/// The gallery's zoom by tiles, and its gestures, in a real browser.
@Suite(.enabled(if: TestPage.isAvailable, TestPage.reason), .serialized)
struct GalleryZoomTests {
    private static let size = PixelSize(width: 5_400, height: 3_600)
    private static let isSharp = "!gallery.lightbox.zoom?.waiting && gallery.lightbox.zoom?.tiles?.isComplete"

    private static func large() throws -> GalleryRoot {
        let root = try GalleryRoot()
        try root.enlarge("lake.jpg", width: size.width, height: size.height, to: "large.jpg")
        return root
    }

    /// The regions of tiles that were asked for: the place in the picture, and the reduction.
    private static func tiles(_ page: TestPage) throws -> [(rect: PixelRect, factor: Int)] {
        try page.requests.compactMap { url, _ in
            let parts = url.split(separator: "/")
            guard url.contains("/media/iiif/3/"), parts.count >= 4 else { return nil }
            let region = parts[parts.count - 4].split(separator: ",").compactMap { Int($0) }
            let size = parts[parts.count - 3].split(separator: ",").compactMap { Int($0) }
            try #require(region.count == 4 && size.count == 2, "\(url)")
            let factor = (region[2] + size[0] - 1) / size[0]
            #expect(size[0] == (region[2] + factor - 1) / factor && size[1] == (region[3] + factor - 1) / factor)
            return (PixelRect(x: region[0], y: region[1], width: region[2], height: region[3]), factor)
        }
    }

    /// The part of the picture that is in the window.
    private static func visible(_ page: TestPage) throws -> (x: Double, y: Double, right: Double, bottom: Double) {
        let part = try #require(try page.evaluate("""
            (() => { const { zoom } = gallery.lightbox; const by = zoom.size.width / (zoom.base.width * zoom.scale); \
            return [-zoom.x * by, -zoom.y * by, (zoom.stage.clientWidth - zoom.x) * by, \
            (zoom.stage.clientHeight - zoom.y) * by]; })()
            """) as? [Double])
        return (part[0], part[1], part[2], part[3])
    }

    private static func image(_ page: TestPage) throws -> PixelImage {
        try ImageDecoder().decode(.bytes(try page.screenshot()))
    }

    private static func meanDifference(_ one: PixelImage, _ other: PixelImage) -> Double {
        guard one.size == other.size else { return 255 }
        var sum = 0
        one.withUnsafeBytes { a in
            other.withUnsafeBytes { b in
                for y in 0..<one.height {
                    for x in 0..<(4 * one.width) {
                        sum += abs(Int(a[y * one.bytesPerRow + x]) - Int(b[y * other.bytesPerRow + x]))
                    }
                }
            }
        }
        return Double(sum) / Double(4 * one.width * one.height)
    }

    @Test func onlyVisibleTilesOfTheRightLevelAreAskedFor() async throws {
        try await TestPage.browse(try Self.large(), place: "#/?view=large.jpg") { page, _ in
            try page.wait("gallery.lightbox.zoom?.shownRung > 0")
            // The whole picture is one of the window's size.
            #expect(try Self.tiles(page).isEmpty)
            #expect(try page.number("gallery.lightbox.zoom.shownRung") <= 1_280)
            for scale in [2.2, 4.5] {
                page.forgetRequests()
                try page.evaluate("gallery.lightbox.zoom.zoom(\(scale), 500, 400)")
                try page.wait(Self.isSharp)
                let part = try Self.visible(page)
                let tiles = try Self.tiles(page)
                let density = try page.number(
                    "gallery.lightbox.zoom.base.width * gallery.lightbox.zoom.scale / gallery.lightbox.zoom.size.width")
                #expect(!tiles.isEmpty)
                for (rect, factor) in tiles {
                    // The largest reduction that has about as many pixels as the window.
                    #expect(Double(factor) * density <= 1.1 && Double(factor) * density > 0.5, "\(factor) \(density)")
                    #expect(Double(rect.x) < part.right && Double(rect.x + rect.size.width) > part.x)
                    #expect(Double(rect.y) < part.bottom && Double(rect.y + rect.size.height) > part.y)
                }
                let shown = try page.number("document.querySelectorAll('.tiles img').length")
                #expect(Int(shown) == tiles.count)
            }
            try page.keepScreenshot("zoom")
            // Tiles are where the picture has them: beside the whole file, enlarged by the browser.
            try page.evaluate("document.querySelector('.lightbox .zoom').style.display = 'none'")
            let tiled = try Self.image(page)
            try page.evaluate("""
                new Promise((done) => { const whole = new Image(); whole.onload = done; \
                whole.src = '/gallery/original/large.jpg'; \
                document.querySelector('.tiles').replaceChildren(whole); })
                """)
            #expect(Self.meanDifference(tiled, try Self.image(page)) < 3)
        }
    }

    @Test func wheelDoubleClickDragAndKeysMoveTheTiles() async throws {
        try await TestPage.browse(try Self.large(), place: "#/?view=large.jpg") { page, _ in
            try page.wait("gallery.lightbox.zoom?.shownRung > 0")
            let scale = "gallery.lightbox.zoom.scale"
            try page.wheel(400, 300, by: -500)
            try page.wait("\(scale) > 2")
            try page.wait(Self.isSharp)
            // What is below the pointer stays there.
            let before = try Self.visible(page)
            try page.wheel(900, 600, by: -200, control: true)
            try page.wait("\(scale) > 5")
            let after = try Self.visible(page)
            let stage = try page.evaluate("""
                [gallery.lightbox.zoom.stage.clientWidth, gallery.lightbox.zoom.stage.clientHeight]
                """) as? [Double] ?? []
            let (x, y) = (900 / stage[0], (600 - 56) / stage[1])
            #expect(abs(before.x + (before.right - before.x) * x - after.x - (after.right - after.x) * x) < 8)
            #expect(abs(before.y + (before.bottom - before.y) * y - after.y - (after.bottom - after.y) * y) < 8)
            try page.wait(Self.isSharp)

            page.forgetRequests()
            try page.drag(700, 500, by: -300, -200)
            let moved = try Self.visible(page)
            #expect(moved.x > after.x && moved.y > after.y)
            try page.wait(Self.isSharp)
            for key in ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"] { try page.press(key) }
            try page.wait(Self.isSharp)
            let again = try Self.visible(page)
            #expect(abs(again.x - moved.x) < 1 && abs(again.y - moved.y) < 1)
            // No tile is asked for twice.
            let asked = try Self.tiles(page).map { "\($0.rect.x) \($0.rect.y) \($0.factor)" }
            #expect(Set(asked).count == asked.count)

            try page.press("0")
            try page.wait("document.querySelectorAll('.tiles img').length === 0")
            try page.doubleClick(600, 400)
            // A pixel of the picture is one of the screen.
            try page.wait("Math.abs(\(scale) * gallery.lightbox.zoom.base.width - 5400) < 2")
            try page.wait(Self.isSharp)
            #expect(try page.text("document.querySelector('.lightbox .zoom').textContent") == "100 %")
            try page.doubleClick(600, 400)
            try page.wait("\(scale) === 1")
            try page.press("+")
            try page.wait("\(scale) > 1.2")
            #expect(try page.accessibilityProblems() == [])
        }
    }

    @Test func tilesThatLeaveTheWindowAreCancelledInTheServer() async throws {
        let root = try GalleryRoot()
        try root.enlarge("lake.jpg", width: 6_000, height: 4_000, to: "large.jpg")
        let gate = RequestGate("/gallery/media/iiif/")
        try await TestPage.browse(root, { $0.workers = 1 }, place: "#/?view=large.jpg", gate: gate) { page, program in
            try page.wait("gallery.lightbox.zoom?.shownRung > 0")
            let left = { try program.metric("vitrine_requests_total", "status=\"499\"") }
            gate.close()
            let before = try left()
            try page.evaluate("gallery.lightbox.zoom.zoom(5, 100, 100)")
            try page.wait { gate.held > 0 }
            try page.evaluate("gallery.lightbox.zoom.pan(-4000, -2500)")
            try page.wait("gallery.tileStatistics.cancelled > 0")
            try page.wait { try left() > before }
            gate.open()
            try page.wait(Self.isSharp)
            #expect(page.cancelled > 0)
        }
    }

    @Test func fingersOpenStepPinchAndClose() async throws {
        let root = try Self.large()
        for name in ["zoo-1.jpg", "zoo-2.jpg"] { try root.copy("lake.jpg", to: name) }
        let phone: @Sendable () throws -> TestPage = { try TestPage(width: 390, height: 780, scale: 2, hasTouch: true) }
        try await TestPage.browse(root, on: phone) { page, _ in
            try page.waitForPictures()
            #expect(try page.accessibilityProblems() == [])
            let middle = try #require(try page.evaluate("""
                (() => { const box = document.querySelector('.tile[data-name="large.jpg"]').getBoundingClientRect(); \
                return [box.x + box.width / 2, box.y + box.height / 2]; })()
                """) as? [Double])
            try page.touch([[(middle[0], middle[1])]])
            try page.wait("gallery.lightbox.isOpen && gallery.lightbox.zoom?.shownRung > 0")
            #expect(try page.text("gallery.lightbox.item.name") == "large.jpg")
            let scale = "gallery.lightbox.zoom.scale"

            // Two fingers that part enlarge what is between them.
            try page.touch((0...8).map { step in
                let far = 30 + Double(step) * 15
                return [(195 - far, 400), (195 + far, 400)]
            })
            try page.wait("\(scale) > 3")
            try page.wait(Self.isSharp)
            #expect(try !Self.tiles(page).isEmpty)
            try page.keepScreenshot("phone-zoom")
            // One finger moves it.
            let before = try Self.visible(page)
            try page.touch((0...6).map { [(300 - Double($0) * 25, 400)] })
            #expect(try Self.visible(page).x > before.x)
            #expect(try page.text("gallery.lightbox.item.name") == "large.jpg")
            // Two taps fit it again.
            try page.touch([[(200, 400)]])
            try page.touch([[(200, 400)]])
            try page.wait("\(scale) === 1")

            try page.touch((0...6).map { [(300 - Double($0) * 35, 400)] })
            try page.wait("gallery.lightbox.item.name === 'zoo-1.jpg' && gallery.lightbox.zoom?.shownRung > 0")
            try page.touch((0...6).map { [(60 + Double($0) * 35, 400)] })
            try page.wait("gallery.lightbox.item.name === 'large.jpg' && gallery.lightbox.zoom?.shownRung > 0")
            #expect(try page.accessibilityProblems() == [])
            try page.keepScreenshot("phone-lightbox")
            try page.touch((0...6).map { [(200, 200 + Double($0) * 40)] })
            try page.wait("!gallery.lightbox.isOpen")
        }
    }

    @Test func fingersScrollTheGrid() async throws {
        let root = try GalleryRoot()
        try root.links(of: "leaf.webp", count: 500)
        let phone: @Sendable () throws -> TestPage = { try TestPage(width: 390, height: 780, hasTouch: true) }
        try await TestPage.browse(root, on: phone) { page, _ in
            try page.waitForPictures()
            for _ in 0..<3 { try page.touch((0...14).map { [(200, 700 - Double($0) * 40)] }) }
            try page.wait("scrollY > 1000")
            try page.waitForPictures()
            #expect(try !page.holds("gallery.lightbox.isOpen"))
        }
    }
}
#endif
