import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

import VitrineServer

/// The pictures of the repository.
enum Samples {
    static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Samples").path(percentEncoded: false)

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: directory + "/" + name)))
    }
}

/// A server on loopback whose answers a test decides, and which counts its requests.
final class Origin: Sendable {
    struct Answer: Sendable {
        var status = 200
        var headers: [(String, String)] = []
        var body: [UInt8] = []
    }

    let port: Int
    private let log: RequestLog
    private let server: Task<Void, any Error>

    struct HTTPRequest: Sendable {
        let path: String
        let headers: HTTPFields
    }

    private init(port: Int, _ log: RequestLog, _ server: Task<Void, any Error>) {
        (self.port, self.log, self.server) = (port, log, server)
    }

    deinit { server.cancel() }

    /// Starts a server on a port that the system chooses.
    static func start(_ answer: @escaping @Sendable (HTTPRequest) async -> Answer) async throws -> Origin {
        let port = AsyncPromise<Int>()
        let log = RequestLog()
        let responder = CallbackResponder<BasicRequestContext> { request, _ in
            let received = HTTPRequest(path: request.uri.path, headers: request.headers)
            log.add(received)
            let answer = await answer(received)
            var headers = HTTPFields()
            for (name, value) in answer.headers {
                if let name = HTTPField.Name(name) { headers.append(HTTPField(name: name, value: value)) }
            }
            return Response(
                status: .init(code: answer.status), headers: headers,
                body: .init(byteBuffer: ByteBuffer(bytes: answer.body)))
        }
        let application = Application(
            responder: responder, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in port.fulfill(channel.localAddress?.port ?? 0) })
        let server = Task { try await application.runService(gracefulShutdownSignals: []) }
        return Origin(port: await port.value(), log, server)
    }

    /// Starts a server of the samples, which may be stored for a time.
    static func samples(maximumAge: Int = 3_600) async throws -> Origin {
        try await start { request in
            guard let body = try? Samples.bytes(String(request.path.dropFirst())) else { return Answer(status: 404) }
            return Answer(headers: [("Cache-Control", "max-age=\(maximumAge)")], body: body)
        }
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

    /// The requests so far.
    var requests: [HTTPRequest] { log.all }

    func count(of path: String) -> Int { requests.count { $0.path == "/" + path } }
}

final class RequestLog: Sendable {
    private let requests = Mutex<[Origin.HTTPRequest]>([])
    func add(_ request: Origin.HTTPRequest) { requests.withLock { $0.append(request) } }
    var all: [Origin.HTTPRequest] { requests.withLock { $0 } }
}

/// A time of day that a test sets.
final class TestClock: Sendable {
    private let time = Mutex(WallClock.system.now)
    var clock: WallClock { WallClock { self.time.withLock { $0 } } }
    func advance(by duration: Duration) { time.withLock { $0 += duration } }
}

/// A renderer in a directory of its own, which may load from loopback.
final class RenderingFixture: Sendable {
    let renderer: Renderer
    let clock = TestClock()
    let root: String

    init(_ change: (inout Renderer.Configuration) -> Void = { _ in }) throws {
        root = NSTemporaryDirectory() + "vitrine-rendering-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        var configuration = Renderer.Configuration(cacheRoot: root + "/cache")
        configuration.clock = clock.clock
        configuration.sources.localRoot = Samples.directory
        configuration.sources.policy.allowsPrivateAddresses = true
        configuration.sources.policy.ports = nil
        configuration.encodeDeadline = nil
        change(&configuration)
        renderer = Renderer(configuration)
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    func image(_ source: String, _ change: (inout ProcessingOptions) -> Void = { _ in }) async throws -> Rendering {
        try await renderer.image(for: Self.url(source, change))
    }

    static func url(_ source: String, _ change: (inout ProcessingOptions) -> Void = { _ in }) -> ImageURL {
        var options = ProcessingOptions()
        change(&options)
        return ImageURL(grammar: .native, options: options, source: source)
    }

    /// The error of a request; nil if it succeeded.
    func error(
        _ source: String, _ change: (inout ProcessingOptions) -> Void = { _ in }
    ) async -> RequestError? {
        do {
            _ = try await renderer.image(for: Self.url(source, change))
            return nil
        } catch {
            return error
        }
    }
}

extension RenderedImage {
    /// The header of the result.
    var info: ImageInfo {
        get throws { try ImageInfo(of: .bytes([UInt8](bytes.readableBytesView))) }
    }

    /// The pixels of the result.
    var pixels: PixelImage {
        get throws { try ImageDecoder(isolation: .inProcess).decode(.bytes([UInt8](bytes.readableBytesView))) }
    }
}

/// Waits until a condition is true. The test's own time limit ends it otherwise.
func wait(until condition: @Sendable () throws -> Bool) async throws {
    while try !condition() { try await Task.sleep(for: .milliseconds(1)) }
}
