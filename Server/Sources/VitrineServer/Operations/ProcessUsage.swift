import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Processor time, memory and descriptors of this process.
struct ProcessUsage {
    var cpuSeconds: Double
    var residentBytes: Int?
    var openFiles: Int?

    static func now() -> ProcessUsage {
        var usage = rusage()
        #if canImport(Glibc)
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #else
        getrusage(RUSAGE_SELF, &usage)
        #endif
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return ProcessUsage(
            cpuSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            residentBytes: ProcessFile.residentBytes(of: "self"),
            openFiles: (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.count)
    }
}

/// The processes that this one has started, and those that they have.
struct ChildProcesses {
    var count = 0
    var residentBytes = 0

    static func now() -> ChildProcesses {
        var result = ChildProcesses()
        result.add(childrenOf: "self", depth: 0)
        return result
    }

    private mutating func add(childrenOf process: String, depth: Int) {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        for task in tasks {
            for child in ProcessFile.words(of: "/proc/\(process)/task/\(task)/children") {
                count += 1
                residentBytes += ProcessFile.residentBytes(of: child) ?? 0
                // Helpers of helpers; deeper ones do not exist.
                if depth < 2 { add(childrenOf: child, depth: depth + 1) }
            }
        }
    }
}

/// Reads files that the kernel writes for processes.
///
/// Foundation's readers of strings and data keep 4 KiB for each such file that is empty, for ever (Swift 6.3.1): files
/// below `/proc` announce no size.
private enum ProcessFile {
    /// The memory of a process; nil if it has ended.
    static func residentBytes(of process: String) -> Int? {
        let numbers = words(of: "/proc/\(process)/statm")
        guard numbers.count > 1, let pages = Int(numbers[1]) else { return nil }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// The parts of a file between its spaces; none if it cannot be read.
    static func words(of path: String) -> [String] {
        guard let file = FileHandle(forReadingAtPath: path) else { return [] }
        defer { try? file.close() }
        return String(decoding: (try? file.read(upToCount: 1 << 20)) ?? Data(), as: UTF8.self)
            .split(whereSeparator: \.isWhitespace).map(String.init)
    }
}
