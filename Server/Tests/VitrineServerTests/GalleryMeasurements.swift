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
    /// A directory of photos; each is copied as often as is needed.
    private static let corpus = ProcessInfo.processInfo.environment["VITRINE_GALLERY_CORPUS"] ?? Samples.directory
    private static let count = ProcessInfo.processInfo.environment["VITRINE_GALLERY_COUNT"].flatMap { Int($0) } ?? 1_000

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

    private static func photos() throws -> GalleryRoot {
        let root = try GalleryRoot()
        let names = try FileManager.default.contentsOfDirectory(atPath: corpus)
            .filter { $0.lowercased().hasSuffix(".jpg") }
        try #require(!names.isEmpty)
        for number in 0..<count {
            let name = names.sorted()[number % names.count]
            try FileManager.default.copyItem(atPath: corpus + "/" + name, toPath: "\(root.path)/IMG_\(number).jpg")
        }
        return root
    }

    private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
        Int((ContinuousClock.now - start) / .milliseconds(1))
    }

    @Test func firstScreenScrollingAndFlinging() async throws {
        let program = try #require(measuredProgram)
        let root = try Self.photos()
        let port = try Self.freePort()
        try await TestPage.onThread {
            let page = try TestPage(width: 1440, height: 900)
            try page.open("about:blank")
            let process = Process()
            process.executableURL = URL(filePath: program)
            process.arguments = [
                "--bind", "127.0.0.1:\(port)", "--admin-bind", "off", "--gallery", "--local-root", root.path,
                "--log-level", "error", "--lame-duck", "0",
            ]
            let start = ContinuousClock.now
            try process.run()
            defer {
                process.terminate()
                process.waitUntilExit()
            }
            while (try? PlainClient(port: port)) == nil, process.isRunning { usleep(5_000) }
            let listening = Self.milliseconds(since: start)
            try page.open("http://127.0.0.1:\(port)/gallery/")
            try page.wait("document.querySelector('.tile img.shown')")
            let first = Self.milliseconds(since: start)
            try page.waitForPictures()
            let full = Self.milliseconds(since: start)
            let tiles = try page.number("[...document.querySelectorAll('.tile img.shown')].length")
            print("start to listening \(listening) ms, to the first picture \(first) ms, to a full window \(full) ms")
            print("pictures shown by then: \(Int(tiles)), bytes received: \(page.receivedBytes)")

            page.forgetBytes()
            let again = ContinuousClock.now
            try page.call("Network.clearBrowserCache")
            try page.open("http://127.0.0.1:\(port)/gallery/?again")
            try page.waitForPictures()
            print("again with a warm server: \(Self.milliseconds(since: again)) ms, \(page.receivedBytes) bytes")

            try page.evaluate("""
                globalThis.tasks = []; new PerformanceObserver((list) => { for (const entry of list.getEntries()) \
                tasks.push(Math.round(entry.duration)); }).observe({ type: 'longtask' })
                """)
            let frames = try page.evaluate("""
                new Promise((done) => { const gaps = []; let last = performance.now(); const step = (now) => { \
                gaps.push(now - last); last = now; scrollBy(0, 20); \
                if (gaps.length < 240) requestAnimationFrame(step); \
                else done(gaps.slice(2).sort((a, b) => a - b)); }; requestAnimationFrame(step); })
                """) as? [Double] ?? []
            let tasks = try page.evaluate("tasks") as? [Int] ?? []
            func part(_ part: Double) -> Double {
                frames.isEmpty ? 0 : frames[min(frames.count - 1, Int(Double(frames.count) * part))]
            }
            print(String(
                format: "frames at 1,200 px/s: p50 %.1f, p95 %.1f, p99 %.1f, longest %.1f ms", part(0.5), part(0.95),
                part(0.99), part(1)), "long tasks:", tasks)

            try page.evaluate("scrollTo(0, 0)")
            try page.wait("gallery.grid.running.size === 0")
            try page.evaluate("Object.assign(gallery.statistics, { started: 0, finished: 0, cancelled: 0 })")
            for _ in 0..<6 {
                try page.evaluate("""
                    new Promise((done) => { let frames = 0; const step = () => { scrollBy(0, 150); frames += 1; \
                    if (frames < 24) requestAnimationFrame(step); else setTimeout(done, 160); }; step(); })
                    """)
            }
            let statistics = try page.text("JSON.stringify(gallery.statistics)")
            print("six flings of 3,600 px with pauses of 160 ms: \(statistics)")
            print("cancelled by the browser: \(page.cancelled)")
            try page.waitForPictures()
            #expect(page.problems.isEmpty, "\(page.problems)")
        }
        withExtendedLifetime(root) {}
    }
}
#endif
