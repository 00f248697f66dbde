import CVitrineSandbox
import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A program of others, controlled through one stream that it has as its descriptors 3 and 4.
///
/// It runs in a process group of its own. When this object is deinitialized, all processes of the group are killed and
/// the program is reaped. It starts without a shell and inherits no other descriptors, and no environment beside the
/// given lines. For use from one thread.
package final class ToolProcess {
    /// The reason why the stream has failed.
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

    /// Milliseconds between two checks of a token.
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
            // Descendants too, if this process adopts them: see adoptOrphans().
            csandbox_reap_group(process)
        }
        csandbox_forget(process)
    }

    /// Makes this process instead of process 1 the parent of tools' descendants whose parents end, so that they are
    /// reaped with their group. Affects the whole process: for programs of this package.
    package static func adoptOrphans() { _ = csandbox_adopt_orphans() }

    /// The process number, which is also its group's.
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
