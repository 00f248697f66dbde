import DemoSupport
import Foundation
import VitrineDownloads
import VitrineGTK

/// What `--auto` does in each of the two runs, which ``Relaunch`` starts.
@MainActor
final class DownloadDrive {
    private let demo: Demo
    private var view: DownloadView?
    private let model: DownloadModel

    init(_ demo: Demo, _ view: DownloadView) {
        (self.demo, self.view) = (demo, view)
        model = view.model
    }

    func run() async -> Bool {
        demo.arguments["--run"] == "first" ? await first() : await second()
    }

    private var all: [DownloadStatus] { model.downloads.compactMap { model.statuses[$0.id] } }
    private var received: Int { all.reduce(0) { $0 + $1.received } }
    private var total: Int { all.reduce(0) { $0 + ($1.total ?? 0) } }

    /// Pauses one, lets another go on after a pause, and waits to be killed.
    private func first() async -> Bool {
        guard await demo.wait(until: { [self] in all.count { $0.state == .running && $0.received > 0 } >= 2 }) else {
            return fail("nothing is being downloaded")
        }
        let running = all.filter { $0.state == .running }.map(\.id)
        guard running.count >= 2 else { return fail("two should be running") }
        for id in running.prefix(2) { await model.toggle(id) }
        let arePaused = await demo.wait { [self] in
            running.prefix(2).allSatisfy { model.statuses[$0]?.state == .paused }
        }
        guard arePaused else { return fail("they do not pause") }
        await model.toggle(running[1])
        guard await demo.wait(until: { [self] in model.statuses[running[1]]?.state != .paused }) else {
            return fail("it does not go on")
        }
        print("paused 2, let 1 of them go on")
        demo.meter.reset()
        guard await demo.wait(seconds: 120, until: { [self] in total > 0 && received > total * 4 / 10 }) else {
            return fail("the downloads do not come on")
        }
        print("first run: \(demo.meter.report)")
        print("received \(received)")
        // From here on whoever started this kills it.
        print("half")
        fflush(nil)
        await demo.settle(seconds: 60)
        return fail("nobody killed the first run")
    }

    /// Finds everything where it was, and lets all of it end.
    private func second() async -> Bool {
        guard await demo.wait(until: { [self] in !all.isEmpty }) else { return fail("the list is empty") }
        let paused = all.filter { $0.state == .paused }.map(\.id)
        print("the second run found \(all.count) downloads, \(paused.count) of them paused")
        guard paused.count == 1 else { return fail("\(paused.count) are paused, not one") }
        demo.meter.reset()
        let isNear = await demo.wait(seconds: 120) { [self] in
            all.count { $0.state == .completed } >= 2 && all.contains { $0.state == .running && $0.received > 0 }
        }
        guard isNear else { return fail("the downloads do not come on") }
        await demo.settle(seconds: 0.4)
        await demo.shoot()
        for id in paused { await model.toggle(id) }
        guard await demo.wait(seconds: 120, until: { [self] in all.allSatisfy { $0.state == .completed } }) else {
            return fail("they do not end: \(all.map(\.state))")
        }
        print("second run: \(demo.meter.report)")
        let count = all.count
        await model.remove(model.downloads[0].id)
        guard model.downloads.count == count - 1 else { return fail("one is not taken off the list") }
        demo.window.close()
        view = nil
        guard await demo.wait(seconds: 10, until: { DownloadRow.alive == 0 }) else {
            return fail("\(DownloadRow.alive) rows outlive their window")
        }
        await model.close()
        print("closed: no row is left, and nothing runs")
        return true
    }

    private func fail(_ reason: String) -> Bool {
        print("FAILED: \(reason)")
        return false
    }
}
