import Foundation
import VitrineImaging

/// Process 1 of a container that reaps what it has started, and nobody's orphans.
enum InitProcess {
    /// Runs a program several times, one run after the other, and prints how many zombies there are after all.
    ///
    /// - Parameters:
    ///   - signal: Sent to the program when it has printed something; 0 lets it end by itself. A negative number is
    ///     sent when the program has started another one.
    static func run(count: Int, signal number: Int32, _ words: [String]) throws {
        let signal = abs(number)
        for _ in 0..<count {
            var pipe: [Int32] = [0, 0]
            guard Foundation.pipe(&pipe) == 0 else { throw POSIXError(.EMFILE) }
            _ = fcntl(pipe[0], F_SETFD, FD_CLOEXEC)
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            posix_spawn_file_actions_adddup2(&actions, pipe[1], 1)
            posix_spawn_file_actions_addclose(&actions, pipe[1])
            // Whatever the tests were started with: nobody's child ignores a signal here.
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            var (all, none) = (sigset_t(), sigset_t())
            sigfillset(&all)
            sigemptyset(&none)
            posix_spawnattr_setsigdefault(&attributes, &all)
            posix_spawnattr_setsigmask(&attributes, &none)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
            var strings: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
            defer { for string in strings { free(string) } }
            var child: pid_t = 0
            guard posix_spawnp(&child, words[0], &actions, &attributes, &strings, environ) == 0 else { throw POSIXError(.ENOENT) }
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
            close(pipe[1])
            var byte: UInt8 = 0
            if number < 0 {
                while try others().count < 2 { usleep(1_000) }
                kill(child, signal)
            }
            if number > 0, read(pipe[0], &byte, 1) == 1 { kill(child, signal) }
            var status: Int32 = 0
            while waitpid(child, &status, 0) < 0, errno == EINTR {}
            close(pipe[0])
            guard status & 0x7F == signal, status >> 8 & 0xFF == 0 else {
                print("status \(status)")
                return
            }
        }
        // What is still ending becomes a zombie, or another process's child; nothing else is left to run here.
        while try others().contains(where: { $0 != "Z" }) { usleep(1_000) }
        print("zombies \(try others().count)")
    }

    /// The states of all processes but this one (proc(5)).
    private static func others() throws -> [Character] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { name in
            guard let number = Int32(name), number != getpid(),
                let text = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8)
            else { return nil }
            return text.split(separator: ")").last?.first { $0 != " " }
        }
    }
}
