import Foundation

/// What a test waited for and what never came.
package struct NeverHappened: Error, CustomStringConvertible {
    package let description: String
}

/// Waits on the calling thread for something that nothing tells of, and looks a thousand times a second.
///
/// - Throws: ``NeverHappened`` after 600,000 looks: far longer than the busiest machine takes, and better than a test
///   run without an end.
package func waitUntil(_ what: String, _ isSo: () throws -> Bool) throws {
    for _ in 0..<600_000 {
        if try isSo() { return }
        usleep(1000)
    }
    throw NeverHappened(description: "never: \(what)")
}

/// Deletes a directory that programs or threads may be writing to just then, until it is gone.
package func deleteUntilGone(_ path: String) throws {
    try waitUntil("\(path) is gone") {
        try? FileManager.default.removeItem(atPath: path)
        return !FileManager.default.fileExists(atPath: path)
    }
}

#if os(Linux)
/// Halts a process, and returns when none of its threads runs. `kill` wakes one thread, which halts the others later.
package func halt(_ process: pid_t) throws {
    kill(process, SIGSTOP)
    try waitUntil("process \(process) has halted") {
        let directory = "/proc/\(process)/task"
        return try FileManager.default.contentsOfDirectory(atPath: directory).allSatisfy { thread in
            // The state follows the name, which is in parentheses and may contain any character. A thread may end.
            guard let stat = try? String(contentsOfFile: "\(directory)/\(thread)/stat", encoding: .utf8),
                let name = stat.lastIndex(of: ")")
            else { return true }
            return stat[name...].dropFirst(2).first == "T"
        }
    }
}
#endif
