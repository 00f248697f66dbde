/// When a worker that could go on is replaced by a fresh one.
package struct WorkerRecycling: Sendable, Hashable {
    /// Requests after which it is replaced, against slow leaks that ``maximumMemory`` does not see. Default 10,000: a
    /// start costs 70 ms of processor time, which is a tenth of what 500 small pictures cost, and a hundredth then.
    package var maximumServed = 10_000
    /// Bytes of private memory above which it is replaced. Default 300 MB. Looked at after every fourth request.
    package var maximumMemory = 300 << 20

    package init() {}
}
