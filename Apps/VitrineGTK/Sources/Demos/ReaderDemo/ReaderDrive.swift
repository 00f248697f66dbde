import DemoSupport
import Foundation
import VitrineGTK
import VitrinePipeline

/// Opens the document, scrolls the strip, turns pages, closes the window, and prints the results.
@MainActor
final class ReaderDrive {
    private let demo: Demo
    private var reader: Reader?
    private let document: Document

    init(_ demo: Demo, _ reader: Reader) {
        (self.demo, self.reader) = (demo, reader)
        document = reader.document
    }

    /// - Returns: false after a failure.
    func run() async -> Bool {
        defer { document.cleanUp() }
        if let password = demo.arguments["--enter"], await !enter(password) { return false }
        let isOpen = await demo.wait { [weak self] in
            guard let reader = self?.reader else { return true }
            return reader.error != nil || self?.isSharp == true
        }
        guard isOpen, let strip = reader?.strip else {
            // The window shows the reason for a document that cannot be opened.
            let reason = reader?.messageText ?? "the first page does not appear"
            await demo.settle(seconds: 0.3)
            await demo.shoot()
            return fail(reason)
        }
        print("\(document.pageCount) pages; the first appeared after", terminator: " ")
        print("\((ContinuousClock.now - demo.opened).milliseconds.text) ms")
        await scroll(strip)
        let started = demo.opened
        if let progress = await document.precaching?.finished {
            let took = (ContinuousClock.now - started).milliseconds.text
            print("prepared: \(progress.made) drawn, \(progress.skipped) cached, \(progress.failed) failed;")
            print("  completed \(took) ms after the window opened")
            guard progress.failed == 0 else { return fail("pages could not be drawn") }
        }
        guard await turn() else { return false }
        await demo.settle(seconds: 0.5)
        await demo.shoot()
        print("memory: \((Double(ProcessMemory.peak) / 1e6).text) MB at most")
        return await close()
    }

    /// Waits until the window asks for a password, tries a wrong one, and then the right one.
    private func enter(_ password: String) async -> Bool {
        for entry in ["not " + password, password] {
            guard await demo.wait(until: { [weak self] in self?.reader?.messageText != nil }) else {
                return fail("the window asks for no password")
            }
            let before = reader?.messageText
            print(before ?? "")
            reader?.enterPassword(entry)
            guard await demo.wait(until: { [weak self] in self?.reader?.messageText != before }) else {
                return fail("the window does not answer to a password")
            }
        }
        return true
    }

    private var isSharp: Bool {
        if case .shown? = reader?.page.binding.state { true } else { false }
    }

    private func scroll(_ strip: ItemList) async {
        demo.meter.reset()
        for speed in [1500.0, 6000, -6000, -1500] { await demo.fling(strip, speed: speed, seconds: 1.2) }
        print("strip: \(demo.meter.report)")
    }

    /// Turns from page to page.
    private func turn() async -> Bool {
        var times: [Double] = []
        let last = min(document.pageCount, 12)
        for number in stride(from: 2, through: last, by: 1) {
            let clock = ContinuousClock.now
            reader?.read(number)
            guard await demo.wait(until: { [weak self] in self?.isSharp == true }) else {
                return fail("page \(number) does not appear")
            }
            times.append((ContinuousClock.now - clock).milliseconds)
            await demo.settle(seconds: 0.15)
        }
        times.sort()
        if let median = times.dropFirst(times.count / 2).first, let longest = times.last {
            print("turning: \(times.count) pages, sharp after \(median.text) ms at the median,", terminator: " ")
            print("\(longest.text) ms at most")
        }
        let statistics = document.service.statistics
        print("pages: \(statistics.made) drawn for the window, \(statistics.fromDisk) from disk,", terminator: " ")
        print("\(statistics.fromMemory) from memory")
        return true
    }

    private func close() async -> Bool {
        demo.window.close()
        reader = nil
        guard await demo.wait(seconds: 10, until: { PageCell.alive == 0 }) else {
            return fail("\(PageCell.alive) cells outlive their window")
        }
        print("closed: no cell is left")
        return true
    }

    private func fail(_ reason: String) -> Bool {
        print("FAILED: \(reason)")
        return false
    }
}
