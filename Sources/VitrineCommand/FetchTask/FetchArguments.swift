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

extension [HeaderArgument] {
    /// Fields that the loader writes whatever is asked for.
    private static var ownFields: Set<String> {
        HTTPSyntax.transportFields.union(HTTPSyntax.conditionFields).union(["accept-encoding"])
    }

    /// - Throws: `ValidationError` for fields that would not be sent, or not as they stand.
    func validateNames() throws {
        guard let field = first(where: { Self.ownFields.contains($0.name.lowercased()) }) else { return }
        throw ValidationError("--header cannot set \(field.name): vitrine writes this field itself")
    }
}

/// The command's names for depths.
enum DepthArgument: String, ExpressibleByArgument, CaseIterable {
    case memory, disk, network

    var depth: CacheLevel {
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

    @Option(help: "The most seconds a request may take. Default: an hour; no limit for what goes to a file only.")
    var maxTime: Int?

    func validate() throws {
        try headers.validateNames()
        guard maxTime ?? 1 > 0 else { throw ValidationError("--max-time is at least 1") }
    }

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
    func request(for url: URL) -> HTTPRequest {
        var request = HTTPRequest(url: url)
        for header in headers { request.headers.append(header.name, header.value) }
        request.maximumBodySize = maxSize?.size ?? .unlimited
        request.timeouts.total = maxTime.map { .seconds($0) }
        return request
    }
}
