/// The exit status of a worker.
package enum WorkerExit: Int32, Sendable {
    /// Its client has closed the socket, or it had nothing to do.
    case idle = 0
    /// Not started by a pool.
    case misused = 64
    /// Shared memory could not be mapped.
    case noMemory = 71
    /// The sandbox could not be entered.
    case notSandboxed = 77
}
