import Foundation
import TestSupport
import Testing
import VitrineNetwork

/// A loader that no environment leads astray.
func makeLoader(_ change: (inout CurlLoader.Configuration) -> Void = { _ in }) -> CurlLoader {
    var configuration = CurlLoader.Configuration()
    configuration.proxy = .none
    change(&configuration)
    return CurlLoader(configuration)
}

/// What loading throws; nil if it does not.
func failure(_ body: () async throws -> Void) async -> NetworkError? {
    do { try await body() } catch { return error as? NetworkError }
    return nil
}

extension CurlLoader {
    /// Head and whole body.
    func whole(_ request: HTTPRequest) async throws -> (HTTPResponseHead, [UInt8]) {
        let response = try await load(request)
        return (response.head, try await response.body.collect())
    }
}

/// Bytes that repeat late enough to show what is missing.
func pattern(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count { bytes += period.prefix(count - bytes.count) }
    return bytes
}

/// Made once, as a closure for each of millions of bytes takes seconds without optimisation.
private let period = (0..<1 << 16).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

/// A request that no timeout ends: on a busy machine a test may be kept from answering for longer than a server may.
func patient(_ url: URL) -> HTTPRequest {
    var request = HTTPRequest(url: url)
    request.connectTimeout = nil
    request.idleTimeout = nil
    return request
}

extension Process {
    /// Ends it for sure: what was started from a thread that blocks signals, as those of tasks do, hears of no other.
    func end() { kill(processIdentifier, SIGKILL) }
}

/// What gzip(1) makes of bytes.
func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    try Data(bytes).write(to: URL(filePath: directory.file("plain")))
    let process = Process()
    process.executableURL = URL(filePath: "/bin/gzip")
    process.arguments = ["-k", "-n", directory.file("plain")]
    try process.run()
    process.waitUntilExit()
    return Array(try Data(contentsOf: URL(filePath: directory.file("plain.gz"))))
}
