import TestSupport
import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// `use DIRECTORY USER ENTRIES`: becomes another user, unless USER is -1, then reads the entries and tries every kind
/// of change, reporting how each ended.
enum Visitor {
    static func run(_ arguments: inout ChildArguments) {
        let directory = arguments.text()
        let user = arguments.number(), count = arguments.number()
        if user >= 0, setgroups(0, nil) != 0 || setgid(gid_t(user)) != 0 || setuid(uid_t(user)) != 0 {
            ChildArguments.refuse("cannot become user \(user)")
        }
        let cache = DiskCache(directory: directory).blocking
        var intact = 0, wrong = 0, failed: [String: Int] = [:]
        for number in 0..<count {
            do {
                guard let bytes = try cache.bytes(forKey: SampleEntry.key(number)) else { continue }
                if SampleEntry(intact: bytes, .mixed)?.number == number { intact += 1 } else { wrong += 1 }
            } catch {
                failed[name(of: error), default: 0] += 1
            }
        }
        report("intact", intact)
        report("wrong", wrong)
        for (name, count) in failed { report("read-failure-\(name)", count) }
        attempt("set") {
            try cache.set(SampleEntry(number: count, version: 1).bytes(.mixed), forKey: SampleEntry.key(count))
            try cache.flush()
        }
        attempt("set-large") {
            try cache.set([UInt8](repeating: 1, count: 300_000), forKey: SampleEntry.key(count))
            try cache.flush()
        }
        attempt("remove") {
            cache.remove(SampleEntry.key(0))
            try cache.flush()
        }
        attempt("remove-all") {
            try cache.removeAll()
            try cache.flush()
        }
    }

    private static func attempt(_ label: String, _ body: () throws -> Void) {
        do {
            try body()
            report(label, "done")
        } catch {
            report(label, name(of: error))
        }
    }
}
