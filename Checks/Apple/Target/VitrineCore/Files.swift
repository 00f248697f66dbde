// The files and logging of this module that the downloads use.
public enum FileError: Error {
    case notFound(path: String)
}

package enum FilePath {
    package static func join(_ directory: String, _ name: String) -> String { "" }
    package static func exists(_ path: String) -> Bool { false }
}

public enum FileName {
    public static func name(for key: String) -> String { "" }
}

package enum Directory {
    package static func create(_ path: String, mode: UInt32 = 0o700) throws(FileError) {}
    package static func names(ofFilesIn path: String) throws(FileError) -> [String] { [] }
}

public enum AtomicFile {
    public static func write(_ bytes: [UInt8], to path: String, permissions: UInt32? = nil) throws(FileError) {}
}

package enum FileRename {
    package static func move(_ path: String, to target: String, replaces: Bool) throws(FileError) {}
}

package enum FileContents {
    package static func read(_ path: String, limit: Int = .max) throws(FileError) -> [UInt8] { [] }
}

public struct ByteCount: Hashable, Sendable {
    public static let zero = ByteCount(0)
    public init(_ bytes: Int) {}
}

/// Of swift-log.
public struct Logger: Sendable {
    public struct MetadataValue: ExpressibleByStringInterpolation, Sendable {
        public init(stringLiteral value: String) {}
    }
    public func warning(_ message: String, metadata: [String: MetadataValue]? = nil) {}
    public func error(_ message: String, metadata: [String: MetadataValue]? = nil) {}
}

package enum Log {
    package static func logger(_ part: String) -> Logger { fatalError("a declaration") }
}
