#if canImport(Darwin)
import Darwin
import Dispatch

/// The system's memory pressure, from the dispatch source.
public final class SystemMemoryPressure: MemoryPressureSource {
    private let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global())

    public init() {}

    public var isAvailable: Bool { true }

    public func start(_ report: @escaping @Sendable (MemoryPressure.Level) -> Void) {
        source.setEventHandler { [weak source] in
            guard let source else { return }
            report(source.data.contains(.critical) ? .critical : .warning)
        }
        source.activate()
    }

    public func stop() { source.cancel() }
}
#else
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The system's memory pressure, from pressure stall information (Linux, Documentation/accounting/psi.rst) of the
/// machine and of the process's control group, and from that group's `memory.events`.
///
/// A warning is reported when tasks have waited for memory for 15 % of two seconds, a critical level when all tasks
/// have waited for 10 % of two seconds at once, or when the group has run into its limit. Windows of two seconds are
/// the ones that processes without privileges may ask for. There is at most one report per window and trigger.
public final class SystemMemoryPressure: MemoryPressureSource {
    private let files: [PressureFile]
    private let pipe = Locked<(read: Int32, write: Int32)?>(nil)

    /// The machine's and the process's own.
    public convenience init() {
        var directories: [String] = []
        if let text = try? FileContents.read("/proc/self/cgroup", limit: 1 << 20),
            let group = PressureFile.unifiedGroup(in: text) {
            directories.append(FilePath.join("/sys/fs/cgroup", group))
        }
        self.init(pressureFile: "/proc/pressure/memory", groups: directories)
    }

    /// Those of given files, for tests and for supervisors of other groups.
    ///
    /// - Parameters:
    ///   - pressureFile: A file like `/proc/pressure/memory`.
    ///   - groups: Directories of control groups (version 2).
    public init(pressureFile: String, groups: [String]) {
        files = PressureFile.all(pressureFile: pressureFile, groups: groups)
    }

    deinit { stop() }

    /// Whether the kernel lets this process watch any of the files.
    public var isAvailable: Bool { !files.isEmpty }

    public func start(_ report: @escaping @Sendable (MemoryPressure.Level) -> Void) {
        var ends: [Int32] = [-1, -1]
        guard isAvailable, openPipe(&ends) == 0 else { return }
        let (read, write) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        pipe.withLock { $0 = (read, write) }
        let watch = PressureWatch(files: files, stop: read, report: report)
        if !Thread.start(name: "vitrine-memory", body: { watch.run() }) {
            close(read)
            stop()
        }
    }

    public func stop() {
        // The thread wakes up at the hang-up and closes its end.
        if let ends = pipe.withLock({ ends in defer { ends = nil }; return ends }) { close(ends.write) }
    }
}

// The property hides the C function.
private func openPipe(_ ends: UnsafeMutablePointer<Int32>) -> Int32 { pipe(ends) }
#endif
