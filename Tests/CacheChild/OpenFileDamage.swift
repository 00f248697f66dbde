import Foundation
import TestSupport
import VitrineCache
import VitrineCore

/// `cut-open|flip-open PRISTINE SCRATCH ENTRIES SEED`: for every file of a cache and many places in it, copies the
/// cache, opens and reads it, damages the file under it, and reads it again. A crash is for the parent to see.
enum OpenFileDamage {
    enum Kind { case cut, flip }

    static func run(_ arguments: inout ChildArguments, _ kind: Kind) {
        let pristine = arguments.text(), scratch = arguments.text()
        let count = arguments.number()
        var random = SeededGenerator(UInt64(arguments.number()))
        var cases = 0, wrong = 0, errors = 0, unusable = 0
        do {
            for file in try FileManager.default.subpathsOfDirectory(atPath: pristine).sorted() {
                let attributes = try FileManager.default.attributesOfItem(atPath: "\(pristine)/\(file)")
                guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
                let size = (attributes[.size] as? NSNumber)?.intValue ?? 0
                for place in DamagePlaces.places(size: size, random: &random, many: file.hasSuffix(".sqlite")) {
                    // A path of its own: what a cache does behind the last call must not meet the next.
                    let scratch = "\(scratch)-\(cases)"
                    defer { try? FileManager.default.removeItem(atPath: scratch) }
                    try FileManager.default.copyItem(atPath: pristine, toPath: scratch)
                    report("case", "\(file)@\(place)")
                    let cache = DiskCache(directory: scratch).blocking
                    for number in 0..<count { _ = try cache.bytes(forKey: SampleEntry.key(number)) }
                    try damage("\(scratch)/\(file)", place, kind)
                    cases += 1
                    (wrong, errors) = read(cache, count, wrong, errors)
                    if !isUsable(cache) { unusable += 1; report("unusable", "\(file)@\(place)") }
                }
            }
        } catch {
            report("error", "\(error)")
        }
        report("cases", cases)
        report("wrong", wrong)
        report("errors", errors)
        report("not-usable", unusable)
    }

    private static func read(_ cache: DiskCache.Blocking, _ count: Int, _ wrong: Int, _ errors: Int) -> (Int, Int) {
        var wrong = wrong, errors = errors
        for number in 0..<count {
            do {
                guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else { continue }
                if SampleEntry(intact: bytes, .mixed)?.number != number { wrong += 1 }
            } catch {
                errors += 1
                if errors < 20 { report("read-error", "\(error)") }
            }
        }
        return (wrong, errors)
    }

    /// Whether a write after the damage can be read back, at the second attempt at the latest.
    private static func isUsable(_ cache: DiskCache.Blocking) -> Bool {
        let entry = SampleEntry(number: 1_000_000, version: 1)
        for _ in 0..<2 {
            do {
                try cache.set(entry.bytes(.tiny), forKey: entry.key)
                try cache.flush()
                if try cache.bytes(forKey: entry.key) == entry.bytes(.tiny) { return true }
            } catch {
                report("write-error", "\(error)")
            }
        }
        return false
    }

    private static func damage(_ path: String, _ place: Int, _ kind: Kind) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        switch kind {
        case .cut: try file.truncate(atOffset: UInt64(place))
        case .flip:
            try file.seek(toOffset: UInt64(place))
            guard let byte = try file.read(upToCount: 1)?.first else { return }
            try file.seek(toOffset: UInt64(place))
            try file.write(contentsOf: [byte ^ 0x55])
        }
    }
}
