/// Statistics of an ``ImagePipeline`` since its creation.
public struct PipelineStatistics: Sendable, Hashable {
    /// Requests served by a source; several may have shared one call.
    public var made = 0
    /// Requests served from memory.
    public var fromMemory = 0
    /// Requests served from disk.
    public var fromDisk = 0
    /// Requests served by reducing a larger thumbnail of the same source.
    public var fromDerived = 0
    /// Requests served by thumbnails that programs share.
    public var fromShared = 0
    /// Requests that were cancelled.
    public var cancelled = 0
    /// Requests that ended with an error.
    public var failed = 0
    /// Loads of remote sources' content that were begun.
    public var loads = 0
    /// Calls of sources that were begun.
    public var calls = 0
    /// Results that came after their last request had gone, and were thrown away.
    public var discarded = 0

    public init() {}
}

/// Where a thumbnail came from.
enum Origin: Sendable {
    case source
    case memory
    case disk
    case sibling
    case shared
}

extension PipelineStatistics {
    mutating func count(_ origin: Origin) {
        switch origin {
        case .source: made += 1
        case .memory: fromMemory += 1
        case .disk: fromDisk += 1
        case .sibling: fromDerived += 1
        case .shared: fromShared += 1
        }
    }

    mutating func count(_ error: ImagePipelineError) {
        if error.isCancellation { cancelled += 1 } else { failed += 1 }
    }
}
