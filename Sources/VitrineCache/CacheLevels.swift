/// Which levels of a cache a request may read and write (R21).
///
/// ```swift
/// let fresh = try await cache.value(forKey: key, levels: .all.subtracting(.readMemory))
/// ```
///
/// How far a lookup goes at all is its ``CacheLevel``; levels say which stops on the way are skipped.
public struct CacheLevels: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Values may come from memory.
    public static let readMemory = CacheLevels(rawValue: 1)
    /// Values are kept in memory.
    public static let writeMemory = CacheLevels(rawValue: 2)
    /// Values may come from disk.
    public static let readDisk = CacheLevels(rawValue: 4)
    /// Values are kept on disk.
    public static let writeDisk = CacheLevels(rawValue: 8)

    /// Memory, for reading and writing.
    public static let memory: CacheLevels = [.readMemory, .writeMemory]
    /// Disk, for reading and writing.
    public static let disk: CacheLevels = [.readDisk, .writeDisk]
    /// Everything. The default.
    public static let all: CacheLevels = [.memory, .disk]
    /// Reads from everywhere and leaves both levels as they are.
    public static let readOnly: CacheLevels = [.readMemory, .readDisk]
    /// Goes to the source and keeps what comes from there.
    public static let writeOnly: CacheLevels = [.writeMemory, .writeDisk]
    /// Neither reads nor keeps anything: always the source.
    public static let none: CacheLevels = []
}
