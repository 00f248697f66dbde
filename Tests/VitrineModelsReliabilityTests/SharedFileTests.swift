import Foundation
import TestSupport
import Testing
import VitrineModels

/// Two processes use one file.
@Suite struct SharedFileTests {
    @Test func processesKeepTheirPutsAndNotifyOthers() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a.sqlite"), steps = 200
        let store = try StoreContents.open(path)
        var changes = store.changes(in: "all", interval: .milliseconds(2)).makeAsyncIterator()
        async let first = offPool { try ModelsChildRun.findings(["share", path, "1", String(steps)]) }
        async let second = offPool { try ModelsChildRun.findings(["share", path, "2", String(steps)]) }
        #expect(await changes.next() == .elsewhere)
        for found in try await [first, second] { #expect(found["done"] == String(steps), "\(found)") }
        for seed in 1...2 {
            var history = ObjectHistory(seed: UInt64(seed))
            #expect(try StoreContents.state(of: store, below: "own\(seed)/") == history.state(after: steps))
        }
        // What both put: the last of one of them under each key.
        #expect(try store.count(in: "all") == 7)
        for key in try store.keys(in: "all") {
            let number = try StoreContents.number(of: store, key, "all")
            #expect((1...2).contains(number >> 20) && number & 0xFFFFF >= steps - 7, "\(key) is \(number)")
        }
        #expect(try await store.verify().isIntact)
    }

    @Test func bothProcessesMigrateOneGroup() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a.sqlite"), count = 5000
        _ = try await offPool { try ModelsChildRun.findings(["old", path, String(count)]) }
        async let first = offPool { try ModelsChildRun.findings(["migrate", path]) }
        async let second = offPool { try ModelsChildRun.findings(["migrate", path]) }
        for found in try await [first, second] {
            #expect(found["failed"] == nil && found.lines.last?.name == "end", "\(found)")
        }
        let versions = try StoreContents.open(path).storedVersions()
        #expect(versions.map(\.version) == ["1", "2"])
        #expect(versions.map(\.count) == [0, count])
    }
}
