import DemoSupport
import Foundation
import VitrineDownloads
import VitrineGTK

/// Drives the two runs of `--auto`, which ``Relaunch`` starts.
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

    /// Pauses two downloads, resumes one of them, and waits for the kill signal.
    private func first() async -> Bool {
        guard await demo.wait(until: { [self] in all.count { $0.state == .running && $0.received > 0 } >= 2 }) else {
            return fail("no download is running")
        }
        let running = all.filter { $0.state == .running }.map(\.id)
        guard running.count >= 2 else { return fail("fewer than two downloads are running") }
        for id in running.prefix(2) { await model.toggle(id) }
        let arePaused = await demo.wait { [self] in
            running.prefix(2).allSatisfy { model.statuses[$0]?.state == .paused }
        }
        guard arePaused else { return fail("the downloads do not pause") }
        await model.toggle(running[1])
        guard await demo.wait(until: { [self] in model.statuses[running[1]]?.state != .paused }) else {
            return fail("the download does not resume")
        }
        print("paused 2, resumed 1 of them")
        demo.meter.reset()
        guard await demo.wait(seconds: 120, until: { [self] in total > 0 && received > total * 4 / 10 }) else {
            return fail("the downloads make no progress")
        }
        print("first run: \(demo.meter.report)")
        print("received \(received)")
        // The parent process kills this run now.
        print("half")
        fflush(nil)
        await demo.settle(seconds: 60)
        return fail("the first run was not killed")
    }

    /// Checks that all downloads are restored, and completes them.
    private func second() async -> Bool {
        guard await demo.wait(until: { [self] in !all.isEmpty }) else { return fail("the list is empty") }
        let paused = all.filter { $0.state == .paused }.map(\.id)
        print("the second run found \(all.count) downloads, \(paused.count) of them paused")
        guard paused.count == 1 else { return fail("\(paused.count) downloads are paused instead of one") }
        guard await refuse() else { return false }
        demo.meter.reset()
        let isNear = await demo.wait(seconds: 120) { [self] in
            all.count { $0.state == .completed } >= 2 && all.contains { $0.state == .running && $0.received > 0 }
        }
        guard isNear else { return fail("the downloads make no progress") }
        await demo.settle(seconds: 0.4)
        await demo.shoot()
        for id in paused { await model.toggle(id) }
        guard await demo.wait(seconds: 120, until: { [self] in all.allSatisfy { $0.state == .completed } }) else {
            return fail("the downloads do not finish: \(all.map(\.state))")
        }
        print("second run: \(demo.meter.report)")
        let count = all.count
        await model.remove(model.downloads[0].id)
        guard model.downloads.count == count - 1 else { return fail("a removed download is still in the list") }
        demo.window.close()
        view = nil
        guard await demo.wait(seconds: 10, until: { DownloadRow.alive == 0 }) else {
            return fail("\(DownloadRow.alive) rows outlive their window")
        }
        await model.close()
        print("closed: no row is left, and no load runs")
        return true
    }

    /// Enters an address that is refused.
    private func refuse() async -> Bool {
        let address = "ftp://localhost/lake.jpg"
        view?.enter(address)
        guard await demo.wait(until: { [self] in view?.problemText.isEmpty == false }) else {
            return fail("there is no message for \(address)")
        }
        await demo.settle(seconds: 0.1)
        guard view?.text == address else { return fail("the typed address is gone") }
        print("refused: \(view?.problemText ?? "")")
        return true
    }

    private func fail(_ reason: String) -> Bool {
        print("FAILED: \(reason)")
        return false
    }
}
