import ArgumentParser
import Foundation
@_spi(HTTPCacheEngine) import VitrineNetwork

/// A reverse proxy that answers from memory what the engine allows: for conformance suites, which test a cache over the
/// wire. Not for the public: it listens on loopback and trusts its origin.
@main
struct CacheProxy: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vitrine-cache-proxy", abstract: "Answers from a cache in memory what an origin server allows.")

    @Option(help: "The port to listen on, on 127.0.0.1; 0 for any that is free.")
    var port: UInt16 = 8001

    @Option(help: "The server to forward to, for example http://127.0.0.1:8000.")
    var origin: String

    @Flag(name: .customLong("private"), help: "Behave as the cache of one person, not as one shared by all.")
    var isPrivate = false

    @Option(help: "The most megabytes of bodies to keep.")
    var megabytes: Int = 256

    func run() throws {
        guard let parts = URLComponents(string: origin), parts.scheme?.lowercased() == "http", let host = parts.host
        else {
            throw ValidationError("The origin has to be an http: address, not \(origin).")
        }
        signal(SIGPIPE, SIG_IGN)
        let origin = Origin(host: host, port: UInt16(exactly: parts.port ?? 80) ?? 80)
        let store = ResponseStore(capacity: max(0, min(megabytes, 1 << 20)) << 20)
        let proxy = Proxy(origin: origin, cache: HTTPCache(policy: isPrivate ? .standard : .reverseProxy), store: store)
        let listener = try Listener(port: port)
        print("listening on http://127.0.0.1:\(listener.port), origin \(self.origin)")
        fflush(nil)
        while true {
            let socket = try listener.accept()
            Thread.detachNewThread { proxy.serve(Connection(socket)) }
        }
    }
}
