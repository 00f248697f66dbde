import VitrineCore

extension CacheError {
    /// An error of any kind as one of a cache: itself, a cancellation, or one of the source.
    package init(_ error: any Error, key: CacheKey) {
        switch error {
        case let error as CacheError: self = error
        case is CancellationError: self = .cancelled(key: key)
        case let error as FileError: self = .file(error)
        default: self = .source(key: key, underlying: error)
        }
    }

    /// Whether nobody waits any more.
    package var isCancellation: Bool { if case .cancelled = self { true } else { false } }
}
