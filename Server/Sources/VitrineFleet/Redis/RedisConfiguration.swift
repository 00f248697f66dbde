public import Foundation
public import NIOSSL

/// An error of a Redis server or of the connection to it.
///
/// A tier never throws one to its users; it is the reason that ``RemoteTier/status`` gives.
public enum RedisError: Error, Sendable, Hashable {
    /// The connection could not be made, or was lost.
    case unreachable(String)
    /// The server did not answer in time.
    case timedOut
    /// The server was found not to answer, and is not asked until it does.
    case unavailable
    /// More commands wait for replies than the client keeps.
    case overloaded
    /// The user name or the password is wrong or missing.
    case authentication(String)
    /// The access list of the user does not allow a command, a key or a channel.
    case permission(String)
    /// The TLS handshake failed, or only one of client and server uses TLS.
    case tls(String)
    /// The server did not take part in a TLS handshake in time. Perhaps it does not use TLS.
    case tlsTimedOut
    /// The server does not speak RESP3. It is older than Redis 6, or not Redis.
    case resp3Unsupported(String)
    /// The server sent bytes that are not RESP3 or exceed a limit.
    case protocolViolation(String)
    /// The server answered with another error.
    case server(String)
    /// No sentinel knows a master of this name, or the master named says that it is none.
    case noMaster(String)
    /// The nodes of a cluster sent a command from one to another too often.
    case tooManyRedirections
    /// A URL or a setting is malformed.
    case invalidConfiguration(String)

    /// The error of an error reply.
    init(reply: String) {
        switch reply.prefix(while: { $0 != " " }) {
        case "WRONGPASS", "NOAUTH": self = .authentication(reply)
        case "NOPERM": self = .permission(reply)
        case "NOPROTO": self = .resp3Unsupported(reply)
        default: self = .server(reply)
        }
    }

    /// Whether the error stays until an operator changes something.
    var isLasting: Bool {
        switch self {
        case .authentication, .permission, .tls, .resp3Unsupported, .protocolViolation, .invalidConfiguration: true
        default: false
        }
    }
}

extension RedisError: LocalizedError, CustomStringConvertible {
    public var description: String {
        switch self {
        case .unreachable(let reason): "The Redis server cannot be reached: \(reason)"
        case .timedOut: "The Redis server did not answer in time."
        case .unavailable: "The Redis server does not answer and is not asked until it does."
        case .overloaded: "Too many commands wait for the Redis server."
        case .authentication(let reply): "The Redis server refuses the user name or the password: \(reply)"
        case .permission(let reply): "The access list of the Redis user is too narrow: \(reply)"
        case .tls(let reason): "The TLS handshake with the Redis server failed: \(reason)"
        case .tlsTimedOut: "The Redis server did not answer the TLS handshake in time. Perhaps it does not use TLS."
        case .resp3Unsupported(let reply): "The server does not speak RESP3; Redis 6 or later does: \(reply)"
        case .protocolViolation(let reason): "The Redis server sent bytes that are not RESP3: \(reason)"
        case .server(let reply): "The Redis server answered with an error: \(reply)"
        case .noMaster(let reason): "There is no Redis master: \(reason)"
        case .tooManyRedirections: "The nodes of the Redis Cluster redirect a command in circles."
        case .invalidConfiguration(let reason): "The Redis configuration is invalid: \(reason)"
        }
    }

    public var errorDescription: String? { description }
}

/// Tells where Redis servers are and how to connect to them.
///
/// Servers must speak RESP3: Redis 6 or later, Valkey, KeyDB 6.
public struct RedisConfiguration: Sendable {
    /// A host and a port.
    public struct Address: Sendable, Hashable, CustomStringConvertible {
        /// The host name or IP address, without brackets.
        public var host: String
        /// The port.
        public var port: Int

        /// Creates an address.
        public init(_ host: String, _ port: Int = 6_379) { (self.host, self.port) = (host, port) }

        public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

        /// `host`, `host:port`, `[IPv6]` or `[IPv6]:port`.
        init?(text: Substring, defaultPort: Int) {
            var host = text
            var port = defaultPort
            let afterBracket = text.lastIndex(of: "]").map { text.index(after: $0) } ?? text.startIndex
            if let colon = text[afterBracket...].lastIndex(of: ":") {
                guard let number = Int(text[text.index(after: colon)...]) else { return nil }
                (host, port) = (text[..<colon], number)
            }
            if host.hasPrefix("[") {
                guard host.hasSuffix("]") else { return nil }
                host = host.dropFirst().dropLast()
            } else if host.contains(":") {
                return nil
            }
            guard !host.isEmpty, (1...65_535).contains(port) else { return nil }
            self.init(String(host), port)
        }
    }

    /// How servers belong together.
    public enum Topology: Sendable, Hashable {
        /// One server.
        case single(Address)
        /// Sentinels that know the master of a name.
        case sentinel([Address], master: String)
        /// Some nodes of a cluster, which know the others.
        case cluster([Address])
    }

    /// How servers belong together.
    public var topology: Topology
    /// The user name; nil for the default user.
    public var username: String?
    /// The password; nil for none.
    public var password: String?
    /// The password of the sentinels; nil for none.
    public var sentinelPassword: String?
    /// The number of the database. A cluster has only 0, the default.
    public var database = 0
    /// The TLS settings; nil, the default, for connections without TLS. Sentinels use them too.
    public var tls: TLSConfiguration?
    /// The host name in the server's certificate; nil for the name in the address.
    public var tlsServerName: String?
    /// The number of connections to each node. Default: 4.
    public var connectionsPerNode = 4
    /// How long a command may take. Default: 50 milliseconds.
    public var commandTimeout: Duration = .milliseconds(50)
    /// How long a connection attempt may take, and the login and each look-up of the topology. Default: 500
    /// milliseconds.
    public var connectTimeout: Duration = .milliseconds(500)
    /// After how many commands in succession without a reply a node is not asked any more. Default: 5.
    public var failureLimit = 5

    /// Creates a configuration with the defaults.
    public init(_ topology: Topology) { self.topology = topology }

    /// Creates a configuration from a URL.
    ///
    /// | URL | Servers |
    /// | --- | --- |
    /// | `redis://USER:PASSWORD@HOST:PORT/DATABASE` | one server |
    /// | `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DATABASE` | the master that sentinels name |
    /// | `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT` | a cluster |
    ///
    /// `rediss` in place of `redis` uses TLS. All parts but the first host are optional; a password without a user name
    /// is written `:PASSWORD@`. User name, password and master are percent-decoded.
    ///
    /// - Throws: ``RedisError/invalidConfiguration(_:)``, whose text does not contain the password.
    public init(url: String) throws(RedisError) {
        guard let mark = url.firstRange(of: "://") else { throw .invalidConfiguration("a URL without “://”") }
        let scheme = url[..<mark.lowerBound].lowercased()
        var rest = url[mark.upperBound...]
        let path: [Substring]
        let credentialsEnd = rest.lastIndex(of: "@")
        if let slash = rest[(credentialsEnd ?? rest.startIndex)...].firstIndex(of: "/") {
            path = rest[rest.index(after: slash)...].split(separator: "/")
            rest = rest[..<slash]
        } else {
            path = []
        }
        let kind = scheme.split(separator: "+", maxSplits: 1).map(String.init)
        guard let first = kind.first, first == "redis" || first == "rediss" else {
            throw .invalidConfiguration("the scheme is neither redis nor rediss")
        }
        var hosts = rest
        if let credentialsEnd {
            hosts = rest[rest.index(after: credentialsEnd)...]
        }
        let addresses = try Self.addresses(hosts, defaultPort: kind.last == "sentinel" ? 26_379 : 6_379)
        var database: Substring?
        switch kind.count == 1 ? "" : kind[1] {
        case "":
            guard addresses.count == 1, path.count <= 1 else {
                throw .invalidConfiguration("more than one host or path")
            }
            self.init(.single(addresses[0]))
            database = path.first
        case "sentinel":
            guard let name = path.first?.removingPercentEncoding, path.count <= 2 else {
                throw .invalidConfiguration("a sentinel URL needs the path /MASTER or /MASTER/DATABASE")
            }
            self.init(.sentinel(addresses, master: name))
            database = path.dropFirst().first
        case "cluster":
            guard path.isEmpty || path == ["0"] else {
                throw .invalidConfiguration("a cluster has only the database 0")
            }
            self.init(.cluster(addresses))
        default:
            throw .invalidConfiguration("the scheme is none of redis, redis+sentinel and redis+cluster")
        }
        if let database {
            guard let number = Int(database), number >= 0 else {
                throw .invalidConfiguration("the database is not a number")
            }
            self.database = number
        }
        if let credentialsEnd { try setCredentials(rest[..<credentialsEnd]) }
        if first == "rediss" { tls = .makeClientConfiguration() }
    }

    private mutating func setCredentials(_ text: Substring) throws(RedisError) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let decoded = parts.compactMap { String($0).removingPercentEncoding }
        guard decoded.count == parts.count else { throw .invalidConfiguration("malformed percent-encoding") }
        username = decoded[0].isEmpty ? nil : decoded[0]
        password = decoded.count > 1 ? decoded[1] : nil
    }

    private static func addresses(_ text: Substring, defaultPort: Int) throws(RedisError) -> [Address] {
        var all: [Address] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let address = Address(text: part, defaultPort: defaultPort) else {
                throw .invalidConfiguration("“\(part)” is no host with a port")
            }
            all.append(address)
        }
        return all
    }
}

extension RedisConfiguration: CustomStringConvertible, CustomDebugStringConvertible {
    /// The topology and the user name. Passwords are not included.
    public var description: String {
        let user = username.map { "\($0)@" } ?? ""
        let secure = tls == nil ? "" : " with TLS"
        return switch topology {
        case .single(let address): "Redis server \(user)\(address)/\(database)\(secure)"
        case .sentinel(let all, let master): "Redis master \(user)\(master) of \(all.count) sentinels\(secure)"
        case .cluster(let all): "Redis Cluster \(user)\(all.map(\.description).joined(separator: ","))\(secure)"
        }
    }

    public var debugDescription: String { description }
}
