#if canImport(Darwin)
import Darwin
import Dispatch

/// The system's memory pressure, from the dispatch source.
package final class SystemMemoryPressure: MemoryPressureSource {
    private let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global())

    /// Creates a source for the dispatch source of the system.
    package init() {}

    /// True on Apple platforms.
    package var isAvailable: Bool { true }

    package func start(_ report: @escaping @Sendable (MemoryPressure.Level) -> Void) {
        source.setEventHandler { [weak source] in
            guard let source else { return }
            report(source.data.contains(.critical) ? .critical : .warning)
        }
        source.activate()
    }

    package func stop() { source.cancel() }
}
#else
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The system's memory pressure: the pressure stall information (Linux, Documentation/accounting/psi.rst) of the
/// machine and of the process's control group, and that group's `memory.events`.
///
/// The level is a warning when tasks have waited for memory for 15 % of two seconds. It is critical when all tasks have
/// waited for 10 % of two seconds, or when the group has reached its limit. Processes without privileges may use
/// windows of two seconds. Each window and trigger makes at most one report. Reports begin a second after the start.
package final class SystemMemoryPressure: MemoryPressureSource {
    private let files: [PressureFile]
    private let pipe = Locked<(read: Int32, write: Int32)?>(nil)

    /// Creates a source for the machine and the control group of the process.
    package convenience init() {
        var directories: [String] = []
        if let text = try? FileContents.read("/proc/self/cgroup", limit: 1 << 20),
            let group = PressureFile.unifiedGroup(in: text) {
            directories.append(FilePath.join("/sys/fs/cgroup", group))
        }
        self.init(pressureFile: "/proc/pressure/memory", groups: directories)
    }

    /// Creates a source for given files, for tests.
    ///
    /// - Parameters:
    ///   - pressureFile: A file like `/proc/pressure/memory`.
    ///   - groups: Directories of control groups (version 2).
    package init(pressureFile: String, groups: [String]) {
        files = PressureFile.all(pressureFile: pressureFile, groups: groups)
    }

    deinit { stop() }

    /// Whether the kernel lets this process watch any of the files. Each access tries them, and can take some 10 ms:
    /// the kernel waits when a trigger is removed.
    package var isAvailable: Bool {
        files.contains { file in
            guard let descriptor = file.open() else { return false }
            close(descriptor)
            return true
        }
    }

    package func start(_ report: @escaping @Sendable (MemoryPressure.Level) -> Void) {
        var ends: [Int32] = [-1, -1]
        guard openPipe(&ends) == 0 else { return }
        let (read, write) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        pipe.withLock { $0 = (read, write) }
        let watch = PressureWatch(files: files, stop: read, report: report)
        if !Thread.start(name: "vitrine-memory", body: { watch.run() }) {
            close(read)
            stop()
        }
    }

    package func stop() {
        // The hang-up wakes the thread, which closes its end.
        if let ends = pipe.withLock({ ends in defer { ends = nil }; return ends }) { close(ends.write) }
    }
}

// The property hides the C function.
private func openPipe(_ ends: UnsafeMutablePointer<Int32>) -> Int32 { pipe(ends) }

/// One file whose readiness (`POLLPRI`) means memory pressure.
private struct PressureFile: Sendable {
    enum Kind: Sendable, Equatable {
        /// Pressure stall information with a trigger: the name of the line, and stall and window in microseconds.
        case stall(trigger: String, level: MemoryPressure.Level)
        /// `memory.events` of a control group, whose counters show the kind of event.
        case events
    }

    let path: String
    let kind: Kind

    private static let warning = Kind.stall(trigger: "some 300000 2000000", level: .warning)
    private static let critical = Kind.stall(trigger: "full 200000 2000000", level: .critical)

    /// Returns the files to watch. Those that the kernel refuses are left out when they are opened.
    static func all(pressureFile: String, groups: [String]) -> [PressureFile] {
        var files: [PressureFile] = []
        for path in [pressureFile] + groups.map({ FilePath.join($0, "memory.pressure") }) {
            files.append(PressureFile(path: path, kind: critical))
            files.append(PressureFile(path: path, kind: warning))
        }
        files += groups.map { PressureFile(path: FilePath.join($0, "memory.events"), kind: .events) }
        return files
    }

    /// Returns the path of the process's group below `/sys/fs/cgroup`, from the line `0::/…` of `/proc/self/cgroup`.
    /// The root group counts as none, because the machine's own file has the same information.
    static func unifiedGroup(in text: [UInt8]) -> String? {
        for line in text.split(separator: UInt8(ascii: "\n")) where line.starts(with: "0::/".utf8) {
            let path = String(decoding: line.dropFirst(4), as: UTF8.self)
            return path.isEmpty ? nil : path
        }
        return nil
    }

    /// Opens the file and sets its trigger.
    ///
    /// - Returns: A descriptor to poll, or nil if the kernel refuses.
    func open() -> Int32? {
        guard case .stall(let trigger, _) = kind else {
            let descriptor = systemOpen(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            return descriptor >= 0 ? descriptor : nil
        }
        let descriptor = systemOpen(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // Only files of the kernel accept triggers. Other files are not written to.
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
    /// The number of times the group was throttled above its soft limit.
    package var high: UInt64 = 0
    /// The number of times it was about to exceed its limit, was stopped by it, or lost a process to it.
    package var limit: UInt64 = 0

    /// Reads the text of the file. Lines of other names and forms are skipped.
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

    /// Returns the level of the events since an earlier reading.
    package func level(since earlier: GroupMemoryEvents) -> MemoryPressure.Level? {
        if limit != earlier.limit { return .critical }
        return high != earlier.high ? .warning : nil
    }
}

/// Waits on its own thread for pressure files to become ready.
private struct PressureWatch: Sendable {
    let files: [PressureFile]
    /// Becomes readable by a hang-up to end the watch, which closes it.
    let stop: Int32
    let report: @Sendable (MemoryPressure.Level) -> Void

    /// Milliseconds before the files are opened. The kernel needs some 10 ms to remove a trigger, also when a process
    /// exits: short commands should set none. The first second of a process seldom needs reports.
    private static let delay: Int32 = 1_000

    func run() {
        defer { close(stop) }
        var ending = [pollfd(fd: stop, events: Int16(POLLIN), revents: 0)]
        if poll(&ending, 1, Self.delay) > 0 { return }
        var watched: [(file: PressureFile, descriptor: Int32, events: GroupMemoryEvents)] = []
        defer { for entry in watched where entry.descriptor >= 0 { close(entry.descriptor) } }
        for file in files {
            // Opened before the first reading, so that no change falls between the two.
            if let descriptor = file.open() { watched.append((file, descriptor, Self.events(of: file))) }
        }
        guard !watched.isEmpty else { return }
        while true {
            // A negative descriptor is left out by poll(2).
            var polls = watched.map { pollfd(fd: $0.descriptor, events: Int16(POLLPRI), revents: 0) }
            polls.append(pollfd(fd: stop, events: Int16(POLLIN), revents: 0))
            guard poll(&polls, nfds_t(polls.count), -1) >= 0 || errno == EINTR else { return }
            if polls[watched.count].revents != 0 { return }
            var level: MemoryPressure.Level?
            for index in watched.indices where polls[index].revents != 0 {
                // memory.events always answers with an error bit beside the event (kernfs_generic_poll); a trigger
                // with one is gone, with its group.
                let isGone = Int32(polls[index].revents) & POLLPRI == 0
                if !isGone, let found = Self.level(of: &watched[index]) { level = max(level ?? found, found) }
                if isGone {
                    close(watched[index].descriptor)
                    watched[index].descriptor = -1
                }
            }
            if let level { report(level) }
        }
    }

    private static func level(
        of entry: inout (file: PressureFile, descriptor: Int32, events: GroupMemoryEvents)
    ) -> MemoryPressure.Level? {
        switch entry.file.kind {
        case .stall(_, let level):
            return level
        case .events:
            // kernfs reports a change until the descriptor has been read again.
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = pread(entry.descriptor, &bytes, bytes.count, 0)
            let now = GroupMemoryEvents(Array(bytes.prefix(max(0, count))))
            defer { entry.events = now }
            return now.level(since: entry.events)
        }
    }

    private static func events(of file: PressureFile) -> GroupMemoryEvents {
        guard file.kind == .events, let bytes = try? FileContents.read(file.path, limit: 1 << 16) else {
            return GroupMemoryEvents([])
        }
        return GroupMemoryEvents(bytes)
    }
}
#endif
