import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Directories that are deleted, emptied, littered or filled with what is no cache.
struct DisturbedDirectoryTests {
    @Test func directoryDeletedWhileOpenIsMadeAgain() async throws {
        try await offPool {
            let cache = try FilledCache(count: 30)
            let open = DiskCache(directory: cache.path).blocking
            for round in 0..<10 {
                let entry = SampleEntry(number: round, version: 2)
                #expect(try open.bytes(forKey: entry.key) != nil)
                try deleteUntilGone(cache.path)
                // What is written after the loss is there, in this process and for the next.
                for number in 0..<30 {
                    let entry = SampleEntry(number: number, version: round)
                    try open.set(entry.bytes(.mixed), forKey: entry.key)
                }
                try open.flush()
                let other = DiskCache(directory: cache.path).blocking
                for number in 0..<30 {
                    let entry = SampleEntry(number: number, version: round)
                    #expect(try open.bytes(forKey: entry.key) == entry.bytes(.mixed), "round \(round)")
                    #expect(try other.bytes(forKey: entry.key) == entry.bytes(.mixed), "round \(round)")
                }
            }
        }
    }

    @Test func readsAfterTheDirectoryIsGoneAreMissesWithoutErrors() async throws {
        try await offPool {
            let cache = try FilledCache(count: 60)
            let open = DiskCache(directory: cache.path).blocking
            #expect(try open.count == 60)
            try deleteUntilGone(cache.path)
            for number in 0..<60 {
                // An entry may still be read from the file that is gone, but then it is the right one.
                guard let bytes = try open.bytes(forKey: SampleEntry.key(number)) else { continue }
                #expect(SampleEntry(intact: bytes, .mixed)?.number == number)
            }
        }
    }

    /// Every single file of the cache, `current` and the locks among them.
    @Test(arguments: [false, true])
    func anyFileDeletedOrReplacedByGarbageIsHarmless(whileOpen: Bool) async throws {
        try await offPool {
            let cache = try FilledCache(count: 30)
            for file in CacheFiles.allAndLinks(in: cache.path) {
                for garbage in [nil, [], [UInt8](repeating: 0xA5, count: 5000), Array("../../etc\n".utf8)] {
                    let copy = try cache.copy()
                    defer { try? FileManager.default.removeItem(atPath: copy) }
                    let open = DiskCache(directory: copy).blocking
                    if whileOpen { _ = try open.bytes(forKey: SampleEntry.key(0)) }
                    let path = "\(copy)/\(file)"
                    try FileManager.default.removeItem(atPath: path)
                    if let garbage { try Data(garbage).write(to: URL(filePath: path)) }
                    let entry = SampleEntry(number: 5, version: 3)
                    for _ in 0..<2 {
                        try? open.set(entry.bytes(.mixed), forKey: entry.key)
                        try? open.flush()
                    }
                    let label = "\(file), \(garbage.map { "\($0.count) bytes" } ?? "deleted")"
                    #expect(try open.bytes(forKey: entry.key) == entry.bytes(.mixed), "\(label)")
                    withExtendedLifetime(open) {}
                    let found = Inspection(copy, count: 30)
                    #expect(found.isHarmless, "\(label): \(found)")
                }
            }
        }
    }

    @Test func foreignFilesAreLeftAloneAndDisturbNothing() async throws {
        try await offPool {
            let cache = try FilledCache(count: 30)
            let directories = Set(CacheFiles.all(in: cache.path).map { ($0 as NSString).deletingLastPathComponent })
            let path = try cache.copy()
            for directory in directories {
                for name in ["holiday.jpg", "zz", ".hidden", "x.sqlite-wal", "00"] {
                    try Data("not ours".utf8).write(to: URL(filePath: "\(path)/\(directory)/\(name)"))
                }
                try FileManager.default.createDirectory(
                    atPath: "\(path)/\(directory)/folder", withIntermediateDirectories: true)
            }
            symlink("/nowhere", "\(path)/v3/link")
            let found = Inspection(path, count: 30)
            #expect(found.isHarmless, "\(found)")
            #expect(found.intact == 30)
            #expect(FileManager.default.fileExists(atPath: "\(path)/holiday.jpg"))
            let report = try DiskCache(directory: path).blocking.verify(removingDamage: true)
            #expect(report.damaged.isEmpty)
            #expect(FileManager.default.fileExists(atPath: "\(path)/holiday.jpg"))
        }
    }

    @Test func nothingOfACacheStaysOpenWhenItGoes() async throws {
        try await offPool {
            let cache = try FilledCache(count: 10)
            for _ in 0..<3 {
                do {
                    let again = DiskCache(directory: cache.path)
                    #expect(try again.blocking.bytes(forKey: SampleEntry.key(1)) != nil)
                    try again.blocking.set([1], forKey: "another")
                    try again.blocking.flush()
                }
                try CacheFiles.waitUntilClosed(cache.path)
            }
            try waitUntil("no file of the cache open") { DatabaseFiles.openFiles(below: cache.path).isEmpty }
        }
    }

    @Test func directoryThatIsAFileGivesATypedErrorAndStays() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            try directory.write("a file", to: "cache")
            let cache = DiskCache(directory: directory.file("cache")).blocking
            #expect(throws: CacheError.self) {
                try cache.set([1, 2, 3], forKey: "a")
                try cache.flush()
            }
            #expect(directory.read("cache") == "a file")
        }
    }
}
