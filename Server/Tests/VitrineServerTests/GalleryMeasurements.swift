#if os(Linux)
import Foundation
import Glibc
import Testing
import VitrineServer

private let measuredProgram = ProcessInfo.processInfo.environment["VITRINE_GALLERY_PROGRAM"]

/// Times of the whole program with a real browser, for `Server/Benchmarks/gallery`.
@Suite(
    .enabled(if: measuredProgram != nil, "measures a program that VITRINE_GALLERY_PROGRAM names"),
    .enabled(if: TestPage.isAvailable, TestPage.reason), .serialized)
struct GalleryMeasurements {
    /// A directory of photos, each of which gets as many names as are needed.
    private static let corpus = ProcessInfo.processInfo.environment["VITRINE_GALLERY_CORPUS"] ?? Samples.directory
    private static let counts = (ProcessInfo.processInfo.environment["VITRINE_GALLERY_COUNT"] ?? "1000,10000")
        .split(separator: ",").compactMap { Int($0) }

    private static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return try withUnsafeMutableBytes(of: &address) { bytes in
            let base = try #require(bytes.baseAddress).assumingMemoryBound(to: sockaddr.self)
            try #require(bind(descriptor, base, size) == 0 && getsockname(descriptor, base, &size) == 0)
            return Int(UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_port))
        }
    }

    private static func photos(_ count: Int) throws -> GalleryRoot {
        let root = try GalleryRoot()
        let names = try FileManager.default.contentsOfDirectory(atPath: corpus).sorted()
            .filter { $0.lowercased().hasSuffix(".jpg") }
        try #require(!names.isEmpty)
        for (place, name) in names.enumerated() {
            try FileManager.default.copyItem(atPath: corpus + "/" + name, toPath: "\(root.path)/.\(place)")
        }
        // Names of the same files: copies would need 30 GB. The server knows pictures by their names.
        for number in 0..<count {
            try #require(link("\(root.path)/.\(number % names.count)", "\(root.path)/IMG_\(number).jpg") == 0)
        }
        return root
    }

    private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
        Int((ContinuousClock.now - start) / .milliseconds(1))
    }

    /// The program that is measured, and a window of a browser.
    private struct Running {
        let page: TestPage
        let process: Process
        let port: Int
        let adminPort: Int
        let start: ContinuousClock.Instant

        var gallery: String { "http://127.0.0.1:\(port)/gallery/" }

        func metric(_ name: String, _ labels: String = "") throws -> Double {
            try ImageProgram.metric(name, labels, at: adminPort)
        }

        /// Megabytes of the program and its workers.
        func memory() throws -> String {
            let workers = try metric("vitrine_workers_resident_memory_bytes")
            let own = try metric("process_resident_memory_bytes")
            return String(format: "%.0f MB, workers %.0f MB", own / 1e6, workers / 1e6)
        }
    }

    private static func measure(
        _ root: GalleryRoot, _ body: @escaping @Sendable (Running) throws -> Void
    ) async throws {
        let program = try #require(measuredProgram)
        let (port, adminPort) = (try freePort(), try freePort())
        try await TestPage.onThread {
            let page = try TestPage(width: 1440, height: 900)
            try page.open("about:blank")
            let process = Process()
            process.executableURL = URL(filePath: program)
            process.arguments = [
                "--bind", "127.0.0.1:\(port)", "--admin-bind", "127.0.0.1:\(adminPort)", "--gallery",
                "--local-root", root.path, "--log-level", "error", "--lame-duck", "0",
            ]
            // The program refuses settings that it does not have, such as those of these measurements.
            process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("VITRINE_") }
            let start = ContinuousClock.now
            try process.run()
            defer {
                process.terminate()
                process.waitUntilExit()
            }
            while (try? PlainClient(port: port)) == nil, process.isRunning { usleep(5_000) }
            try #require(process.isRunning, "the program has ended")
            print("start to listening \(milliseconds(since: start)) ms")
            try body(Running(page: page, process: process, port: port, adminPort: adminPort, start: start))
            #expect(page.problems.isEmpty, "\(page.problems)")
        }
        withExtendedLifetime(root) {}
    }

    private static func openFirst(_ running: Running) throws {
        let page = running.page
        let opened = ContinuousClock.now
        try page.open(running.gallery)
        try page.wait("document.querySelector('.tile img.shown')")
        let first = (milliseconds(since: running.start), milliseconds(since: opened))
        try page.waitForPictures()
        let full = (milliseconds(since: running.start), milliseconds(since: opened))
        let tiles = try page.number("document.querySelectorAll('.tile img.shown').length")
        print("first picture \(first.0) ms after the start, \(first.1) after opening")
        print("full window \(full.0) ms after the start, \(full.1) after opening")
        print("pictures shown by then: \(Int(tiles)), bytes received: \(page.receivedBytes)")
        page.forgetBytes()
        let again = ContinuousClock.now
        try page.call("Network.clearBrowserCache")
        try page.open(running.gallery + "?again")
        try page.waitForPictures()
        print("again with a warm server: \(milliseconds(since: again)) ms, \(page.receivedBytes) bytes")
    }

    private static func scroll(_ page: TestPage, by step: Int, frames count: Int) throws {
        try page.evaluate("""
            globalThis.tasks = []; new PerformanceObserver((list) => { for (const entry of list.getEntries()) \
            tasks.push(Math.round(entry.duration)); }).observe({ type: 'longtask' })
            """)
        var frames: [Double] = []
        let longest = try page.longestTask {
            frames = try page.evaluate("""
                new Promise((done) => { const gaps = []; let last = performance.now(); const step = (now) => { \
                gaps.push(now - last); last = now; scrollBy(0, \(step)); \
                if (gaps.length < \(count)) requestAnimationFrame(step); \
                else done(gaps.slice(2).sort((a, b) => a - b)); }; requestAnimationFrame(step); })
                """) as? [Double] ?? []
        }
        let tasks = try page.evaluate("tasks") as? [Int] ?? []
        print(
            String(
                format: "frames at %d px/s: p50 %.1f, p95 %.1f, p99 %.1f, longest %.1f ms; "
                    + "longest task %.1f ms of processor;",
                step * 60, part(frames, 0.5), part(frames, 0.95), part(frames, 0.99), part(frames, 1), longest),
            "tasks over 50 ms by the clock: \(tasks)")
    }

    private static func part(_ sorted: [Double], _ part: Double) -> Double {
        sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }

    private static func fling(_ running: Running) throws {
        let page = running.page
        try page.evaluate("scrollTo(0, 0)")
        try page.wait("gallery.grid.running.size === 0")
        try page.evaluate("Object.assign(gallery.statistics, { started: 0, finished: 0, cancelled: 0 })")
        let (seen, browser) = (try running.metric("vitrine_requests_total", "status=\"499\""), page.cancelled)
        for _ in 0..<6 {
            try page.evaluate("""
                new Promise((done) => { let frames = 0; const step = () => { scrollBy(0, 150); frames += 1; \
                if (frames < 24) requestAnimationFrame(step); else setTimeout(done, 160); }; step(); })
                """)
        }
        try page.waitForPictures()
        print("six flings of 3,600 px with pauses of 160 ms: \(try page.text("JSON.stringify(gallery.statistics)"))")
        let counted = try running.metric("vitrine_requests_total", "status=\"499\"") - seen
        print("cancelled by the browser: \(page.cancelled - browser), seen by the server: \(Int(counted))")
    }

    private static func sayMemory(_ running: Running) throws {
        let page = running.page
        print(
            String(format: "scripts %.1f MB, %.0f elements;", try page.scriptBytes() / 1e6,
                try page.number("document.querySelectorAll('*').length")), "server \(try running.memory())")
    }

    @Test(arguments: counts) func firstScreenScrollingAndFlinging(count: Int) async throws {
        print("\(count) photos")
        try await Self.measure(try Self.photos(count)) { running in
            try Self.openFirst(running)
            try Self.scroll(running.page, by: 20, frames: 240)
            try Self.fling(running)
            try Self.sayMemory(running)
        }
    }

    @Test func folderOfHundredThousandEntries() async throws {
        let root = try GalleryRoot()
        try root.links(of: "lake.webp", count: 100_000)
        print("a folder of 100,000 entries")
        try await Self.measure(root) { running in
            try Self.openFirst(running)
            try Self.scroll(running.page, by: 20, frames: 240)
            try Self.scroll(running.page, by: 4_000, frames: 240)
            try Self.fling(running)
            try running.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            try running.page.waitForPictures()
            try Self.sayMemory(running)
        }
    }

    /// A file that VITRINE_GALLERY_LARGE names, else one of 24 megapixels.
    @Test func deepZoom() async throws {
        let root = try GalleryRoot()
        if let large = ProcessInfo.processInfo.environment["VITRINE_GALLERY_LARGE"] {
            try FileManager.default.copyItem(atPath: large, toPath: root.path + "/large.jpg")
        } else {
            try root.enlarge("lake.jpg", width: 6_000, height: 4_000, to: "large.jpg")
        }
        try await Self.measure(root) { running in
            let page = running.page
            let opened = ContinuousClock.now
            try page.open(running.gallery + "#/?view=large.jpg")
            try page.wait("gallery.lightbox.zoom?.shownRung > 0")
            print("whole picture \(Self.milliseconds(since: opened)) ms after opening")
            let zooms = [(4.0, 300, 300), (8.0, 1_100, 700), (4.0, 1_100, 700), (2.0, 700, 450), (8.0, 200, 700)]
            for (scale, x, y) in zooms {
                let zoomed = ContinuousClock.now
                try page.evaluate("gallery.lightbox.zoom.zoom(1); gallery.lightbox.zoom.zoom(\(scale), \(x), \(y))")
                try page.wait("!gallery.lightbox.zoom.waiting && gallery.lightbox.zoom.tiles.isComplete")
                print("sharp \(Self.milliseconds(since: zoomed)) ms after a zoom by \(scale)")
            }
            let times = try page.evaluate("""
                performance.getEntriesByType('resource').filter(({ name }) => name.includes('/media/iiif/')) \
                .map(({ duration }) => duration).sort((a, b) => a - b)
                """) as? [Double] ?? []
            print(
                String(
                    format: "%d tiles: p50 %.1f, p99 %.1f, longest %.1f ms;", times.count, Self.part(times, 0.5),
                    Self.part(times, 0.99), Self.part(times, 1)), "server \(try running.memory())")
        }
    }
}
#endif
