/// Where a thumbnail may be found and kept (R98): the union of what the requests for it say, as far as the service has
/// that level at all.
public struct ThumbnailCacheOptions: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// In memory.
    public static let memory = ThumbnailCacheOptions(rawValue: 1)
    /// On disk.
    public static let disk = ThumbnailCacheOptions(rawValue: 2)
    /// On both levels, the default.
    public static let all: ThumbnailCacheOptions = [.memory, .disk]
}
