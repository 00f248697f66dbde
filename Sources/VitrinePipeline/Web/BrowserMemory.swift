#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The memory of a browser's processes, looked at while a page is drawn.
///
/// Limits of the kernel for one process do not work here: browsers reserve terabytes of address space, and have as
/// many processes as they like. So the resident memory of all processes of the group is added up.
struct BrowserMemory {
    /// Seconds between two looks, and the share of the time they may take.
    private static let interval = Duration.milliseconds(50)
    private static let costFactor = 20

    private let group: Int32
    /// Bytes.
    let limit: Int
    private var next = ContinuousClock.now

    init(group: Int32, limit: Int) {
        self.group = group
        self.limit = limit
    }

    /// When the next look is due.
    var due: ContinuousClock.Instant { next }

    /// Bytes in use when that is more than the limit; nil otherwise, and when no look is due.
    mutating func excess() -> Int? {
        let start = ContinuousClock.now
        guard start >= next else { return nil }
        let bytes = Self.resident(group: group)
        // Where the system has thousands of processes, a look takes a while.
        next = .now + max(Self.interval, (ContinuousClock.now - start) * Self.costFactor)
        return bytes > limit ? bytes : nil
    }

    /// Anonymous and shared memory in use by all processes of a group, in bytes (proc(5)). Memory that several processes share
    /// counts for each; files that are mapped do not count. 0 on systems without `/proc`.
    static func resident(group: Int32) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.reduce(0) { sum, name in
            guard name.utf8.allSatisfy({ (0x30...0x39).contains($0) }), isMember("/proc/\(name)/stat", of: group) else {
                return sum
            }
            return sum &+ memory("/proc/\(name)/status")
        }
    }

    private static func isMember(_ path: String, of group: Int32) -> Bool {
        // The name in parentheses may hold anything: state, parent and group follow the last parenthesis.
        guard let text = contents(path), let end = text.lastIndex(of: UInt8(ascii: ")")) else { return false }
        let fields = text[(end + 1)...].split(separator: 0x20)
        return fields.count > 2 && String(decoding: fields[2], as: UTF8.self) == String(group)
    }

    private static func memory(_ path: String) -> Int {
        guard let text = contents(path) else { return 0 }
        return text.split(separator: 0x0A).reduce(0) { sum, line in
            guard line.starts(with: "RssAnon:".utf8) || line.starts(with: "RssShmem:".utf8) else { return sum }
            let digits = line.filter { (0x30...0x39).contains($0) }
            return sum &+ (Int(String(decoding: digits, as: UTF8.self)) ?? 0) &* 1_024
        }
    }

    private static func contents(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, filled in
            repeat { count = read(descriptor, buffer.baseAddress, buffer.count) } while count < 0 && errno == EINTR
            filled = max(0, count)
        }
        return count > 0 ? bytes : nil
    }
}
