import Foundation
import TestSupport
import VitrineCache

/// A directory with a cache of entries 0..<count, version 1, some of which are files of their own.
struct FilledCache {
    let directory: TemporaryDirectory
    let count: Int
    /// The cache's files, at rest.
    var path: String { directory.file("cache") }
    private let copies = Counter()

    /// - Parameter isAbandoned: Leaves the files as a killed process does, write-ahead log included.
    init(count: Int, isAbandoned: Bool = false) throws {
        self.directory = try TemporaryDirectory()
        self.count = count
        let living = isAbandoned ? directory.file("living") : directory.file("cache")
        do {
            let cache = DiskCache(directory: living)
            for number in 0..<count {
                let entry = SampleEntry(number: number, version: 1)
                try cache.blocking.set(entry.bytes(.mixed), forKey: entry.key)
            }
            try cache.blocking.flush()
            // Copied while it is open: what a process that ends here would leave.
            if isAbandoned { try FileManager.default.copyItem(atPath: living, toPath: path) }
            withExtendedLifetime(cache) {}
        }
        if !isAbandoned { try CacheFiles.waitUntilClosed(living) }
    }

    /// A copy of the files at a path of its own: what a cache does behind the last call concerns no other test.
    func copy() throws -> String {
        let target = directory.file("copy-\(copies.add(1))")
        try FileManager.default.copyItem(atPath: path, toPath: target)
        return target
    }

    /// Copies the files, lets `damage` at them, then reads and uses the cache there.
    func inspect(_ damage: (String) throws -> Void) throws -> Inspection {
        let target = try copy()
        defer { try? FileManager.default.removeItem(atPath: target) }
        try damage(target)
        return Inspection(target, count: count)
    }
}

/// What a cache holds after something happened to its files, and whether it still works.
struct Inspection: CustomStringConvertible {
    var intact = 0
    var missing = 0
    var wrong = 0
    var errors: [String] = []
    /// Whether a write can be read back.
    var isUsable = false
    /// Whether it can by the next process too.
    var isUsableAgain = false

    init(_ directory: String, count: Int) {
        do {
            let cache = DiskCache(directory: directory).blocking
            read(cache, count)
            isUsable = Self.use(cache, &errors)
        }
        isUsableAgain = Self.use(DiskCache(directory: directory).blocking, &errors)
    }

    /// Whether nothing worse happened than that entries are gone.
    var isHarmless: Bool { wrong == 0 && errors.isEmpty && isUsable && isUsableAgain }

    private mutating func read(_ cache: DiskCache.Blocking, _ count: Int) {
        for number in 0..<count {
            do {
                guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else {
                    missing += 1
                    continue
                }
                if SampleEntry(intact: bytes, .mixed)?.number == number { intact += 1 } else { wrong += 1 }
            } catch {
                errors.append("\(error)")
            }
        }
    }

    private static func use(_ cache: DiskCache.Blocking, _ errors: inout [String]) -> Bool {
        let entry = SampleEntry(number: 1_000_000, version: 1), bytes = entry.bytes(.tiny)
        do {
            try cache.set(bytes, forKey: entry.key)
            try cache.flush()
            return try cache.bytes(forKey: entry.key) == bytes
        } catch {
            errors.append("\(error)")
            return false
        }
    }

    var description: String {
        "intact \(intact), missing \(missing), wrong \(wrong), usable \(isUsable) \(isUsableAgain), \(errors.prefix(3))"
    }
}
