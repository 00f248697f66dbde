#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl"), "needs openssl"))
struct EncryptionTests {
    @Test func certificatesAreAlwaysChecked() async throws {
        let server = try await offPool { try TLSServer() }
        defer { server.stop() }
        let named = try #require(URL(string: "https://localhost:\(server.port)/"))
        let trusting = makeLoader { $0.certificateAuthorities = server.certificate }
        // Returns when the server answers.
        while true {
            let error = await failure {
                let (head, _) = try await trusting.whole(HTTPRequest(url: named))
                #expect(head.status == 200)
            }
            guard let error else { break }
            guard case .notConnected = error else { Issue.record("\(error)"); return }
        }
        let untrusted = await failure { _ = try await makeLoader().load(HTTPRequest(url: named)) }
        guard case .insecure = untrusted else { Issue.record("\(String(describing: untrusted))"); return }
        // The certificate is for the name.
        let other = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
        let misnamed = await failure { _ = try await trusting.load(HTTPRequest(url: other)) }
        guard case .insecure = misnamed else { Issue.record("\(String(describing: misnamed))"); return }
    }

    @Test func speechWithoutEncryptionIsNoTLS() async throws {
        let loopback = try LoopbackServer { _ in [.text("no TLS here"), .close] }
        let url = try #require(URL(string: "https://127.0.0.1:\(loopback.port)/"))
        var request = HTTPRequest(url: url)
        request.connectTimeout = .seconds(2)
        let error = await failure { [request] in _ = try await makeLoader().load(request) }
        switch error {
        case .insecure, .timedOut(_, NetworkError.connectTimeout), .truncated: break
        default: Issue.record("\(String(describing: error))")
        }
    }
}

/// openssl(1) as a server, with a certificate of its own for `localhost`.
private final class TLSServer: Sendable {
    let port: Int
    let certificate: String
    private let reserved: ReservedPort
    private let directory: TemporaryDirectory
    private let process: Locked<Process?>

    init() throws {
        directory = try TemporaryDirectory()
        certificate = directory.file("certificate.pem")
        reserved = try ReservedPort()
        port = reserved.number
        let key = directory.file("key.pem")
        let maker = Self.openssl([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ])
        try maker.run()
        maker.waitUntilExit()
        let server = Self.openssl([
            "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", key, "-www", "-quiet",
        ])
        try server.run()
        process = Locked(server)
    }

    func stop() { process.withLock { $0.take() }?.end() }

    private static func openssl(_ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return process
    }
}
#endif
