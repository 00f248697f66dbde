import Foundation

/// A mount namespace of a child's own (unshare(1)): what is mounted there is seen by nobody else and gone with it.
package enum Namespace {
    /// Whether this system lets us have one: root may, and others where user namespaces are allowed.
    package static let isAvailable = (try? run("mount -t tmpfs tmpfs /mnt")) == 0

    package static let isRoot = getuid() == 0

    /// The words before a command that run it after `script`, whose `$0` is `directory`.
    package static func command(_ script: String, _ directory: String) -> [String] {
        ["unshare"] + options + ["sh", "-c", "(\(script)) >&2 && exec \"$@\"", directory]
    }

    private static let options = isRoot ? ["--mount"] : ["--map-root-user", "--mount"]

    private static func run(_ script: String) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command(script, "/") + ["true"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}
