import Dispatch
import VitrineCore

/// A place in the queue for a worker: waits for its turn, or until it is cancelled.
final class WorkerTicket: Sendable {
    /// What a waiting caller is given.
    enum Turn: Sendable {
        /// An idle worker.
        case worker(WorkerProcess)
        /// The right to start one.
        case vacancy
        case cancelled
    }

    private let turn = Locked<Turn?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    /// Ends the wait. False when it has ended already: the offer must go to somebody else.
    func resolve(_ offer: Turn) -> Bool {
        let isFirst = turn.withLock { turn in
            guard turn == nil else { return false }
            turn = offer
            return true
        }
        if isFirst { semaphore.signal() }
        return isFirst
    }

    /// Blocks until ``resolve(_:)``.
    func wait() -> Turn {
        semaphore.wait()
        return turn.withLock { $0 ?? .cancelled }
    }
}
