/// How downloads come on: each status that is new when the reader is ready for it. Who begins late sees first how
/// things stand, also the end of what has ended.
///
/// ```swift
/// for await status in download.updates { bar.value = status.fraction ?? 0 }
/// ```
///
/// While a download runs there are at most ten a second of it. The updates of one download end with its end, and when
/// it is removed: after its completion if it had completed, whoever removed it. Those of all go on. Following them
/// keeps the downloads going.
public struct DownloadUpdates: AsyncSequence, Sendable {
    public typealias Element = DownloadStatus
    public typealias Failure = Never

    let lease: BackendLease
    let id: String?

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let lease: BackendLease
        fileprivate let id: String?
        private var version = 0
        private var isAtEnd = false

        fileprivate init(lease: BackendLease, id: String?) {
            self.lease = lease
            self.id = id
        }

        /// The next status; nil after the end, after the download was removed, and when the task is cancelled.
        public mutating func next() async -> DownloadStatus? {
            while !isAtEnd, let news = await lease.backend.board.next(after: version, of: id) {
                version = news.version
                isAtEnd = id != nil && news.status?.state.isOver != false
                // Others who waited for it may have removed it before this one looked.
                if let status = news.status ?? (id == nil ? nil : news.removedCompletion) { return status }
            }
            return nil
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(lease: lease, id: id) }
}
