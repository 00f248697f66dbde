import Dispatch
import VitrineCore

/// A place in the queue for a worker: waits for its turn, or until it is cancelled.
final class WorkerTicket: Sendable {
    /// What a waiting caller is given.
    enum QueueSlot: Sendable {
        /// An idle worker.
        case worker(WorkerProcess)
        /// The right to start one, with the memory for it.
        case vacancy(HelperMemory.Reservation)
        case cancelled
    }

    /// What a worker for the caller may hold.
    let share: HelperMemory.Share
    private let turn = Locked<QueueSlot?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    init(share: HelperMemory.Share) { self.share = share }

    /// Ends the wait. False when it has ended already: the offer must go to somebody else.
    func resolve(_ offer: QueueSlot) -> Bool {
        let isFirst = turn.withLock { turn in
            guard turn == nil else { return false }
            turn = offer
            return true
        }
        if isFirst { semaphore.signal() }
        return isFirst
    }

    /// Blocks until ``resolve(_:)``.
    func wait() -> QueueSlot {
        semaphore.wait()
        return turn.withLock { $0 ?? .cancelled }
    }
}
