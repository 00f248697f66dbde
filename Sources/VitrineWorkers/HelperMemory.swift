import Synchronization
import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The memory budget of all helpers of this process. Each reserves its maximum from its start until it has been reaped.
///
/// Pools share one budget. When it is used up, requests wait and idle workers of other pools end. A pool without any
/// worker gets the next free share, so no request waits for ever.
package final class HelperMemory: Sendable {
    /// The memory of one helper at most: a limit of its process, and the size of the memory shared with its client.
    package struct Share: Sendable, Hashable {
        /// Bytes of private memory, with the first thread's stack.
        package var privateBytes: Int
        /// Bytes of shared memory.
        package var sharedBytes: Int

        package var total: Int { privateBytes + sharedBytes }

        /// Returns whether a helper with this share can serve a request that needs `other`.
        package func covers(_ other: Share) -> Bool {
            privateBytes >= other.privateBytes && sharedBytes >= other.sharedBytes
        }
    }

    /// A reserved share, which returns to the budget when the object is released.
    package final class Reservation: Sendable {
        package let share: Share
        private let memory: HelperMemory
        private let owner = getpid()

        fileprivate init(_ share: Share, of memory: HelperMemory) {
            self.share = share
            self.memory = memory
        }

        // A forked child inherits the object, but has not reserved the share.
        deinit { if owner == getpid() { memory.giveBack(share.total) } }
    }

    private struct Member {
        weak var pool: WorkerPool?
    }

    private struct State {
        var total: Int
        var reserved = 0
        var pools: [Member] = []
        var owner = getpid()
    }

    /// The smallest total: codecs do not load with less.
    package static let minimumTotal = 512 << 20
    /// The least private memory and the least shared memory of a helper.
    private static let minimumPart = 64 << 20

    /// The budget of all pools, unless a pool is made with another.
    package static let shared = HelperMemory(total: MachineMemory.available / 2)

    private let state: Locked<State>

    /// - Parameter total: Bytes; ``minimumTotal`` at least.
    package init(total: Int) {
        state = Locked(State(total: max(total, Self.minimumTotal)))
    }

    /// The bytes of all helpers together.
    package var total: Int {
        get { state.withLock(\.total) }
        set {
            state.withLock { $0.total = max(newValue, Self.minimumTotal) }
            for pool in pools { pool.offerVacancies() }
        }
    }

    /// The reserved bytes.
    package var reserved: Int { state.withLock(\.reserved) }

    /// Returns the share of a helper for requests with these limits, reduced to the total.
    package func share(for limits: ImageLimits) -> Share {
        // A page holds 4,096 bytes or a multiple of it on every system.
        func pages(_ count: Int) -> Int { count & ~0xFFFF }
        let wanted = min(max(limits.maximumWorkerMemory, Self.minimumPart), 1 << 44)
        let wantedPixels = min(limits.maximumPixels, limits.maximumResultPixels)
        let pixels = max(0, min(wantedPixels, SharedMemory.memorySize / PixelImage.bytesPerPixel))
        let shared = min(pixels * PixelImage.bytesPerPixel + Self.minimumPart, SharedMemory.memorySize)
        let total = total
        if wanted + shared <= total { return Share(privateBytes: pages(wanted), sharedBytes: pages(shared)) }
        let smaller = min(shared, max(Self.minimumPart, total / 3))
        return Share(privateBytes: pages(min(wanted, total - smaller)), sharedBytes: pages(smaller))
    }

    // MARK: For other processes

    /// Reserves memory for a process outside of all pools, such as a browser. Waits until enough is free, and ends idle
    /// workers for it. Blocks.
    ///
    /// - Parameters:
    ///   - bytes: The memory of the process at most. Values above ``total`` are reduced to it.
    ///   - isCancelled: Called repeatedly during the wait.
    /// - Returns: nil if `isCancelled` returned true.
    package func reserve(_ bytes: Int, isCancelled: () -> Bool) -> Reservation? {
        while !isCancelled() {
            let share = Share(privateBytes: max(0, min(bytes, total)), sharedBytes: 0)
            for pool in pools {
                while share.total > state.withLock({ $0.total - $0.reserved }), pool.endIdleWorker() {}
            }
            if let reservation = reserve(share) { return reservation }
            usleep(10_000)
        }
        return nil
    }

    // MARK: For pools

    func add(_ pool: WorkerPool) {
        state.withLock { state in
            state.pools.removeAll { $0.pool == nil }
            state.pools.append(Member(pool: pool))
        }
    }

    /// Reserves a share; nil when too little is free. Can be called under the lock of a pool.
    func reserve(_ share: Share) -> Reservation? {
        let isTaken = state.withLock { state in
            if state.owner != getpid() { (state.owner, state.reserved) = (getpid(), 0) }
            // A share that was measured before the total was lowered is granted to the only helper.
            guard state.reserved == 0 || share.total <= state.total - state.reserved else { return false }
            state.reserved += share.total
            return true
        }
        return isTaken ? Reservation(share, of: self) : nil
    }

    /// Ends idle workers of other pools until `share` is free, or none is left.
    func endIdleWorkers(for share: Share, besides caller: WorkerPool) {
        for pool in pools where pool !== caller {
            while share.total > state.withLock({ $0.total - $0.reserved }), pool.endIdleWorker() {}
        }
    }

    /// Returns whether another pool without any worker waits for memory.
    func isDenied(besides caller: WorkerPool) -> Bool { pools.contains { $0 !== caller && $0.want == .first } }

    /// Returns whether another pool waits for memory.
    func isWanted(besides caller: WorkerPool) -> Bool { pools.contains { $0 !== caller && $0.want != .nothing } }

    private var pools: [WorkerPool] { state.withLock { $0.pools.compactMap(\.pool) } }

    private func giveBack(_ count: Int) {
        state.withLock { $0.reserved -= count }
        for pool in pools { pool.offerVacancies() }
    }
}

/// The memory available to this process.
private enum MachineMemory {
    /// The bytes of memory of the machine, or of this process's control groups if they allow less (cgroups(7)).
    static var available: Int {
        let machine = Int(clamping: sysconf(Int32(_SC_PHYS_PAGES)))
            .multipliedReportingOverflow(by: Int(clamping: sysconf(Int32(_SC_PAGESIZE))))
        var least = machine.overflow || machine.partialValue <= 0 ? Int.max : machine.partialValue
        for line in text("/proc/self/cgroup").split(separator: "\n") {
            // hierarchy:controllers:path; version 2 has the hierarchy 0 and no controllers.
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[1].isEmpty || parts[1].split(separator: ",").contains("memory") else {
                continue
            }
            let (root, file) = parts[1].isEmpty
                ? ("/sys/fs/cgroup", "memory.max") : ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            var path = parts[2]
            // Every enclosing group is a bound, too. Inside of a container the path may not exist, but the root does.
            while true {
                if let limit = Int(text("\(root)\(path)/\(file)").prefix { $0.isNumber }), limit > 0 {
                    least = min(least, limit)
                }
                guard let slash = path.lastIndex(of: "/") else { break }
                path = path[..<slash]
            }
        }
        return least == .max ? 4 << 30 : least
    }

    /// Returns the start of a small file; empty when it cannot be read.
    private static func text(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        let bytes = [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
            count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
