#if os(Linux)
import CVitrineCurl
import DequeModule
import Synchronization
import VitrineCore

/// The thread of all transfers of a loader.
///
/// Unchecked: `inbox` is shared under its lock, and other threads use `handle` only to wake the loop. Everything else
/// belongs to the thread that runs ``run()``.
final class CurlLoop: @unchecked Sendable {
    enum Command {
        case start(CurlTransfer)
        case cancel(CurlTransfer)
        case resume(CurlTransfer)
        case stop
    }

    private let handle: OpaquePointer
    private let inbox = Locked<[Command]>([])
    private let slotsPerOrigin: Int
    /// The concurrent streams of one HTTP/2 connection.
    private static let streamsPerConnection = 100
    /// The bytes that one transfer receives before the loop serves the others.
    private static let iterationLimit = 1 << 20

    /// The number of requests that wait for a connection.
    let waitingCount = Atomic<Int>(0)

    private var origins: [String: CurlOrigin] = [:]
    private var active: [CurlTransfer] = []
    private var touched: [CurlTransfer] = []
    private var flushed: [CurlTransfer] = []
    private var commands: [Command] = []
    private var isStopped = false
    private var now: Int64 = 0
    /// The earliest time at which a transfer can exceed its idle limit.
    private var nextIdleCheck = Int64.max

    /// Creates the loop, or returns nil if no descriptors or memory are left.
    init?(_ configuration: CurlLoader.Configuration) {
        guard let handle = configuration.makeLoop(callbacks: Self.callbacks) else { return nil }
        self.handle = handle
        slotsPerOrigin = max(1, configuration.connectionsPerHost)
    }

    deinit { ccurl_loop_destroy(handle) }

    /// Sends a command to the loop's thread, from any thread.
    func submit(_ command: Command) {
        inbox.withLock { $0.append(command) }
        ccurl_loop_wake(handle)
    }

    // MARK: The thread

    /// Runs until the command `stop`.
    func run() {
        while !isStopped {
            now = ccurl_now()
            takeCommands()
            flush()
            if isStopped { break }
            ccurl_loop_run(handle, timeToWait)
            now = ccurl_now()
            checkIdle()
            flush()
        }
        for transfer in active { end(transfer, .failure(.cancelled(url: transfer.request.displayURL))) }
        for origin in origins.values {
            while let transfer = origin.next() {
                waitingCount.subtract(1, ordering: .relaxed)
                end(transfer, .failure(.cancelled(url: transfer.request.displayURL)))
            }
        }
        origins = [:]
        flush()
    }

    private func takeCommands() {
        // Swap two arrays, so that their memory is reused.
        inbox.withLock { swap(&$0, &commands) }
        for command in commands { handle(command) }
        commands.removeAll(keepingCapacity: true)
    }

    private func handle(_ command: Command) {
        switch command {
        case .start(let transfer): enqueue(transfer)
        case .cancel(let transfer): cancel(transfer)
        case .resume(let transfer): resume(transfer)
        case .stop: isStopped = true
        }
    }

    private func enqueue(_ transfer: CurlTransfer) {
        guard transfer.state.withLock({ $0.end == nil }) else { return }
        let name = transfer.request.url.origin
        let origin = origins[name] ?? CurlOrigin(name)
        origins[name] = origin
        transfer.confined.origin = origin
        if origin.active < slots(of: origin) {
            start(transfer, at: origin)
        } else {
            origin.add(transfer)
            waitingCount.add(1, ordering: .relaxed)
        }
    }

    private func slots(of origin: CurlOrigin) -> Int {
        origin.isMultiplexed ? max(slotsPerOrigin, Self.streamsPerConnection) : slotsPerOrigin
    }

    private func start(_ transfer: CurlTransfer, at origin: CurlOrigin) {
        transfer.confined.startedAt = now
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        guard let started = transfer.request.start(on: handle, context: context) else {
            end(transfer, .failure(.unavailable(url: transfer.request.displayURL, reason: "no memory for a transfer")))
            return
        }
        transfer.confined.handle = started
        transfer.confined.position = active.count
        // Keeps the transfer alive: libcurl holds an unretained pointer to it.
        active.append(transfer)
        origin.active += 1
    }

    private func cancel(_ transfer: CurlTransfer) {
        if let started = transfer.confined.handle {
            ccurl_stop(started)
            release(transfer)
        } else if let origin = transfer.confined.origin {
            transfer.confined.origin = nil
            origin.remove(transfer)
            waitingCount.subtract(1, ordering: .relaxed)
            if origin.isIdle { origins[origin.name] = nil }
        }
    }

    private func resume(_ transfer: CurlTransfer) {
        guard let started = transfer.confined.handle else { return }
        touchIdle(transfer)
        guard ccurl_pause(started, 0) == 0 else { return }
        ccurl_stop(started)
        end(transfer, transfer.outcome(Int32(CCURL_STOPPED), "the body cannot be decoded", now: now))
        release(transfer)
    }

    /// Releases an ended transfer and starts the transfers that wait for its connection.
    private func release(_ transfer: CurlTransfer) {
        let position = transfer.confined.position
        active.swapAt(position, active.count - 1)
        active[position].confined.position = position
        active.removeLast()
        transfer.confined.handle = nil
        transfer.confined.position = -1
        guard let origin = transfer.confined.origin else { return }
        transfer.confined.origin = nil
        origin.active -= 1
        while origin.active < slots(of: origin), let next = origin.next() {
            waitingCount.subtract(1, ordering: .relaxed)
            guard next.state.withLock({ $0.end == nil }) else {
                next.confined.origin = nil
                continue
            }
            start(next, at: origin)
        }
        if origin.isIdle { origins[origin.name] = nil }
    }

    private func end(_ transfer: CurlTransfer, _ result: Result<Void, NetworkError>) {
        transfer.state.withLock { state in
            if state.end == nil { state.end = result }
        }
        touch(transfer)
    }

    // MARK: Waking readers

    private func touch(_ transfer: CurlTransfer) {
        guard !transfer.confined.isTouched else { return }
        transfer.confined.isTouched = true
        touched.append(transfer)
    }

    /// Resumes readers with new data, once per iteration. A small body is often complete by then.
    private func flush() {
        guard !touched.isEmpty else { return }
        swap(&touched, &flushed)
        for transfer in flushed {
            transfer.confined.isTouched = false
            let waiter = transfer.state.withLock { state in
                let collects = state.collectLimit.map { state.pending.count <= $0 } ?? false
                return state.end != nil || !collects ? state.waiter.take() : nil
            }
            waiter?.resume()
            transfer.confined.receivedInIteration = 0
            if transfer.confined.isBreathing {
                transfer.confined.isBreathing = false
                resume(transfer)
            }
        }
        flushed.removeAll(keepingCapacity: true)
    }

    // MARK: Idle transfers

    private var timeToWait: Int32 {
        if !touched.isEmpty { return 0 }
        guard nextIdleCheck != .max else { return -1 }
        return Int32(clamping: max(0, nextIdleCheck - now))
    }

    private func touchIdle(_ transfer: CurlTransfer) {
        // `now` is older than the wait.
        transfer.confined.lastActivity = ccurl_now()
        guard let limit = transfer.request.idleTimeout else { return }
        nextIdleCheck = min(nextIdleCheck, transfer.confined.lastActivity + limit)
    }

    /// Ends transfers whose server exceeds the idle limit while a reader waits.
    private func checkIdle() {
        guard now >= nextIdleCheck else { return }
        nextIdleCheck = .max
        for transfer in active where transfer.confined.isConnected {
            guard let limit = transfer.request.idleTimeout else { continue }
            if transfer.state.withLock({ $0.isPaused }) { continue }
            if now - transfer.confined.lastActivity < limit {
                nextIdleCheck = min(nextIdleCheck, transfer.confined.lastActivity + limit)
            } else if let started = transfer.confined.handle {
                ccurl_stop(started)
                end(transfer, .failure(.timedOut(url: transfer.request.displayURL, .idle)))
                release(transfer)
            }
        }
    }
}

// MARK: Callbacks of libcurl

private func transferBehind(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
    context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
}

extension CurlLoop {
    private static var callbacks: ccurl_callbacks {
        ccurl_callbacks(
            connecting: { context, bytes, count in
                guard let transfer = transferBehind(context) else { return 0 }
                return transfer.isAllowed(UnsafeBufferPointer(start: bytes, count: Int(count))) ? 1 : 0
            },
            sending: { context, bytes, count in
                guard let transfer = transferBehind(context) else { return 0 }
                transfer.confined.isConnected = true
                transfer.loop.touchIdle(transfer)
                return transfer.isAllowed(UnsafeBufferPointer(start: bytes, count: Int(count))) ? 1 : 0
            },
            head: { context, head in
                guard let transfer = transferBehind(context), let head = head?.pointee else { return 0 }
                return transfer.loop.take(head, for: transfer) ? 1 : 0
            },
            body: { context, bytes, count in
                guard let transfer = transferBehind(context) else { return 0 }
                return transfer.loop.take(UnsafeBufferPointer(start: bytes, count: count), for: transfer) ? 1 : 0
            },
            done: { context, result, message in
                guard let transfer = transferBehind(context) else { return }
                let text = message.map { String(cString: $0) } ?? ""
                transfer.loop.finish(transfer, result: result, message: text)
            })
    }

    private func take(_ head: ccurl_head, for transfer: CurlTransfer) -> Bool {
        touchIdle(transfer)
        if head.version >= 20 { transfer.confined.origin?.isMultiplexed = true }
        let lines = Array(UnsafeBufferPointer(start: head.lines, count: head.count))
        let raw = CurlTransfer.RawHead(
            status: Int(head.status), version: Int(head.version), lines: lines,
            remoteAddress: String(cString: head.remote_address))
        transfer.confined.expected = head.length < 0 ? nil : Int(clamping: head.length)
        transfer.state.withLock { $0.head = raw }
        touch(transfer)
        return true
    }

    /// Receives a part of the body.
    ///
    /// libcurl reads as long as there is data. The transfer is paused here if enough data waits for the reader, or if
    /// other transfers should be served.
    private func take(_ bytes: UnsafeBufferPointer<UInt8>, for transfer: CurlTransfer) -> Bool {
        transfer.confined.lastActivity = ccurl_now()
        transfer.confined.receivedInIteration += bytes.count
        let isLongIteration = transfer.confined.receivedInIteration >= Self.iterationLimit
        let (failure, isFull, isPaused) = transfer.state.withLock { state -> (NetworkError?, Bool, Bool) in
            guard state.end == nil else { return (.cancelled(url: transfer.request.displayURL), false, false) }
            state.received += bytes.count
            if state.received > state.limit {
                let limit = ByteCount(transfer.request.maximumBodySize)
                return (.bodyTooLarge(url: transfer.request.displayURL, limit: limit), false, false)
            }
            transfer.append(bytes, to: &state)
            if let limit = state.collectLimit, state.pending.count <= limit { return (nil, false, false) }
            let wasPaused = state.isPaused
            if state.pending.count >= transfer.highWater { state.isPaused = true }
            return (nil, state.isPaused && !wasPaused, wasPaused)
        }
        touch(transfer)
        transfer.confined.failure = failure
        guard failure == nil else { return false }
        // libcurl may still deliver data that it read before the pause.
        if isFull || isLongIteration && !isPaused, let started = transfer.confined.handle {
            transfer.confined.isBreathing = !isFull
            _ = ccurl_pause(started, 1)
        }
        return true
    }

    private func finish(_ transfer: CurlTransfer, result: Int32, message: String) {
        end(transfer, transfer.outcome(result, message, now: now))
        release(transfer)
    }
}

/// The transfers of one origin: as many run as there may be connections, and the others wait in order of priority.
/// Belongs to the loop's thread.
final class CurlOrigin {
    let name: String
    var active = 0
    /// Whether the origin supports several requests over one connection.
    var isMultiplexed = false
    private var lines: [Deque<CurlTransfer>] = Array(repeating: [], count: RequestPriority.allCases.count)
    private(set) var waiting = 0

    init(_ name: String) { self.name = name }

    var isIdle: Bool { active == 0 && waiting == 0 }

    func add(_ transfer: CurlTransfer) {
        lines[transfer.request.priority.rawValue].append(transfer)
        waiting += 1
    }

    /// Removes the next transfer from the queue. The caller skips cancelled ones.
    func next() -> CurlTransfer? {
        guard waiting > 0, let index = lines.lastIndex(where: { !$0.isEmpty }) else { return nil }
        waiting -= 1
        return lines[index].removeFirst()
    }

    /// Removes a cancelled transfer from the queue.
    func remove(_ transfer: CurlTransfer) {
        let line = transfer.request.priority.rawValue
        guard let index = lines[line].firstIndex(where: { $0 === transfer }) else { return }
        lines[line].remove(at: index)
        waiting -= 1
    }
}
#endif
