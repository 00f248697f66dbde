import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Files of a cache are changed by others while it is closed and while it is open.
struct DamagedFileTests {
    private static let count = 40

    @Test(arguments: [false, true])
    func flippedByteCostsEntriesButNeverShowsWrongOnes(withLog: Bool) async throws {
        try await offPool {
            let cache = try FilledCache(count: Self.count, isAbandoned: withLog)
            var random = SeededGenerator(11), lost: [Int] = [], total = 0
            for file in CacheFiles.all(in: cache.path) {
                let size = CacheFiles.size("\(cache.path)/\(file)"), isBody = file.contains("/files/")
                for place in DamagePlaces.places(size: size, random: &random, many: !isBody) {
                    let found = try cache.inspect { try Self.flip("\($0)/\(file)", at: place) }
                    #expect(found.isHarmless, "\(file) at \(place) of \(size): \(found)")
                    if isBody { #expect(found.missing == 1, "\(file) at \(place): \(found)") }
                    if file.hasSuffix(".sqlite") { lost.append(found.missing) }
                    total += 1
                }
            }
            #expect(total > 100)
            // Most bytes belong to one entry; its neighbours stay.
            if !withLog { #expect(lost.sorted()[lost.count / 2] <= 1, "\(lost.sorted())") }
        }
    }

    @Test(arguments: [false, true])
    func cutFileCostsEntriesButNeverShowsWrongOnes(withLog: Bool) async throws {
        try await offPool {
            let cache = try FilledCache(count: Self.count, isAbandoned: withLog)
            var random = SeededGenerator(12)
            for file in CacheFiles.all(in: cache.path) {
                let size = CacheFiles.size("\(cache.path)/\(file)"), isBody = file.contains("/files/")
                for place in DamagePlaces.places(size: size, random: &random, many: !isBody) {
                    let found = try cache.inspect { #expect(truncate("\($0)/\(file)", off_t(place)) == 0) }
                    #expect(found.isHarmless, "\(file) cut to \(place) of \(size): \(found)")
                    if isBody { #expect(found.missing == 1, "\(file) cut to \(place): \(found)") }
                }
            }
        }
    }

    @Test(arguments: ["cut-open", "flip-open"], [false, true])
    func damageUnderAnOpenCacheNeitherCrashesItNorShowsWrongEntries(command: String, withLog: Bool) async throws {
        try await offPool {
            let cache = try FilledCache(count: Self.count, isAbandoned: withLog)
            let scratch = cache.directory.file("scratch")
            let child = try ChildProcess([command, cache.path, scratch, String(Self.count), "13"])
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "at \(findings["case"] ?? "the start")")
            #expect(findings["error"] == nil)
            #expect(findings.number("cases") > 60)
            #expect(findings.number("wrong") == 0)
            #expect(findings.number("errors") == 0, "\(findings)")
            #expect(findings.number("not-usable") == 0, "\(findings)")
        }
    }

    @Test func rowAndFileOfAnotherEntryAreNotTaken() async throws {
        try await offPool {
            let cache = try FilledCache(count: 120)
            let files = CacheFiles.all(in: cache.path).filter { $0.contains("/files/") }
            try #require(files.count >= 2)
            let found = try cache.inspect { path in
                try FileManager.default.removeItem(atPath: "\(path)/\(files[0])")
                try FileManager.default.copyItem(atPath: "\(path)/\(files[1])", toPath: "\(path)/\(files[0])")
            }
            #expect(found.isHarmless, "\(found)")
            #expect(found.missing == 1)
        }
    }

    private static func flip(_ path: String, at place: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(place))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(place))
        try file.write(contentsOf: [byte ^ 0x55])
    }
}
