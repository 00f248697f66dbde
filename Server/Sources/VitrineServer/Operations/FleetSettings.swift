import Foundation
import Logging
import NIOSSL
import VitrineCore
import VitrineFleet
package import VitrineS3

/// The Redis servers that the nodes of a fleet share.
public struct FleetConfiguration: Sendable, Equatable {
    /// The URL of the servers: `redis://`, `redis+sentinel://` or `redis+cluster://`, with `rediss` for TLS. Empty for
    /// none.
    public var redis = ""
    /// The password, if the URL has none.
    public var redisPassword = ""
    package var redisPasswordFile = ""
    /// The password of Sentinels.
    public var redisSentinelPassword = ""
    /// The beginning of all keys.
    public var redisNamespace = "vitrine"
    /// A PEM file with the certificates to trust instead of the system's.
    public var redisAuthorities = ""
    /// A PEM file with the certificate of this client.
    public var redisCertificate = ""
    /// A PEM file with the private key of this client.
    public var redisKey = ""
    /// The name in the certificate of the servers, if it is not that in the URL.
    public var redisServerName = ""
    /// Connections to each server.
    public var redisConnections = 4
    /// How long a command may take. In seconds.
    public var redisTimeout = 0.05
    /// How long a connection attempt may take. In seconds.
    public var redisConnectTimeout = 0.5
    /// The most bytes of a shared result.
    public var redisMaximumValueBytes = 1_000_000
    /// After this time another node makes the result of one that was killed. In seconds.
    public var redisLease = 2.0
    /// How long a request waits for the result of another node; 0 for half of timeout. In seconds.
    public var redisWait = 0.0

    /// Creates the defaults.
    public init() {}

    /// The texts that no log line may contain.
    var secrets: [String] {
        [redisPassword, redisSentinelPassword] + [(try? RedisConfiguration(url: redis))?.password].compactMap { $0 }
    }

    /// Whether the values agree.
    func validate() throws {
        guard !redis.isEmpty else { return }
        _ = try servers()
        try ConfigurationError.requireBoth(("redis-tls-certificate", redisCertificate), ("redis-tls-key", redisKey))
        guard redis.lowercased().hasPrefix("rediss") || redisAuthorities.isEmpty && redisCertificate.isEmpty else {
            throw ConfigurationError("redis: certificates need a URL that begins with rediss")
        }
    }

    private func servers() throws -> RedisConfiguration {
        do {
            return try RedisConfiguration(url: redis)
        } catch {
            throw ConfigurationError("redis: \(error)")
        }
    }

    /// The tier; nil without servers.
    ///
    /// - Parameters:
    ///   - directory: Keeps the position in the journal of purges; nil for none.
    ///   - secrets: ``ServerConfiguration/tierSecrets``.
    /// - Throws: ``ConfigurationError`` for files that cannot be used.
    func tier(directory: String?, secrets: [[UInt8]], logger: Logger) throws -> RemoteTier? {
        guard !redis.isEmpty else { return nil }
        var servers = try servers()
        if !redisPassword.isEmpty { servers.password = redisPassword }
        if !redisPasswordFile.isEmpty {
            guard let text = try? String(contentsOfFile: redisPasswordFile, encoding: .utf8),
                let line = text.split(whereSeparator: \.isNewline).first
            else { throw ConfigurationError("redis-password-file: \(redisPasswordFile) cannot be read or is empty") }
            servers.password = String(line)
        }
        if !redisSentinelPassword.isEmpty { servers.sentinelPassword = redisSentinelPassword }
        if servers.tls != nil { servers.tls = try tls() }
        if !redisServerName.isEmpty { servers.tlsServerName = redisServerName }
        servers.connectionsPerNode = redisConnections
        servers.commandTimeout = .seconds(redisTimeout)
        servers.connectTimeout = .seconds(redisConnectTimeout)
        var configuration = RemoteTier.Configuration(redis: servers, namespace: redisNamespace)
        configuration.secrets = secrets
        configuration.maximumValueSize = redisMaximumValueBytes
        configuration.leaseTime = .seconds(redisLease)
        // Each look-up has a deadline of its own, by `redis-wait`.
        configuration.maximumWait = .seconds(86_400)
        configuration.positionPath = directory.map { $0 + "/fleet-position" }
        configuration.logger = logger
        do {
            return try RemoteTier(configuration)
        } catch {
            throw ConfigurationError("redis: \(error)")
        }
    }

    private func tls() throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        if !redisAuthorities.isEmpty { tls.trustRoots = .file(redisAuthorities) }
        guard !redisCertificate.isEmpty else { return tls }
        do {
            tls.certificateChain = try NIOSSLCertificate.fromPEMFile(redisCertificate).map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: redisKey, format: .pem))
        } catch {
            throw ConfigurationError("redis-tls-certificate: \(redisCertificate) and \(redisKey) cannot be used")
        }
        return tls
    }
}

/// A store that speaks the protocol of Amazon S3: buckets of sources, and a bucket of results.
public struct BucketConfiguration: Sendable, Equatable {
    /// Where keys come from.
    package enum Credentials: String, Sendable, CaseIterable { case automatic, environment, file, instance, anonymous }

    /// The buckets that URLs may name as sources.
    public var buckets: [String] = []
    /// The scheme, host and port of the server. Empty for AWS_ENDPOINT_URL_S3, or Amazon's.
    public var endpoint = ""
    /// The region in signatures. Empty for AWS_REGION, or us-east-1.
    public var region = ""
    package var addressing = S3Client.Addressing.automatic
    package var credentials = Credentials.automatic
    package var credentialsFile = ""
    package var profile = ""
    /// The access key, in the place of other credentials.
    public var accessKey = ""
    /// The secret key of the access key.
    public var secretKey = ""
    package var authorities = ""
    /// The bucket of results, as s3://bucket/prefix. Empty for none.
    public var resultStore = ""
    /// How long a look-up of a result may take. In seconds.
    public var resultTimeout = 2.0
    /// Results that wait to be written; further ones are dropped. In bytes.
    public var resultQueueBytes = 64_000_000

    /// Creates the defaults.
    public init() {}

    /// Whether the values agree.
    func validate() throws {
        try ConfigurationError.requireBoth(("s3-access-key", accessKey), ("s3-secret-key", secretKey))
    }

    /// The bucket and the beginning of names in ``resultStore``; nil if it is not valid.
    static func place(_ text: String) -> (bucket: String, prefix: String)? {
        guard text.hasPrefix("s3://") else { return nil }
        let parts = text.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let bucket = parts.first, !bucket.isEmpty else { return nil }
        let path = parts.count > 1 ? parts[1].split(separator: "/") : []
        guard path.allSatisfy({ $0 != "." && $0 != ".." }) else { return nil }
        return (String(bucket), path.map { $0 + "/" }.joined())
    }

    /// - Parameter timeout: The limit for one request.
    func client(timeout: Duration, maximumBytes: ByteCount) throws -> S3Client {
        var client = S3Client.Configuration.fromEnvironment()
        if !endpoint.isEmpty { client.endpoint = endpoint }
        if !region.isEmpty { client.region = region }
        client.addressing = addressing
        client.maximumBytes = maximumBytes
        client.totalTimeout = timeout
        if !authorities.isEmpty { client.certificateAuthorities = authorities }
        let file = S3CredentialSource.sharedFile(
            profile: profile.isEmpty ? nil : profile, path: credentialsFile.isEmpty ? nil : credentialsFile)
        client.credentials =
            switch credentials {
            case _ where !accessKey.isEmpty: .fixed(S3Credentials(accessKey: accessKey, secretKey: secretKey))
            case .automatic: .first([.environment, file])
            case .environment: .environment
            case .file: file
            case .instance: .instanceMetadata(endpoint: nil)
            case .anonymous: .anonymous
            }
        do {
            return try S3Client(client)
        } catch {
            throw ConfigurationError("s3-endpoint: \(error)")
        }
    }
}

extension ServerConfiguration {
    var sharedSecrets: [String] { fleet.secrets + [s3.secretKey] }
}

extension ServerSettings {
    /// The settings of buckets, in the order of the documentation.
    static let buckets: [Setting] = [
        setting(
            "s3-buckets", path: \.s3.buckets, kind: list(unit: "list", read: { $0 }, show: { $0 }),
            aliases: "S3_ALLOWED_BUCKETS"
        ) { "The buckets that URLs may name as sources, s3://bucket/key. Empty for none." },
        setting("s3-endpoint", path: \.s3.endpoint, kind: .url, aliases: "S3_ENDPOINT") {
            "The server of buckets. Empty for AWS_ENDPOINT_URL_S3, or Amazon's."
        },
        setting("s3-region", path: \.s3.region, kind: .text(), aliases: "S3_REGION") {
            "The region in signatures. Empty for AWS_REGION, or us-east-1."
        },
        setting(
            "s3-addressing", path: \.s3.addressing,
            kind: choice("automatic, path or virtualHost")
        ) { "Whether addresses name buckets in their path or their host." },
        setting(
            "s3-credentials", path: \.s3.credentials,
            kind: choice("automatic, environment, file, instance or anonymous")
        ) {
            "Where keys come from: AWS_ACCESS_KEY_ID, then the file (automatic), one of both, the role of the machine, "
                + "or nowhere."
        },
        setting("s3-credentials-file", path: \.s3.credentialsFile, kind: .path) {
            "The file of keys. Empty for AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials."
        },
        setting("s3-profile", path: \.s3.profile, kind: .text()) {
            "The section of that file. Empty for AWS_PROFILE, or default."
        },
        setting("s3-access-key", path: \.s3.accessKey, kind: .text()) {
            "The access key, in the place of other credentials."
        },
        setting("s3-secret-key", path: \.s3.secretKey, kind: .text(), secret: true) {
            "The secret key of the access key."
        },
        setting("s3-tls-ca", path: \.s3.authorities, kind: .path) {
            "A PEM file with the certificates to trust instead of the system's."
        },
        setting(
            "result-store", path: \.s3.resultStore,
            kind: .text(unit: "s3://bucket/prefix") { text in
                guard !text.isEmpty, BucketConfiguration.place(text) == nil else { return nil }
                return "it is not of the form s3://bucket/prefix"
            }
        ) { "The bucket in which results survive the loss of nodes and of the tier. Empty for none." },
        setting("result-store-timeout", path: \.s3.resultTimeout, kind: .number(0.01...60, unit: "seconds")) {
            "How long a look-up of a result in the bucket may take."
        },
        setting("result-store-queue-bytes", path: \.s3.resultQueueBytes, kind: .bytes(1_048_576...1 << 40)) {
            "Results that wait to be written; further ones are dropped."
        },
    ]

    private static func choice<Value: RawRepresentable & Sendable>(_ unit: String) -> Kind<Value>
    where Value.RawValue == String {
        Kind(unit: unit) { value in
            guard case .text(let text) = value, let choice = Value(rawValue: text) else {
                throw SettingError("it is not one of \(unit)")
            }
            return choice
        } show: { .text($0.rawValue) }
    }

    /// The settings of a fleet, in the order of the documentation.
    static let fleet: [Setting] = [
        setting(
            "redis", path: \.fleet.redis,
            kind: .text(unit: "URL") { text in
                guard !text.isEmpty else { return nil }
                do {
                    _ = try RedisConfiguration(url: text)
                    return nil
                } catch {
                    return "\(error)"
                }
            }, secret: true
        ) {
            "The Redis servers that share results: redis://, redis+sentinel:// or redis+cluster://, with rediss for "
                + "TLS."
        },
        setting("redis-password", path: \.fleet.redisPassword, kind: .text(), secret: true) {
            "The password, in the place of one in the URL."
        },
        setting("redis-password-file", path: \.fleet.redisPasswordFile, kind: .path) { "A file with the password." },
        setting("redis-sentinel-password", path: \.fleet.redisSentinelPassword, kind: .text(), secret: true) {
            "The password of Sentinels."
        },
        setting(
            "redis-namespace", path: \.fleet.redisNamespace,
            kind: .text { text in
                let isAllowed = (1...64).contains(text.utf8.count)
                    && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || ".-_".contains($0)) }
                return isAllowed ? nil : "it is not 1 to 64 letters, digits, dots, hyphens and underscores"
            }
        ) { "The beginning of all keys. Servers with equal namespaces share their results." },
        setting("redis-tls-ca", path: \.fleet.redisAuthorities, kind: .path) {
            "A PEM file with the certificates to trust instead of the system's."
        },
        setting("redis-tls-certificate", path: \.fleet.redisCertificate, kind: .path) {
            "A PEM file with the certificate of this client."
        },
        setting("redis-tls-key", path: \.fleet.redisKey, kind: .path) {
            "A PEM file with the private key of this client."
        },
        setting("redis-tls-name", path: \.fleet.redisServerName, kind: .text()) {
            "The name in the certificate of the servers, if it is not that in the URL."
        },
        setting("redis-connections", path: \.fleet.redisConnections, kind: .integer(1...64, unit: "connections")) {
            "Connections to each server."
        },
        setting("redis-timeout", path: \.fleet.redisTimeout, kind: .number(0.001...10, unit: "seconds")) {
            "How long a command may take."
        },
        setting("redis-connect-timeout", path: \.fleet.redisConnectTimeout, kind: .number(0.001...60, unit: "seconds"))
        {
            "How long a connection attempt and a purge may take."
        },
        setting("redis-max-value-bytes", path: \.fleet.redisMaximumValueBytes, kind: .bytes(1024...512_000_000)) {
            "The size of a shared result. Each node makes larger ones itself."
        },
        setting("redis-lease", path: \.fleet.redisLease, kind: .number(0.1...60, unit: "seconds")) {
            "After this time another node makes the result of one that was killed."
        },
        setting("redis-wait", path: \.fleet.redisWait, kind: .number(0...3600, unit: "seconds")) {
            "How long a request waits for the result of another node; 0 for half of timeout."
        },
    ]
}
