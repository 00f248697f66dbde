import CVitrineDownloads
import VitrineCore

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

/// A connection between a client and the agent. One thread reads; any thread may write. All calls block.
final class AgentChannel: Sendable {
    private struct Reading {
        var bytes: [UInt8] = []
        /// The number of bytes at the beginning that are known to have no line end.
        var searched = 0
        /// Whether the last read has timed out.
        var isTimedOut = false
    }

    private let descriptor: Int32
    private let writing = Locked(())
    private let reading = Locked(Reading())
    /// The length limit of a received message.
    private let longestLine: Int

    /// - Parameters:
    ///   - descriptor: A connected socket, which the object owns.
    ///   - longestLine: The most bytes of a message that is received.
    init(_ descriptor: Int32, longestLine: Int) { (self.descriptor, self.longestLine) = (descriptor, longestLine) }

    deinit { close(descriptor) }

    /// Whether the other end is a process of this user, or of root.
    var isTrusted: Bool {
        var user: UInt32 = 0, process: Int32 = 0
        return cdownloads_peer(descriptor, &user, &process) == 0 && (user == geteuid() || user == 0)
    }

    /// The number of the process at the other end, or nil if the system does not report it.
    var process: Int32? {
        var user: UInt32 = 0, process: Int32 = 0
        return cdownloads_peer(descriptor, &user, &process) == 0 && process > 0 ? process : nil
    }

    /// Whether the last call of ``receive(_:)`` has timed out.
    var isTimedOut: Bool { reading.withLock { $0.isTimedOut } }

    /// Limits the time that a read or a write may block; nil for no limit.
    func limit(reading: Duration?, sending: Duration?) {
        _ = cdownloads_limit(descriptor, 1, Self.milliseconds(reading))
        _ = cdownloads_limit(descriptor, 0, Self.milliseconds(sending))
    }

    /// Returns the duration in milliseconds, at least 1, because 0 means no limit.
    static func milliseconds(_ duration: Duration?) -> Int {
        duration.map { Int(min(max(1, $0 / .milliseconds(1)), 1e12)) } ?? 0
    }

    /// Sends a message.
    ///
    /// - Returns: Whether it was sent: false after the other end was closed.
    @discardableResult
    func send(_ message: some Encodable) -> Bool {
        Self.line(of: message).map { send(line: $0) } ?? false
    }

    /// Returns the bytes of a message with their line end; nil for one that is not representable.
    static func line(of message: some Encodable) -> [UInt8]? {
        (try? JSONEncoder().encode(message)).map { Array($0) + [0x0A] }
    }

    /// Sends the bytes of a message with their line end.
    ///
    /// - Returns: As ``send(_:)``.
    func send(line: [UInt8]) -> Bool {
        writing.withLock { _ in
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

    /// Returns the next message, or nil at the end of the connection and for an invalid message.
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
                guard reading.searched <= longestLine, fill(&reading) else { return nil }
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

    /// Ends the connection. A pending read returns nil.
    func end() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
}

/// The protocol between clients and the agent: one JSON object a line.
enum AgentProtocol {
    /// The version, which both sides must share.
    static let version = 1
    /// The most bytes of a request. A line without end takes no more memory of the agent.
    static let longestRequest = 1 << 20
    /// The most bytes of a message of the agent, which may be a list of very many downloads.
    static let longestMessage = 256 << 20
}

/// A request of a client. Each gets one reply with the same number.
package struct AgentRequest: Sendable, Codable {
    let number: Int
    let call: AgentCall
}

/// The calls of the agent. A client repeats a call if the connection ends before the reply.
package enum AgentCall: Sendable, Codable {
    /// All statuses, now and at every change.
    case watch
    case list
    case start(Stored<DownloadRequest>, id: String)
    /// Adds a download of an agent whose list was deleted.
    case adopt(DownloadRecord)
    case perform(DownloadCommand, id: String)
    case set(DownloadLimits)
    case settled
    case info
    case stop

    /// Whether the reply waits for the end of downloads.
    var mayTakeLong: Bool {
        if case .settled = self { true } else { false }
    }
}

/// A message of the agent.
package enum AgentMessage: Sendable, Codable {
    /// The first message.
    case hello(version: Int)
    case reply(number: Int, AgentReply)
    /// All statuses.
    case snapshot([Stored<DownloadStatus>])
    case status(Stored<DownloadStatus>)
    /// - Parameter last: The last status, for tasks that wait for the end of the download.
    case removed(id: String, last: Stored<DownloadStatus>?)
    /// The agent was stopped. Clients do not start another one for pending calls.
    case stopping
}

/// The reply to a call.
package enum AgentReply: Sendable, Codable {
    case done
    case download(Stored<DownloadStatus>)
    case list([Stored<DownloadStatus>])
    case info(DownloadAgent.Info)
    case failed(DownloadStatus.Failure)

    /// Returns the error on the client's side, where the download is known.
    static func error(_ failure: DownloadStatus.Failure, id: String) -> DownloadError {
        switch failure.code {
        case DownloadError.unknown(id: "").code: .unknown(id: id)
        case DownloadError.cancelled.code: .cancelled
        default: .reported(failure)
        }
    }
}
