#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The amount of usable memory.
package enum PhysicalMemory {
    /// The maximum memory of the process in bytes: the memory of the machine, or the lower limit of its control group.
    /// At least 1.
    package static var available: Int {
        let pages = max(1, Int(sysconf(Int32(_SC_PHYS_PAGES))))
        let size = max(1, Int(sysconf(Int32(_SC_PAGESIZE))))
        let (bytes, overflow) = pages.multipliedReportingOverflow(by: size)
        let machine = overflow ? Int.max : bytes
        #if os(Linux)
        let membership = (try? FileContents.read("/proc/self/cgroup", limit: 1 << 20)) ?? []
        return max(1, min(machine, groupLimit(membership: membership, root: "/sys/fs/cgroup") ?? machine))
        #else
        return machine
        #endif
    }

    /// Returns the lowest memory limit of a process's control group and the groups around it, or nil for none.
    ///
    /// Version 2 has `memory.max` in each group's directory (Linux, Documentation/admin-guide/cgroup-v2.rst). Version 1
    /// has `memory.limit_in_bytes` below `memory` (admin-guide/cgroup-v1/memory.rst). A container often sees its own
    /// group as the root.
    ///
    /// - Parameters:
    ///   - membership: The text of `/proc/self/cgroup`.
    ///   - root: The mount point of control groups.
    package static func groupLimit(membership: [UInt8], root: String) -> Int? {
        var limits = [limit(in: FilePath.join(root, "memory.max"))]
        limits.append(limit(in: FilePath.join(root, "memory/memory.limit_in_bytes")))
        for line in membership.split(separator: UInt8(ascii: "\n")) {
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let isUnified = parts[1].isEmpty
            let controllers = parts[1].split(separator: UInt8(ascii: ","))
            guard isUnified || controllers.contains(where: { $0.elementsEqual("memory".utf8) }) else { continue }
            var directory = isUnified ? root : FilePath.join(root, "memory")
            for name in String(decoding: parts[2], as: UTF8.self).split(separator: "/") where name != ".." {
                directory = FilePath.join(directory, String(name))
                limits.append(
                    limit(in: FilePath.join(directory, isUnified ? "memory.max" : "memory.limit_in_bytes")))
            }
        }
        return limits.compactMap { $0 }.min()
    }

    /// Returns the number in a file, or nil if it has none, as for "max".
    private static func limit(in path: String) -> Int? {
        guard let text = try? FileContents.read(path, limit: 1 << 16) else { return nil }
        let digits = String(decoding: text, as: UTF8.self).prefix { $0.isASCII && $0.isNumber }
        return Int(digits).flatMap { $0 > 0 ? $0 : nil }
    }
}

/// The number of usable processors.
package enum ProcessorCount {
    /// The number of active processors, at least 1.
    package static var active: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}

/// The time from one start of the machine to the next.
///
/// Within a session, every file has the bytes that programs wrote to it, even without synchronization and however the
/// programs ended.
package enum BootSession {
    /// A text that is unique to this session, or nil if the system does not report one.
    ///
    /// Linux: random(4). Apple: the kernel's `kern.bootsessionuuid`.
    package static let identifier: String? = {
        #if canImport(Darwin)
        var text = [UInt8](repeating: 0, count: 64)
        var count = text.count
        guard sysctlbyname("kern.bootsessionuuid", &text, &count, nil, 0) == 0 else { return nil }
        let bytes = text.prefix { $0 != 0 }
        #else
        guard let text = try? FileContents.read("/proc/sys/kernel/random/boot_id", limit: 64) else { return nil }
        let bytes = text.prefix { $0 > 0x20 }
        #endif
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }()
}
