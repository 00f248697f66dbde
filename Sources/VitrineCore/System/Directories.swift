#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Where a user's files of each kind belong (R44).
///
/// On Linux these are the directories of the XDG base directory specification 0.8. A variable of the environment
/// counts only if it is an absolute path, as the specification demands; otherwise its default does. On Apple
/// platforms they are those under `~/Library`.
///
/// ```swift
/// let path = try Directories.current.cacheDirectory(for: "thumbnails")  // ~/.cache/thumbnails
/// ```
public struct Directories: Sendable, Equatable {
    /// The user's home.
    public let home: String
    /// What can be made again: `$XDG_CACHE_HOME`, `~/.cache`; `~/Library/Caches`.
    public let caches: String
    /// What the user would miss: `$XDG_DATA_HOME`, `~/.local/share`; `~/Library/Application Support`.
    public let data: String
    /// Settings: `$XDG_CONFIG_HOME`, `~/.config`; `~/Library/Preferences`.
    public let configuration: String
    /// What should survive a restart but is not worth moving to another machine: `$XDG_STATE_HOME`,
    /// `~/.local/state`; `~/Library/Application Support`.
    public let state: String
    /// Sockets and locks of this login: `$XDG_RUNTIME_DIR`; nil where there is none. See ``runtimeDirectory(for:)``.
    public let runtime: String?
    /// Files of this run: `$TMPDIR`, `/tmp`.
    public let temporary: String
    /// The user's own documents: `XDG_DOCUMENTS_DIR` of `user-dirs.dirs`; `~/Documents`.
    public let documents: String

    /// Those of this process, read from its environment at each call.
    public static var current: Directories {
        Directories { name in getenv(name).map { PathText.text(cString: $0) } }
    }

    /// Those of a given environment.
    public init(environment: [String: String]) {
        self.init { environment[$0] }
    }

    /// All below one directory: for tests, and for programs that keep everything together.
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

    /// The home in the user database, for processes without `HOME`.
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
