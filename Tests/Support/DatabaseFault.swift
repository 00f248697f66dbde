#if os(Linux)
internal import CVitrineSQLite
import Glibc
import Synchronization
internal import VitrineCore

/// Lets SQLite's calls of the system fail for some files, from its creation to its end.
///
/// SQLite lets its calls be replaced for tests (https://www.sqlite.org/c3ref/vfs.html, xSetSystemCall). The files of
/// other tests are not affected.
package final class DatabaseFault: Sendable {
    /// The calls that fail.
    package enum Call: Sendable {
        /// Opening a file, for reading and writing.
        case openForWriting
        /// Reading a part of a file.
        case read
    }

    fileprivate struct Rule: Sendable {
        let call: Call
        let path: String
        let isExact: Bool
        let code: Int32
        /// The number of failures left.
        var left: Int
    }

    fileprivate static let rules = Locked<[Int: Rule]>([:])
    private static let count = Atomic(0)
    private let number: Int

    /// Begins to fail.
    ///
    /// - Parameters:
    ///   - call: The kind of call.
    ///   - path: The file, or the directory of the files if it ends in a slash.
    ///   - code: The error, for example `EIO`.
    ///   - times: The number of failures. Default: all until the end.
    package init(_ call: Call, at path: String, code: Int32, times: Int = .max) {
        _ = Replacements.installed
        number = Self.count.add(1, ordering: .relaxed).newValue
        let isDirectory = path.hasSuffix("/")
        let directory = Self.resolved(isDirectory ? String(path.dropLast()) : FilePath.parent(of: path))
        let resolved = directory + "/" + (isDirectory ? "" : FilePath.name(of: path))
        Self.rules.withLock {
            $0[number] = Rule(call: call, path: resolved, isExact: !isDirectory, code: code, left: times)
        }
    }

    deinit { end() }

    /// Ends the failures.
    package func end() { Self.rules.withLock { $0[number] = nil } }

    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    /// The error that a call returns, if it fails.
    fileprivate static func failure(_ call: Call, _ path: @autoclosure () -> String?) -> Int32? {
        rules.withLock { rules in
            guard rules.values.contains(where: { $0.call == call && $0.left > 0 }), let path = path() else {
                return nil
            }
            for (number, rule) in rules where rule.call == call && rule.left > 0 {
                guard rule.isExact ? path == rule.path : path.hasPrefix(rule.path) else { continue }
                rules[number]?.left -= 1
                return rule.code
            }
            return nil
        }
    }
}

/// The functions that SQLite calls instead of those of the system.
private enum Replacements {
    typealias Open = @convention(c) (UnsafePointer<CChar>?, Int32, Int32) -> Int32
    typealias Read = @convention(c) (Int32, UnsafeMutableRawPointer?, Int) -> Int
    typealias ReadAt = @convention(c) (Int32, UnsafeMutableRawPointer?, Int, Int) -> Int

    static var system: UnsafeMutablePointer<sqlite3_vfs>? { sqlite3_vfs_find("unix") }
    static let open = original("open").map { unsafeBitCast($0, to: Open.self) }
    static let read = original("read").map { unsafeBitCast($0, to: Read.self) }
    static let readAt = original("pread").map { unsafeBitCast($0, to: ReadAt.self) }
    static let readAt64 = original("pread64").map { unsafeBitCast($0, to: ReadAt.self) }

    /// Replaces the calls, once in the process.
    static let installed: Void = {
        sqlite3_initialize()
        // The originals are asked for before they are replaced.
        _ = (open, read, readAt, readAt64)
        let newOpen: Open = { path, flags, mode in
            let writes = flags & O_ACCMODE == O_RDWR
            if writes, let code = DatabaseFault.failure(.openForWriting, path.map { String(cString: $0) }) {
                errno = code
                return -1
            }
            return Replacements.open?(path, flags, mode) ?? -1
        }
        let newRead: Read = { file, target, count in
            if let code = DatabaseFault.failure(.read, Replacements.path(of: file)) {
                errno = code
                return -1
            }
            return Replacements.read?(file, target, count) ?? -1
        }
        let newReadAt: ReadAt = { file, target, count, offset in
            if let code = DatabaseFault.failure(.read, Replacements.path(of: file)) {
                errno = code
                return -1
            }
            return (Replacements.readAt64 ?? Replacements.readAt)?(file, target, count, offset) ?? -1
        }
        replace("open", unsafeBitCast(newOpen, to: sqlite3_syscall_ptr.self))
        if read != nil { replace("read", unsafeBitCast(newRead, to: sqlite3_syscall_ptr.self)) }
        if readAt != nil { replace("pread", unsafeBitCast(newReadAt, to: sqlite3_syscall_ptr.self)) }
        if readAt64 != nil { replace("pread64", unsafeBitCast(newReadAt, to: sqlite3_syscall_ptr.self)) }
    }()

    private static func original(_ name: String) -> sqlite3_syscall_ptr? {
        system?.pointee.xGetSystemCall(system, name)
    }

    private static func replace(_ name: String, _ function: sqlite3_syscall_ptr) {
        _ = system?.pointee.xSetSystemCall(system, name, function)
    }

    static func path(of file: Int32) -> String? {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/fd/\(file)", &bytes, bytes.count - 1)
        guard count > 0 else { return nil }
        return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
#endif
