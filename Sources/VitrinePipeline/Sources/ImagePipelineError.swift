import VitrineImaging

/// Why there is no thumbnail. Each case names its source: a path, an address, or the name it was given.
public enum ImagePipelineError: Error, Sendable {
    /// The source cannot be had: absent, not permitted, a read error, a closure that threw. `reason` says which.
    case unreadable(source: String, reason: String)
    /// The content cannot be read by this kind of source, for example an unknown codec. `reason` says why.
    case unsupported(source: String, reason: String)
    /// Its bytes break the rules of their format, or end early.
    case damaged(source: String, reason: String)
    /// It asks for more than `ImageLimits` allow.
    case limitExceeded(source: String, limit: ImageLimits.Kind, actual: Int, allowed: Int)
    /// It opens with a password only, and none was given.
    case encrypted(source: String)
    /// It does not open with the password that was given.
    case wrongPassword(source: String)
    /// It has no such page. Pages count from 1 to `count`.
    case noSuchPage(source: String, page: Int, count: Int)
    /// It has no moving pictures.
    case noVideo(source: String)
    /// It ends before the second asked for. Both in seconds.
    case beyondEnd(source: String, second: Double, duration: Double)
    /// It took longer than its deadline.
    case timedOut(source: String)
    /// The work was cancelled. Asynchronous calls throw `CancellationError` in its place.
    case cancelled(source: String)
    /// So many calls of sources never came back that no further one is made until one does.
    case tooManyAbandonedThreads(source: String, count: Int)
    /// A helper program is not installed. `remedy` says how to get it.
    case toolMissing(source: String, name: String, remedy: String)
    /// Anything else: a source's own error, a request that cannot be met, a helper that died.
    case underlying(source: String, error: any Error)
}
