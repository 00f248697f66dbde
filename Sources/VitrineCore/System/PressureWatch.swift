#if !canImport(Darwin)
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Waits on a thread of its own for pressure files to become ready.
struct PressureWatch: Sendable {
    let files: [PressureFile]
    /// Becomes readable (hangs up) to end the watch, which closes it.
    let stop: Int32
    let report: @Sendable (MemoryPressure.Level) -> Void

    func run() {
        defer { close(stop) }
        var watched: [(file: PressureFile, descriptor: Int32, events: GroupMemoryEvents)] = []
        defer { for entry in watched where entry.descriptor >= 0 { close(entry.descriptor) } }
        for file in files {
            // Opened before the first reading, so that no change falls between the two.
            if let descriptor = file.open() { watched.append((file, descriptor, Self.events(of: file))) }
        }
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
