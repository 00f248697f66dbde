import Foundation
import TestSupport
import Testing
import VitrineCore

struct DirectoriesTests {
    #if !canImport(Darwin)
    @Test func defaultsFollowTheSpecification() {
        let directories = Directories(environment: ["HOME": "/home/ada"])
        #expect(directories.caches == "/home/ada/.cache")
        #expect(directories.data == "/home/ada/.local/share")
        #expect(directories.configuration == "/home/ada/.config")
        #expect(directories.state == "/home/ada/.local/state")
        #expect(directories.documents == "/home/ada/Documents")
        #expect(directories.runtime == nil)
        #expect(directories.temporary == "/tmp")
    }

    @Test func onlyAbsoluteVariablesCount() {
        let directories = Directories(environment: [
            "HOME": "/home/ada", "XDG_CACHE_HOME": "/c", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "",
            "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "run", "TMPDIR": "/t",
        ])
        #expect(directories.caches == "/c")
        #expect(directories.data == "/home/ada/.local/share")
        #expect(directories.configuration == "/home/ada/.config")
        #expect(directories.state == "/s")
        #expect(directories.runtime == nil)
        #expect(directories.temporary == "/t")
        #expect(Directories(environment: ["HOME": "relative"]).home.hasPrefix("/"))
    }

    @Test func documentsComeFromTheDesktopsFile() throws {
        let directory = try TemporaryDirectory()
        func documents(_ text: String) throws -> String {
            try directory.write(text, to: "user-dirs.dirs")
            return Directories(environment: ["HOME": "/h", "XDG_CONFIG_HOME": directory.path]).documents
        }
        #expect(try documents("# c\nXDG_MUSIC_DIR=\"/m\"\nXDG_DOCUMENTS_DIR=\"$HOME/Dokumente\"\n") == "/h/Dokumente")
        #expect(try documents("XDG_DOCUMENTS_DIR=\"/a \\\"b\\\"\"") == "/a \"b\"")
        #expect(try documents("XDG_DOCUMENTS_DIR=\"$HOME/\"") == "/h")
        #expect(try documents("XDG_DOCUMENTS_DIR=\"relative\"") == "/h/Documents")
        #expect(try documents("XDG_DOCUMENTS_DIR=\"/open") == "/h/Documents")
        #expect(try documents("XDG_DOCUMENTS_DIR=/a") == "/h/Documents")
    }
    #endif

    @Test func cacheDirectoriesAreMadeTaggedAndHealed() throws {
        let directory = try TemporaryDirectory()
        let directories = Directories(root: directory.file("root"))
        let path = try directories.cacheDirectory(for: "thumb/nails")
        #expect(path == directory.file("root/cache/thumb%2Fnails"))
        #expect(directory.read("root/cache/thumb%2Fnails/CACHEDIR.TAG")?
            .hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n") == true)
        #expect(try directories.cacheDirectory(for: "thumb/nails") == path)
        try FileManager.default.removeItem(atPath: directory.file("root"))
        #expect(try directories.cacheDirectory(for: "thumb/nails") == path)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
    }

    @Test func namesCannotLeaveTheDirectory() throws {
        let directory = try TemporaryDirectory()
        let directories = Directories(root: directory.path)
        #expect(try directories.dataDirectory(for: "..") == directory.file("data/%2E%2E"))
    }

    @Test func fileInTheWayIsAnError() throws {
        let directory = try TemporaryDirectory()
        try directory.write("", to: "cache")
        #expect(throws: FileError.self) { try Directories(root: directory.path).cacheDirectory(for: "a") }
    }

    @Test func runtimeDirectoriesMustBePrivate() throws {
        let directory = try TemporaryDirectory()
        let directories = Directories(environment: ["HOME": directory.path, "XDG_RUNTIME_DIR": directory.file("run")])
        let path = try directories.runtimeDirectory(for: "agent")
        #expect(path == directory.file("run/agent"))
        chmod(path, 0o755)
        #expect(throws: FileError.untrusted(path: path, reason: "other users can enter it")) {
            try directories.runtimeDirectory(for: "agent")
        }
    }

    /// Anyone can create the directory among the temporary files before this user does.
    @Test func aForeignTemporaryDirectoryIsReplacedByOneOfTheUser() throws {
        let directory = try TemporaryDirectory()
        let variables = [
            "HOME": directory.path, "TMPDIR": directory.file("tmp"), "XDG_STATE_HOME": directory.file("state"),
        ]
        let directories = Directories(environment: variables)
        let usual = directory.file("tmp/vitrine-\(geteuid())")
        #expect(try directories.runtimeDirectory(for: "agent") == usual + "/agent")
        let own = directory.file("state/vitrine-run/agent")
        chmod(usual, 0o755)
        #expect(try directories.runtimeDirectory(for: "agent") == own)
        try FileManager.default.removeItem(atPath: usual)
        symlink(directory.path, usual)
        #expect(try directories.runtimeDirectory(for: "agent") == own)
        unlink(usual)
        try directory.write("", to: "tmp/vitrine-\(geteuid())")
        #expect(try directories.runtimeDirectory(for: "agent") == own)
        var status = stat()
        #expect(stat(own, &status) == 0 && status.st_mode & 0o777 == 0o700)
    }

    /// As root with the variable of the user who called `sudo`.
    @Test(.enabled(if: geteuid() == 0, "only root can make a directory of another user"))
    func aRuntimeDirectoryOfAnotherUserIsRefused() throws {
        let directory = try TemporaryDirectory()
        let run = directory.file("run")
        try FileManager.default.createDirectory(atPath: run, withIntermediateDirectories: true)
        chown(run, 65_534, 65_534)
        let directories = Directories(environment: ["HOME": directory.path, "XDG_RUNTIME_DIR": run])
        #expect(throws: FileError.untrusted(path: run, reason: "it belongs to another user")) {
            try directories.runtimeDirectory(for: "agent")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: run).isEmpty)
    }
}
