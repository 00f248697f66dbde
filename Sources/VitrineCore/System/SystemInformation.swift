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
        let limit = groupLimit(membership: ControlGroups.membership, root: ControlGroups.root)
        return max(1, min(machine, limit ?? machine))
        #else
        return machine
        #endif
    }

    /// Returns the lowest memory limit of a process's control group and the groups around it, or nil for none.
    ///
    /// Version 2 has `memory.max` in each group's directory (Linux, Documentation/admin-guide/cgroup-v2.rst). Version 1
    /// has `memory.limit_in_bytes` (admin-guide/cgroup-v1/memory.rst).
    ///
    /// - Parameters:
    ///   - membership: The text of `/proc/self/cgroup`.
    ///   - root: The mount point of control groups.
    package static func groupLimit(membership: [UInt8], root: String) -> Int? {
        ControlGroups.directories(of: "memory", membership: membership, root: root).compactMap { directory in
            limit(in: FilePath.join(directory.path, directory.isUnified ? "memory.max" : "memory.limit_in_bytes"))
        }.min()
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
    /// The number of processors that the process may use, at least 1: those of the machine that are online, or fewer if
    /// its affinity or the quota of its control group allows fewer. A quota of one and a half counts as two.
    package static let active: Int = {
        let online = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        #if os(Linux)
        let quota = groupLimit(membership: ControlGroups.membership, root: ControlGroups.root)
        return max(1, min(online, allowed ?? online, quota ?? online))
        #else
        return online
        #endif
    }()

    #if os(Linux)
    /// Those of the affinity (sched_setaffinity(2)), which containers and services also set; nil if it is unknown.
    private static var allowed: Int? {
        (try? FileContents.read("/proc/self/status", limit: 1 << 16)).flatMap { allowed(status: $0) }
    }
    #endif

    /// The number of processors in the mask of `/proc/PID/status` (proc(5)), or nil if it has none.
    package static func allowed(status: [UInt8]) -> Int? {
        let name = "Cpus_allowed:"
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
        let count = line?.dropFirst(name.count).reduce(0) { $0 + ($1.hexDigitValue?.nonzeroBitCount ?? 0) }
        return count.flatMap { $0 > 0 ? $0 : nil }
    }

    /// Returns the lowest quota of a process's control group and the groups around it in processors, rounded up, or nil
    /// for none.
    ///
    /// Version 2 has `cpu.max` with quota and period (Linux, Documentation/admin-guide/cgroup-v2.rst). Version 1 has
    /// `cpu.cfs_quota_us` and `cpu.cfs_period_us` (Documentation/scheduler/sched-bwc.rst).
    ///
    /// - Parameters:
    ///   - membership: The text of `/proc/self/cgroup`.
    ///   - root: The mount point of control groups.
    package static func groupLimit(membership: [UInt8], root: String) -> Int? {
        ControlGroups.directories(of: "cpu", membership: membership, root: root).compactMap { directory in
            let files = directory.isUnified ? ["cpu.max"] : ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
            let words = files.flatMap { name -> [Substring] in
                let text = try? FileContents.read(FilePath.join(directory.path, name), limit: 1 << 16)
                return String(decoding: text ?? [], as: UTF8.self).split { $0.isWhitespace }
            }
            guard words.count == 2, let quota = Int(words[0]), let period = Int(words[1]), quota > 0, period > 0 else {
                return nil
            }
            return quota / period + (quota % period > 0 ? 1 : 0)
        }.min()
    }
}

/// The control groups of Linux.
private enum ControlGroups {
    /// The mount point.
    static let root = "/sys/fs/cgroup"
    /// The text that names the groups of this process.
    static var membership: [UInt8] { (try? FileContents.read("/proc/self/cgroup", limit: 1 << 20)) ?? [] }

    /// The directories of a process's group and of the groups around it. A container often sees its own group as the
    /// root.
    ///
    /// - Parameters:
    ///   - controller: A name such as `memory`, which in version 1 has a hierarchy of its own.
    ///   - membership: The text of `/proc/self/cgroup`.
    ///   - root: The mount point of control groups.
    static func directories(
        of controller: String, membership: [UInt8], root: String
    ) -> [(path: String, isUnified: Bool)] {
        var directories = [(root, true), (FilePath.join(root, controller), false)]
        for line in membership.split(separator: UInt8(ascii: "\n")) {
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let isUnified = parts[1].isEmpty
            let controllers = parts[1].split(separator: UInt8(ascii: ","))
            guard isUnified || controllers.contains(where: { $0.elementsEqual(controller.utf8) }) else { continue }
            var path = isUnified ? root : FilePath.join(root, controller)
            for name in String(decoding: parts[2], as: UTF8.self).split(separator: "/") where name != ".." {
                path = FilePath.join(path, String(name))
                directories.append((path, isUnified))
            }
        }
        return directories
    }
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
