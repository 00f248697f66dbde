import ArgumentParser
import Foundation
import VitrineCache
import VitrineCore
import VitrineNetwork

/// `Name: value`.
struct HeaderArgument: ExpressibleByArgument {
    let name: String
    let value: String

    init?(argument: String) {
        guard let colon = argument.firstIndex(of: ":") else { return nil }
        name = String(argument[..<colon])
        value = argument[argument.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        guard HTTPSyntax.isToken(name), HTTPSyntax.isFieldValue(value) else { return nil }
    }
}

/// The command's names for depths.
enum DepthArgument: String, ExpressibleByArgument, CaseIterable {
    case memory, disk, network

    var depth: Depth {
        switch self {
        case .memory: .memory
        case .disk: .disk
        case .network: .source
        }
    }
}

/// How `vitrine fetch` asks.
struct RequestOptions: ParsableArguments {
    @Option(name: .customLong("header"), help: "A field to send, as 'Name: value'; several times for several fields.")
    var headers: [HeaderArgument] = []

    @Flag(help: "Load nothing from this machine or other private addresses, whatever a name or a redirect says.")
    var publicOnly = false

    @Option(help: "A file of certificates (PEM) to trust instead of the system's.")
    var cacert: String?

    @Option(help: "The largest body to accept, such as 500MB. Without it there is no limit.")
    var maxSize: ByteCountArgument?

    /// A loader by these options.
    func loader() -> NetworkLoader {
        var configuration = NetworkLoader.Configuration()
        if publicOnly { configuration.policy = .publicOnly }
        #if os(Linux)
        var connections = CurlLoader.Configuration()
        connections.certificateAuthorities = cacert
        return NetworkLoader(CurlLoader(connections), configuration)
        #else
        return NetworkLoader(configuration)
        #endif
    }

    /// The request for an address.
    func request(for url: URL) -> DataRequest {
        var request = DataRequest(url: url)
        for header in headers { request.headers.append(header.name, header.value) }
        request.maximumBodySize = maxSize?.size ?? .unlimited
        return request
    }
}
