import Foundation

/// A mount namespace of a child's own (unshare(1)): what is mounted there is seen by nobody else and gone with it.
package enum Namespace {
    /// Whether this system lets us have one: root may, and others where user namespaces are allowed.
    package static let isAvailable = succeeds(command("mount -t tmpfs tmpfs /mnt", "/") + ["true"])

    package static let isRoot = getuid() == 0

    /// The words before a command that run it after `script`, whose `$0` is `directory`.
    package static func command(_ script: String, _ directory: String) -> [String] {
        ["unshare"] + options + ["sh", "-c", "(\(script)) >&2 && exec \"$@\"", directory]
    }

    /// The words before a command that run it as nobody (setpriv(1)), as root may.
    package static let asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    /// Whether nobody may run a program of this package.
    package static func letsNobodyRun(_ executable: String) -> Bool {
        isRoot && succeeds(asNobody + ["test", "-x", ChildProcess.path(of: executable)])
    }

    /// The words before a command that run it as process 1 of a process namespace of its own.
    package static let asProcessOne =
        ["unshare"] + (isRoot ? [] : ["--map-root-user"]) + ["--pid", "--fork", "--mount-proc", "--kill-child"]

    /// Whether this system lets us have one of processes.
    package static let hasProcesses = succeeds(asProcessOne + ["true"])

    private static let options = isRoot ? ["--mount"] : ["--map-root-user", "--mount"]

    private static func succeeds(_ words: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
