import CVitrineSandbox
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A foreign program that is spoken to through one stream, which it finds as its descriptors 3 and 4.
///
/// It runs in a process group of its own; when this object goes, all processes of the group are killed and the program
/// is reaped. No shell is involved, and nothing of this process's descriptors or environment is passed on but what is
/// named. For use from one thread.
package final class ToolProcess {
    /// Why the stream cannot be used any more.
    package enum Failure: Error {
        /// The program has ended, or closed the stream.
        case ended
        case timedOut
        case cancelled
        case system(SystemCallError)
    }

    private let process: csandbox_process
    private let stream: Int32
    private let owner = getpid()

    /// Milliseconds between two looks at a token.
    private static let slice: Int32 = 50

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: Without the program's name.
    ///   - environment: Lines such as `HOME=/tmp`.
    package init(path: String, arguments: [String], environment: [String]) throws(SystemCallError) {
        var ends: [Int32] = [-1, -1]
        var code = csandbox_stream_pair(&ends)
        guard code == 0 else { throw SystemCallError(call: "socketpair", code: code) }
        var process = csandbox_process(pid: -1, pidfd: -1)
        code = withCStrings([path] + arguments) { arguments in
            withCStrings(environment) { environment in
                csandbox_spawn(path, arguments, environment, ends[1], ends[1], &process)
            }
        }
        close(ends[1])
        guard code == 0 else {
            close(ends[0])
            throw SystemCallError(call: "starting \(path)", code: code)
        }
        self.process = process
        stream = ends[0]
    }

    deinit {
        close(stream)
        // A copy of this object in a forked child leaves the parent's processes alone.
        if owner == getpid() {
            csandbox_kill_group(process)
            // Its descendants too, where they are left to this process: see adoptOrphans().
            csandbox_reap_group(process)
        }
        csandbox_forget(process)
    }

    /// Leaves the descendants of tools to this process when their parents end, instead of to process 1, so that they
    /// are reaped with their group. Concerns the whole process: for programs of this package.
    package static func adoptOrphans() { _ = csandbox_adopt_orphans() }

    /// Its process number, which is its group's as well.
    package var identifier: Int32 { process.pid }

    /// Writes all of the bytes.
    package func write(
        _ bytes: [UInt8], until deadline: ContinuousClock.Instant, cancellation: CancellationToken
    ) throws(Failure) {
        var done = 0
        while done < bytes.count {
            var written = 0
            let code = bytes.withUnsafeBytes {
                csandbox_write_some(stream, $0.baseAddress.map { $0 + done }, $0.count - done, &written)
            }
            switch code {
            case 0: done += written
            case EAGAIN: try wait(toWrite: true, until: deadline, cancellation)
            case EPIPE, ECONNRESET: throw .ended
            default: throw .system(SystemCallError(call: "send", code: code))
            }
        }
    }

    /// Waits for bytes and appends some.
    package func read(
        into bytes: inout [UInt8], until deadline: ContinuousClock.Instant, cancellation: CancellationToken
    ) throws(Failure) {
        try wait(toWrite: false, until: deadline, cancellation)
        var count = 0
        var code: Int32 = 0
        let more = [UInt8](unsafeUninitializedCapacity: 256 << 10) { buffer, filled in
            repeat { count = recv(stream, buffer.baseAddress, buffer.count, 0) } while count < 0 && errno == EINTR
            code = errno
            filled = max(0, count)
        }
        if count == 0 || (count < 0 && code == ECONNRESET) { throw .ended }
        guard count > 0 else { throw .system(SystemCallError(call: "recv", code: code)) }
        bytes += more
    }

    private func wait(
        toWrite: Bool, until deadline: ContinuousClock.Instant, _ cancellation: CancellationToken
    ) throws(Failure) {
        while true {
            if cancellation.isCancelled { throw .cancelled }
            if ContinuousClock.now >= deadline { throw .timedOut }
            let code = csandbox_wait_stream(stream, toWrite, Self.slice)
            if code == 0 { return }
            guard code == ETIMEDOUT else { throw .system(SystemCallError(call: "poll", code: code)) }
        }
    }
}
