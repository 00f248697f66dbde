import DemoSupport
import Foundation
import VitrineCore
import VitrineGTK
import VitrineImaging

/// Measures the first screen, scrolls the grid, closes it during loads, and prints the results.
@MainActor
final class GridDrive {
    private let demo: Demo
    private var grid: PhotoGrid?
    private let library: PhotoLibrary
    private let board: PhotoBoard

    init(_ demo: Demo, _ grid: PhotoGrid) {
        (self.demo, self.grid) = (demo, grid)
        (library, board) = (grid.library, grid.board)
    }

    /// - Returns: false after a failure. Slow results are not failures, because they depend on the load of the machine.
    func run() async -> Bool {
        defer { library.cleanUp() }
        let started = demo.opened
        guard await screenSettles() else { return fail("the first screen is not complete") }
        let took = (ContinuousClock.now - started).milliseconds
        let first = board.visible.compactMap { cell in
            cell.identifier.flatMap { path in cell.picture.targetGeometry.map { (path, $0.resizer) } }
        }
        let failed = board.visible.count(where: \.isFailed)
        await demo.settle(seconds: 1)
        let decoded = library.service.statistics.calls
        print("first screen: \(first.count) images, \(failed) failed, complete after \(took.text) ms")
        print("  decoded before scrolling: \(decoded), \(verdict(Double(decoded), 1.5 * Double(first.count)))")
        print("  cells made: \(grid?.list.factory.cellsMade ?? 0), bound: \(grid?.list.factory.bindings ?? 0)")
        await demo.shoot()
        guard await openPhotos(), await fling() else { return false }
        printMemory()
        await printDecodeTime(first, took: took)
        return await close()
    }

    // MARK: Steps

    private func screenSettles() async -> Bool {
        var seen = -1
        return await demo.wait(seconds: 120) { [board] in
            // No further cell has settled.
            guard board.shown + board.failed != seen else { return false }
            seen = board.shown + board.failed
            let visible = board.visible
            return !visible.isEmpty && visible.allSatisfy(\.isSettled)
        }
    }

    /// Opens the first photo that can be shown, zooms it, goes to the next one, and returns to the grid.
    private func openPhotos() async -> Bool {
        guard let grid, let shown = board.visible.filter({ !$0.isFailed }).compactMap(\.identifier).min(),
            let index = library.identifiers.firstIndex(of: shown)
        else { return fail("there is no photo to open") }
        let offset = grid.list.offset
        grid.open(index)
        guard await demo.wait(until: { grid.viewer.isShown }) else { return fail("\(shown) does not open") }
        let name = grid.viewer.name
        grid.viewer.zoom(by: 1)
        guard grid.viewer.zoom > 1 else { return fail("\(name) is not zoomed") }
        grid.viewer.turn(1)
        let isNext = await demo.wait { grid.viewer.isShown || grid.viewer.reason != nil }
        guard isNext, index + 1 == library.identifiers.count || grid.viewer.name != name else {
            return fail("the photo after \(name) does not appear")
        }
        grid.closePhoto()
        await demo.settle(seconds: 0.2)
        guard !grid.isOpen, await screenSettles(), abs(grid.list.offset - offset) < 1 else {
            return fail("the grid is not at its old place")
        }
        print("opened \(name), zoomed it, and returned to the same place")
        return true
    }

    private func fling() async -> Bool {
        guard let list = grid?.list else { return false }
        demo.meter.reset()
        // Points a second. At the highest speed eleven screens of the usual height pass in a second.
        for speed in [2000.0, 4000, 8000, -8000, -4000, 6000, -6000, 3000] {
            await demo.fling(list, speed: speed, seconds: 1.5)
        }
        let report = demo.meter.report
        print("fling: \(report)")
        print("  99 % of gaps: \(report.share(upTo: 20) >= 0.99 ? "ok" : "MISSED"); longest: ", terminator: "")
        print(verdict(report.longest, 50))
        let stopped = ContinuousClock.now
        let isComplete = await demo.wait(seconds: 60) { [board] in board.visible.allSatisfy(\.isSettled) }
        let statistics = library.service.statistics
        print("  complete \((ContinuousClock.now - stopped).milliseconds.text) ms after the end of scrolling")
        print("  thumbnails: \(statistics.made) made, \(statistics.fromDisk) from disk,", terminator: " ")
        print("\(statistics.cancelled) cancelled")
        return isComplete ? true : fail("images are missing after scrolling")
    }

    private func printMemory() {
        let limit = Double(library.memoryCapacity.bytes) / 1e6 + 150
        let peak = Double(ProcessMemory.peak) / 1e6
        print("memory: \((Double(ProcessMemory.resident) / 1e6).text) MB, at most \(verdict(peak, limit)) MB")
    }

    /// Decodes the images of the first screen again, with the decoder only.
    private func printDecodeTime(_ first: [(String, ImageResizer)], took: Double) async {
        guard first.allSatisfy({ !$0.0.contains("://") }) else { return }
        let clock = ContinuousClock(), decoder = ImageDecoder()
        let one = await clock.measure {
            for (path, resizer) in first { _ = try? await decoder.image(from: .file(path), at: resizer) }
        }
        let several = await clock.measure {
            await withTaskGroup(of: Void.self) { group in
                for (index, (path, resizer)) in first.enumerated() {
                    if index >= library.service.configuration.concurrency { await group.next() }
                    group.addTask { _ = try? await decoder.image(from: .file(path), at: resizer) }
                }
            }
        }
        print("decoding only: \(one.milliseconds.text) ms one by one, \(several.milliseconds.text) ms as here")
        print("  first screen / decode time: \(verdict(took / one.milliseconds, 1.2)) one by one,", terminator: " ")
        print("\(String(format: "%.2f", took / several.milliseconds)) as here")
    }

    /// Scrolls to images that are not loaded, and closes the window.
    private func close() async -> Bool {
        if let list = grid?.list { list.offset = list.maximumOffset * 0.37 }
        // After a moment some images are loaded, and others are not.
        _ = await demo.wait(seconds: 5) { [board] in board.visible.contains(where: \.isLoading) }
        let waiting = board.visible.count { !$0.isSettled }
        demo.window.close()
        grid = nil
        let isGone = await demo.wait(seconds: 10) { [board] in board.cells.isEmpty }
        guard isGone else { return fail("\(board.cells.count) cells outlive their window") }
        // Decodes that are running can finish, but no others may start.
        await demo.settle(seconds: 0.3)
        let calls = library.service.statistics.calls
        await demo.settle(seconds: 0.5)
        guard library.service.statistics.calls == calls else { return fail("images are loaded without a cell") }
        print("closed during \(waiting) loads: no cell is left, and no load runs")
        return true
    }

    private func fail(_ reason: String) -> Bool {
        print("FAILED: \(reason)")
        return false
    }

    private func verdict(_ value: Double, _ limit: Double) -> String {
        let (value, bound) = (String(format: "%.4g", value), String(format: "%.4g", limit))
        return "\(value) (\(Double(value) ?? 0 <= limit ? "ok" : "MISSED"): at most \(bound))"
    }
}
