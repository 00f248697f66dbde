#if os(Linux)
import VitrineCore
import VitrineImaging

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The messages between this process and a browser: JSON, each with a zero byte at its end.
struct BrowserPipe {
    private let process: ToolProcess
    private var received: [UInt8] = []
    /// Bytes of ``received`` without a zero.
    private var searched = 0

    init(_ process: ToolProcess) { self.process = process }

    /// The bytes of a message that has not ended yet.
    var waitingBytes: Int { received.count }

    /// Sends a message.
    func send(
        _ message: Data, until deadline: ContinuousClock.Instant, cancellation: CancellationToken
    ) throws(ToolProcess.Failure) {
        try process.write([UInt8](message) + [0], until: deadline, cancellation: cancellation)
    }

    /// Returns the next message that was received whole.
    mutating func message() -> Data? {
        guard let end = received[searched...].firstIndex(of: 0) else {
            searched = received.count
            return nil
        }
        let message = Data(received[..<end])
        received.removeSubrange(...end)
        searched = 0
        return message
    }

    /// Waits for more bytes.
    mutating func receive(
        until deadline: ContinuousClock.Instant, cancellation: CancellationToken
    ) throws(ToolProcess.Failure) {
        try process.read(into: &received, until: deadline, cancellation: cancellation)
    }
}

/// A tab of an installed browser that loads any address and obeys commands of the DevTools protocol. For tests of pages
/// of this project: unlike pages that ``WebPageSource`` draws, it reaches the network without restrictions.
///
/// Its functions block. For use from one thread. The browser ends when this object is deinitialized.
///
/// Source: https://chromedevtools.github.io/devtools-protocol/
@_spi(BrowserControl) public final class BrowserControl {
    /// A command that has failed.
    public struct Failure: Error, CustomStringConvertible {
        /// The method and the reason.
        public var description: String
    }

    /// The path of an installed browser; nil if there is none.
    public static var installedProgram: String? { Browser.installed }

    private let profile: TemporaryProfile
    private let process: ToolProcess
    private var pipe: BrowserPipe
    private var session: String?
    private var lastID = 0
    private let cancellation = CancellationToken()
    private let deadline: ContinuousClock.Instant
    /// Receives the events that arrive while a call waits: the method, and the message as JSON.
    public var onEvent: ((String, Data) -> Void)?

    /// Starts a browser with an empty tab.
    ///
    /// - Parameters:
    ///   - program: The path of the browser.
    ///   - timeLimit: After this time, all functions fail.
    public init(program: String, timeLimit: Duration = .seconds(900)) throws {
        deadline = .now + timeLimit
        profile = try TemporaryProfile()
        var browser = Browser(program: program)
        // Browsers have no sandbox for the user root.
        browser.usesSandbox = geteuid() != 0
        process = try ToolProcess(
            path: program, arguments: browser.commonArguments(profile: profile.path) + ["--no-proxy-server"],
            environment: browser.environment(profile: profile.path))
        pipe = BrowserPipe(process)
        let created = try call("Target.createTarget", Data(#"{"url":"about:blank"}"#.utf8))
        let target = try JSONDecoder().decode(Created.self, from: created).result
        let attach = try JSONEncoder().encode(Attach(targetId: target.targetId ?? "", flatten: true))
        session = try JSONDecoder().decode(Created.self, from: call("Target.attachToTarget", attach)).result.sessionId
    }

    private struct Created: Decodable {
        var result: Target
    }
    private struct Target: Decodable {
        var targetId: String?
        var sessionId: String?
    }
    private struct Attach: Encodable {
        var targetId: String
        var flatten: Bool
    }
    private struct Head: Decodable {
        struct Failure: Decodable { var message: String? }
        var id: Int?
        var method: String?
        var error: Failure?
    }

    /// Sends a command to the tab and waits for its answer.
    ///
    /// - Parameters:
    ///   - method: For example `Page.navigate`.
    ///   - parameters: An object in JSON.
    /// - Returns: The whole answer in JSON, with the member `result`.
    /// - Throws: ``Failure`` if the browser refuses the command or has ended.
    @discardableResult
    public func call(_ method: String, _ parameters: Data = Data("{}".utf8)) throws -> Data {
        lastID += 1
        let id = lastID
        var text = #"{"id":\#(id),"method":"\#(method)","params":"# + String(decoding: parameters, as: UTF8.self)
        if let session { text += #","sessionId":"\#(session)""# }
        do {
            try pipe.send(Data((text + "}").utf8), until: deadline, cancellation: cancellation)
        } catch {
            throw Failure(description: "\(method): the browser takes no command (\(error))")
        }
        while true {
            let (head, message) = try next(method)
            if head.id == id {
                if let error = head.error { throw Failure(description: "\(method): \(error.message ?? "refused")") }
                return message
            }
            if let name = head.method { onEvent?(name, message) }
        }
    }

    /// Waits for the next event and passes it to ``onEvent``.
    public func waitForEvent() throws {
        while true {
            let (head, message) = try next("waiting")
            guard let name = head.method else { continue }
            onEvent?(name, message)
            return
        }
    }

    private func next(_ method: String) throws -> (Head, Data) {
        while true {
            if let message = pipe.message() { return (try JSONDecoder().decode(Head.self, from: message), message) }
            do {
                try pipe.receive(until: deadline, cancellation: cancellation)
            } catch {
                throw Failure(description: "\(method): the browser does not answer (\(error))")
            }
        }
    }
}
#endif
