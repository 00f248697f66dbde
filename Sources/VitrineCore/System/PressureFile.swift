#if !canImport(Darwin)
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// One file whose readiness (`POLLPRI`) means memory pressure.
struct PressureFile: Sendable {
    enum Kind: Sendable, Equatable {
        /// Pressure stall information with this trigger: the line's name, and stall and window in microseconds.
        case stall(trigger: String, level: MemoryPressure.Level)
        /// `memory.events` of a control group, whose counters tell what happened.
        case events
    }

    let path: String
    let kind: Kind

    private static let warning = Kind.stall(trigger: "some 300000 2000000", level: .warning)
    private static let critical = Kind.stall(trigger: "full 200000 2000000", level: .critical)

    /// Those of the given files that can be watched.
    static func all(pressureFile: String, groups: [String]) -> [PressureFile] {
        var files: [PressureFile] = []
        for path in [pressureFile] + groups.map({ FilePath.join($0, "memory.pressure") }) {
            files.append(PressureFile(path: path, kind: critical))
            files.append(PressureFile(path: path, kind: warning))
        }
        files += groups.map { PressureFile(path: FilePath.join($0, "memory.events"), kind: .events) }
        return files.filter { file in
            guard let descriptor = file.open() else { return false }
            close(descriptor)
            return true
        }
    }

    /// The path of the process's group below `/sys/fs/cgroup`, from `/proc/self/cgroup`: its line `0::/…`. The root
    /// group counts as none; the machine's own file says the same.
    static func unifiedGroup(in text: [UInt8]) -> String? {
        for line in text.split(separator: UInt8(ascii: "\n")) where line.starts(with: "0::/".utf8) {
            let path = String(decoding: line.dropFirst(4), as: UTF8.self)
            return path.isEmpty ? nil : path
        }
        return nil
    }

    /// Opens the file and sets its trigger.
    ///
    /// - Returns: A descriptor to poll; nil if the kernel refuses.
    func open() -> Int32? {
        guard case .stall(let trigger, _) = kind else {
            let descriptor = systemOpen(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            return descriptor >= 0 ? descriptor : nil
        }
        let descriptor = systemOpen(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // Only the kernel's own files take triggers; any other is not written to.
        var start = [UInt8](repeating: 0, count: 10)
        let isKernels = pread(descriptor, &start, 10, 0) == 10 && start == Array("some avg10".utf8)
        // The terminating zero is part of what the kernel expects (psi.rst, "Monitoring for pressure thresholds").
        let isSet = isKernels && trigger.withCString { write(descriptor, $0, strlen($0) + 1) } > 0
        if !isSet { close(descriptor) }
        return isSet ? descriptor : nil
    }
}

private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }

/// The counters of `memory.events` (Linux, Documentation/admin-guide/cgroup-v2.rst).
package struct GroupMemoryEvents: Equatable {
    /// Times the group was throttled above its soft limit.
    package var high: UInt64 = 0
    /// Times it was about to exceed its limit, was stopped by it, or lost a process to it.
    package var limit: UInt64 = 0

    /// Reads the file's text. Lines of other names and forms are skipped.
    package init(_ text: [UInt8]) {
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "))
            guard words.count == 2, let value = UInt64(String(decoding: words[1], as: UTF8.self)) else { continue }
            switch String(decoding: words[0], as: UTF8.self) {
            case "high": high = value
            case "max", "oom", "oom_kill": limit &+= value
            default: break
            }
        }
    }

    /// What happened between an earlier reading and this one.
    package func level(since earlier: GroupMemoryEvents) -> MemoryPressure.Level? {
        if limit != earlier.limit { return .critical }
        return high != earlier.high ? .warning : nil
    }
}
#endif
