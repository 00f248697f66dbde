import CVitrineDownloads
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// One connection between a client and the agent. One thread reads; any may write. All calls block.
final class AgentChannel: Sendable {
    private struct Reading {
        var bytes: [UInt8] = []
        /// How many of them hold no end of a line.
        var searched = 0
        /// Whether the last message did not come in time.
        var isTimedOut = false
    }

    private let descriptor: Int32
    private let writing = Locked(())
    private let reading = Locked(Reading())
    /// A longer line is nobody's message.
    private static let longestLine = 256 << 20

    /// - Parameter descriptor: A connected socket, closed with the object.
    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Whether the other end is a process of this user, or of root.
    var isTrusted: Bool {
        var user: UInt32 = 0, process: Int32 = 0
        return cdownloads_peer(descriptor, &user, &process) == 0 && (user == geteuid() || user == 0)
    }

    /// The number of the process at the other end; nil where the system does not tell.
    var process: Int32? {
        var user: UInt32 = 0, process: Int32 = 0
        return cdownloads_peer(descriptor, &user, &process) == 0 && process > 0 ? process : nil
    }

    /// Whether the last message that was waited for did not come in time.
    var isTimedOut: Bool { reading.withLock { $0.isTimedOut } }

    /// Limits how long the other end may let this one wait for bytes, or for room for them; nil for no limit.
    func limit(reading: Duration?, sending: Duration?) {
        _ = cdownloads_limit(descriptor, 1, Self.milliseconds(reading))
        _ = cdownloads_limit(descriptor, 0, Self.milliseconds(sending))
    }

    /// At least one, as none means no limit.
    static func milliseconds(_ duration: Duration?) -> Int {
        duration.map { Int(min(max(1, $0 / .milliseconds(1)), 1e12)) } ?? 0
    }

    /// Sends a message.
    ///
    /// - Returns: Whether it went; false when nobody reads any more.
    @discardableResult
    func send(_ message: some Encodable) -> Bool {
        guard let data = try? JSONEncoder().encode(message) else { return false }
        let line = Array(data) + [0x0A]
        return writing.withLock { _ in
            line.withUnsafeBytes { bytes in
                var offset = 0
                while offset < bytes.count, let base = bytes.baseAddress {
                    let count = cdownloads_send(descriptor, base + offset, UInt(bytes.count - offset))
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { return false }
                    offset += count
                }
                return true
            }
        }
    }

    /// The next message; nil after the last, and after what is none.
    func receive<Message: Decodable & Sendable>(_ type: Message.Type) -> Message? {
        reading.withLock { reading in
            while true {
                if let end = reading.bytes[reading.searched...].firstIndex(of: 0x0A) {
                    let message = try? JSONDecoder().decode(type, from: Data(reading.bytes[..<end]))
                    reading.bytes.removeFirst(end + 1)
                    reading.searched = 0
                    return message
                }
                reading.searched = reading.bytes.count
                guard reading.searched <= Self.longestLine, fill(&reading) else { return nil }
            }
        }
    }

    private func fill(_ reading: inout Reading) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer in
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                if count < 0, errno == EINTR { continue }
                reading.isTimedOut = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
                guard count > 0 else { return false }
                reading.bytes += buffer[..<count]
                return true
            }
        }
    }

    /// Ends the connection: who reads gets nil.
    func end() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
}
