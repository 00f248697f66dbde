#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The directories for each kind of a user's files.
///
/// On Linux these are the directories of the XDG base directory specification 0.8. An environment variable counts only
/// if it is an absolute path, as the specification demands. On Apple platforms they are the directories in `~/Library`.
///
/// ```swift
/// let store = FileStore(.caches, directories: Directories(root: "/srv/app"))
/// ```
public struct Directories: Sendable, Equatable {
    /// The home directory of the user.
    package let home: String
    /// Files that can be made again: `$XDG_CACHE_HOME`, `~/.cache`; `~/Library/Caches`.
    package let caches: String
    /// Files of lasting value: `$XDG_DATA_HOME`, `~/.local/share`; `~/Library/Application Support`.
    package let data: String
    /// Settings: `$XDG_CONFIG_HOME`, `~/.config`; `~/Library/Preferences`.
    package let configuration: String
    /// Files that should survive a restart but need not move to another machine: `$XDG_STATE_HOME`, `~/.local/state`;
    /// `~/Library/Application Support`.
    package let state: String
    /// Sockets and locks of this login: `$XDG_RUNTIME_DIR`, or nil without it. See ``runtimeDirectory(for:)``.
    package let runtime: String?
    /// Files of this run: `$TMPDIR`, `/tmp`.
    package let temporary: String
    /// The user's own documents: `XDG_DOCUMENTS_DIR` of `user-dirs.dirs`; `~/Documents`.
    package let documents: String

    /// The directories of this process, read from its environment at each access.
    public static var current: Directories {
        Directories { name in getenv(name).map { PathText.text(cString: $0) } }
    }

    /// Creates the directories of a given environment.
    package init(environment: [String: String]) {
        self.init { environment[$0] }
    }

    /// Creates directories below one root, for tests and for programs that keep everything together.
    ///
    /// - Parameter root: The path of the root.
    public init(root: String) {
        home = root
        caches = FilePath.join(root, "cache")
        data = FilePath.join(root, "data")
        configuration = FilePath.join(root, "config")
        state = FilePath.join(root, "state")
        runtime = FilePath.join(root, "run")
        temporary = FilePath.join(root, "tmp")
        documents = FilePath.join(root, "documents")
    }

    private init(variable: (String) -> String?) {
        func absolute(_ name: String) -> String? {
            variable(name).flatMap { FilePath.isAbsolute($0) ? $0 : nil }
        }
        let home = absolute("HOME") ?? Self.homeOfUser() ?? "/"
        self.home = home
        temporary = absolute("TMPDIR") ?? "/tmp"
        runtime = absolute("XDG_RUNTIME_DIR")
        #if canImport(Darwin)
        let library = FilePath.join(home, "Library")
        caches = FilePath.join(library, "Caches")
        data = FilePath.join(library, "Application Support")
        configuration = FilePath.join(library, "Preferences")
        state = data
        documents = FilePath.join(home, "Documents")
        #else
        caches = absolute("XDG_CACHE_HOME") ?? FilePath.join(home, ".cache")
        data = absolute("XDG_DATA_HOME") ?? FilePath.join(home, ".local/share")
        configuration = absolute("XDG_CONFIG_HOME") ?? FilePath.join(home, ".config")
        state = absolute("XDG_STATE_HOME") ?? FilePath.join(home, ".local/state")
        let file = try? FileContents.read(FilePath.join(configuration, "user-dirs.dirs"), limit: 1 << 20)
        documents =
            UserDirectories.path(of: "XDG_DOCUMENTS_DIR", in: file ?? [], home: home)
            ?? FilePath.join(home, "Documents")
        #endif
    }

    /// Returns the home in the user database, for processes without `HOME`.
    private static func homeOfUser() -> String? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var home: String?
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
            guard let base = buffer.baseAddress,
                getpwuid_r(getuid(), &entry, base, buffer.count, &found) == 0, found != nil
            else { return }
            home = entry.pw_dir.map { PathText.text(cString: $0) }
        }
        return home.flatMap { FilePath.isAbsolute($0) ? $0 : nil }
    }
}

extension Directories {
    /// The first line of `CACHEDIR.TAG` (Cache Directory Tagging Specification 0.6). Backup programs skip tagged
    /// directories.
    private static let cacheTagSignature = "Signature: 8a477f597d28d172789f06886806bc55"

    /// Returns the path of a cache directory with a name. Blocks.
    ///
    /// The directory is created if it is missing, and tagged with `CACHEDIR.TAG`, which excludes it from backups.
    ///
    /// - Parameter name: The name. ``FileName/escaped(_:)`` makes one path component of it.
    /// - Throws: ``FileError`` if the directory cannot be created.
    package func cacheDirectory(for name: String) throws(FileError) -> String {
        let path = FilePath.join(caches, FileName.escaped(name))
        try Directory.create(path)
        try Self.tagCacheDirectory(path)
        return path
    }

    /// Writes `CACHEDIR.TAG` into a directory, unless it exists. Blocks.
    package static func tagCacheDirectory(_ path: String) throws(FileError) {
        let tag = FilePath.join(path, "CACHEDIR.TAG")
        guard access(tag, F_OK) != 0 else { return }
        let text = """
            \(cacheTagSignature)
            # This directory holds a cache made by Vitrine. It can be deleted at any time.
            # About this file: https://bford.info/cachedir/

            """
        do throws(FileError) {
            try AtomicFile.write(Array(text.utf8), to: tag, replacing: false)
        } catch .alreadyExists {
            // Another process was faster.
        }
    }

    /// Returns the path of a directory for durable files with a name. Blocks.
    ///
    /// The directory is created if it is missing.
    ///
    /// - Parameter name: The name. ``FileName/escaped(_:)`` makes one path component of it.
    /// - Throws: ``FileError`` if the directory cannot be created.
    package func dataDirectory(for name: String) throws(FileError) -> String {
        let path = FilePath.join(data, FileName.escaped(name))
        try Directory.create(path, isDurable: true)
        return path
    }

    /// Returns the path of a directory for sockets and locks, which only this user can enter. Blocks.
    ///
    /// Without ``runtime`` it lies in `<temporary>/vitrine-<user id>`. Any user can create directories there, so an
    /// existing one is used only if it belongs to this user, is not a link, and is closed to others. Otherwise, the
    /// directory lies in `<state>/vitrine-run`.
    ///
    /// - Throws: ``FileError/untrusted(path:reason:)`` if ``runtime`` belongs to another user, or a directory in it or
    ///   in ``state`` is open to others.
    package func runtimeDirectory(for name: String) throws(FileError) -> String {
        let name = FileName.escaped(name)
        if let runtime {
            try Directory.create(runtime)
            try Self.checkOwner(runtime)
            return try Self.privateDirectory(FilePath.join(runtime, name))
        }
        do throws(FileError) {
            let parent = try Self.privateDirectory(FilePath.join(temporary, "vitrine-\(geteuid())"))
            return try Self.privateDirectory(FilePath.join(parent, name))
        } catch {
            // Whoever was first to create one of this name would otherwise decide whether this user can work.
            guard case .untrusted = error else { throw error }
            let parent = try Self.privateDirectory(FilePath.join(state, "vitrine-run"))
            return try Self.privateDirectory(FilePath.join(parent, name))
        }
    }

    /// Creates a directory for this user alone, or checks the one that exists.
    private static func privateDirectory(_ path: String) throws(FileError) -> String {
        // What is in the way may be a link or a file of somebody else.
        var status = stat()
        if lstat(path, &status) != 0 { try Directory.create(path) }
        try checkPrivate(path)
        return path
    }

    /// Throws unless a directory belongs to this user. One of another user holds that user's sockets, and root would be
    /// led to them by a variable that survives a change of the user.
    private static func checkOwner(_ path: String) throws(FileError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw FileError(operation: "stat", path: path, code: errno) }
        guard status.st_uid == geteuid() else { throw .untrusted(path: path, reason: "it belongs to another user") }
    }

    /// Throws unless the path is a directory of this user that is closed to all others.
    package static func checkPrivate(_ path: String) throws(FileError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw FileError(operation: "lstat", path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .untrusted(path: path, reason: "it is not a directory") }
        guard status.st_uid == geteuid() else { throw .untrusted(path: path, reason: "it belongs to another user") }
        guard status.st_mode & 0o077 == 0 else { throw .untrusted(path: path, reason: "other users can enter it") }
    }
}

/// Reads `user-dirs.dirs`, in which desktops record the directories of a user (user-dirs.dirs(5)).
package enum UserDirectories {
    /// Returns the directory of a name such as `XDG_DOCUMENTS_DIR`, or nil if the file has none.
    ///
    /// A value is `"$HOME/…"` or `"/…"` in double quotes, in which a backslash quotes the next character. Lines of any
    /// other form are skipped. Of several lines the last one counts.
    package static func path(of name: String, in file: [UInt8], home: String) -> String? {
        var found: String?
        for line in file.split(separator: UInt8(ascii: "\n")) {
            let text = line.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard text.starts(with: (name + "=\"").utf8) else { continue }
            if let value = unquoted(text.dropFirst(name.utf8.count + 2)) {
                found = expanded(value, home: home) ?? found
            }
        }
        return found
    }

    private static func unquoted(_ bytes: ArraySlice<UInt8>) -> String? {
        var value: [UInt8] = []
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "\""): return PathText.text(of: value)
            case UInt8(ascii: "\\"):
                guard let next = rest.next() else { return nil }
                value.append(next)
            default: value.append(byte)
            }
        }
        return nil
    }

    private static func expanded(_ value: String, home: String) -> String? {
        if value == "$HOME" || value == "$HOME/" { return home }
        if value.hasPrefix("$HOME/") { return FilePath.join(home, String(value.dropFirst(6))) }
        return FilePath.isAbsolute(value) ? value : nil
    }
}
