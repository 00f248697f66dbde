/// How downloads come on: each status that is new when the reader is ready for it. Who begins late sees first how things
/// stand, also the end of what has ended.
///
/// ```swift
/// for await status in download.updates { bar.value = status.fraction ?? 0 }
/// ```
///
/// While a download runs there are at most ten a second of it. The updates of one download end with its end, those of
/// all go on.
public struct DownloadUpdates: AsyncSequence, Sendable {
    public typealias Element = DownloadStatus
    public typealias Failure = Never

    let board: StatusBoard
    let id: String?

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let board: StatusBoard
        fileprivate let id: String?
        private var version = 0
        private var isAtEnd = false

        fileprivate init(board: StatusBoard, id: String?) {
            self.board = board
            self.id = id
        }

        /// The next status; nil after the end, after the download was removed, and when the task is cancelled.
        public mutating func next() async -> DownloadStatus? {
            guard !isAtEnd, let (status, version) = await board.next(after: version, of: id) else { return nil }
            self.version = version
            isAtEnd = id != nil && status.state.isOver
            return status
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(board: board, id: id) }
}
