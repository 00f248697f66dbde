/// When a worker that could go on is replaced by a fresh one.
package struct WorkerRecycling: Sendable, Hashable {
    /// Requests after which it is replaced, against slow leaks. Default 500.
    package var maximumServed = 500
    /// Bytes of private memory above which it is replaced. Default 300 MB. Looked at after every fourth request.
    package var maximumMemory = 300 << 20

    package init() {}
}
