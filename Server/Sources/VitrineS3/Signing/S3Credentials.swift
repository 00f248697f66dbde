import Foundation
import Synchronization
package import VitrineCore
package import VitrineNetwork

/// The keys of an S3 account. Descriptions show the access key only.
public struct S3Credentials: Sendable, Hashable {
    /// The public part, which is sent with every request.
    public var accessKey: String
    /// The secret, which signs requests and is never sent.
    public var secretKey: String
    /// The token of temporary credentials.
    public var sessionToken: String?
    /// When temporary credentials end, since 1970; nil if unknown or never.
    package var expires: Duration?

    /// Creates credentials.
    ///
    /// - Parameters:
    ///   - accessKey: The public part.
    ///   - secretKey: The secret.
    ///   - sessionToken: The token of temporary credentials. Default: none.
    public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
        (self.accessKey, self.secretKey, self.sessionToken) = (accessKey, secretKey, sessionToken)
    }

    /// Checks that the parts can be sent in header fields.
    func checked() throws(S3Error) -> S3Credentials {
        for part in [accessKey, secretKey, sessionToken ?? "-"] {
            guard !part.isEmpty, part.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw .noCredentials(reason: "a key or token is empty, or contains spaces or control characters")
            }
        }
        return self
    }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The access key.
    public var description: String { "S3Credentials(\(accessKey))" }
    /// The access key.
    public var debugDescription: String { description }
    /// A mirror that shows the access key only.
    public var customMirror: Mirror { Mirror(self, children: ["accessKey": accessKey]) }
}

/// Where a client finds its credentials.
public indirect enum S3CredentialSource: Sendable {
    /// These credentials.
    case fixed(S3Credentials)
    /// None: requests are not signed.
    case anonymous
    /// The variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
    case environment
    /// A profile of a shared credentials file.
    ///
    /// A nil profile is `AWS_PROFILE` or `default`. A nil path is `AWS_SHARED_CREDENTIALS_FILE` or
    /// `~/.aws/credentials`. The file is read again when the server refuses its keys.
    case sharedFile(profile: String?, path: String?)
    /// The role of the virtual machine, by the second version of the instance metadata service.
    ///
    /// Any process on the machine may ask this service, and other networks may have something else at its address. It
    /// is therefore never asked unless this case is named. A nil endpoint is `http://169.254.169.254`.
    case instanceMetadata(endpoint: String?)
    /// The first of several sources that has credentials.
    case first([S3CredentialSource])

    /// The environment, then the shared credentials file.
    public static let automatic = S3CredentialSource.first([.environment, .sharedFile(profile: nil, path: nil)])
}

/// Loads credentials once for all requests, and again before they end or when a server refuses them.
package final class CredentialProvider: Sendable {
    private typealias Outcome = Result<S3Credentials?, S3Error>

    private struct State {
        var current: Outcome?
        /// When a failure is forgotten, since 1970.
        var retryAt = Duration.zero
        var load: Task<Outcome, Never>?
    }

    /// Temporary credentials are renewed when less is left.
    private static let margin = Duration.seconds(300)
    /// A failure is not repeated sooner.
    private static let pause = Duration.seconds(1)

    private let source: S3CredentialSource
    private let environment: @Sendable (String) -> String?
    private let metadata: InstanceMetadata
    private let clock: WallClock
    private let state = Mutex(State())

    package init(
        _ source: S3CredentialSource, environment: @escaping @Sendable (String) -> String?,
        transport: any HTTPTransport, clock: WallClock
    ) {
        self.source = source
        self.environment = environment
        self.clock = clock
        metadata = InstanceMetadata(transport: transport)
    }

    /// Returns the credentials; nil for an anonymous client.
    package func credentials() async throws(S3Error) -> S3Credentials? {
        let now = clock.now
        let task: Task<Outcome, Never>
        let usable: S3Credentials?
        switch state.withLock({ Self.step(&$0, now, load: { self.startLoading() }) }) {
        case .known(let outcome): return try outcome.get()
        case .loading(let started, let old): (task, usable) = (started, old)
        }
        let outcome = await task.value
        if case .failure = outcome, let usable { return usable }
        return try outcome.get()
    }

    /// Forgets credentials that a server refuses.
    ///
    /// - Returns: Whether another attempt may find others.
    package func renew(_ refused: S3Credentials) -> Bool {
        switch source {
        case .fixed, .anonymous: return false
        default: break
        }
        state.withLock { state in
            guard case .success(let current?) = state.current, current == refused else { return }
            state.current = nil
        }
        return true
    }

    private enum Step {
        case known(Outcome)
        /// The load, and the credentials to use if it fails.
        case loading(Task<Outcome, Never>, S3Credentials?)
    }

    private static func step(_ state: inout State, _ now: Duration, load: () -> Task<Outcome, Never>) -> Step {
        var usable: S3Credentials?
        switch state.current {
        case .success(let credentials):
            guard let expires = credentials?.expires, expires - now < margin else {
                return .known(.success(credentials))
            }
            // A failed renewal is not repeated at once while the old ones are still valid.
            if expires > now, now < state.retryAt { return .known(.success(credentials)) }
            if expires > now { usable = credentials }
        case .failure(let error):
            if now < state.retryAt { return .known(.failure(error)) }
        case nil: break
        }
        if let load = state.load { return .loading(load, usable) }
        let task = load()
        state.load = task
        return .loading(task, usable)
    }

    /// The load belongs to all waiting requests, so it does not end with the task of one.
    private func startLoading() -> Task<Outcome, Never> {
        Task {
            let outcome = await self.outcome(of: self.source)
            self.state.withLock { state in
                state.load = nil
                switch (outcome, state.current) {
                case (.failure, .success(let old?)) where old.expires.map({ $0 > self.clock.now }) ?? false:
                    state.retryAt = self.clock.now + Self.pause
                case (.failure, _):
                    state.current = outcome
                    state.retryAt = self.clock.now + Self.pause
                case (.success, _): state.current = outcome
                }
            }
            return outcome
        }
    }

    private func outcome(of source: S3CredentialSource) async -> Outcome {
        do throws(S3Error) { return .success(try await load(source)) } catch { return .failure(error) }
    }

    private func load(_ source: S3CredentialSource) async throws(S3Error) -> S3Credentials? {
        switch source {
        case .fixed(let credentials): return try credentials.checked()
        case .anonymous: return nil
        case .environment: return try fromEnvironment()
        case .sharedFile(let profile, let path): return try await fromFile(profile, path)
        case .instanceMetadata(let endpoint): return try await metadata.credentials(at: endpoint).checked()
        case .first(let sources):
            var reasons: [String] = []
            for source in sources {
                switch await outcome(of: source) {
                case .success(let credentials): return credentials
                case .failure(.noCredentials(let reason)): reasons.append(reason)
                case .failure(let error): throw error
                }
            }
            throw .noCredentials(reason: reasons.isEmpty ? "no source is configured" : reasons.joined(separator: "; "))
        }
    }

    private func fromEnvironment() throws(S3Error) -> S3Credentials {
        guard let access = environment("AWS_ACCESS_KEY_ID"), let secret = environment("AWS_SECRET_ACCESS_KEY"),
            !access.isEmpty, !secret.isEmpty
        else { throw .noCredentials(reason: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set") }
        let token = environment("AWS_SESSION_TOKEN").flatMap { $0.isEmpty ? nil : $0 }
        return try S3Credentials(accessKey: access, secretKey: secret, sessionToken: token).checked()
    }

    private func fromFile(_ profile: String?, _ path: String?) async throws(S3Error) -> S3Credentials {
        let profile = profile ?? environment("AWS_PROFILE").flatMap { $0.isEmpty ? nil : $0 } ?? "default"
        var file = path ?? environment("AWS_SHARED_CREDENTIALS_FILE") ?? ""
        if file.isEmpty {
            guard let home = environment("HOME"), !home.isEmpty else {
                throw .noCredentials(reason: "HOME is not set")
            }
            file = home + "/.aws/credentials"
        }
        let name = file
        let bytes = await BlockingExecutor.shared.run { Self.read(name) }
        guard let bytes, let text = String(validating: bytes, as: UTF8.self) else {
            throw .noCredentials(reason: "\(name) cannot be read")
        }
        let entries = CredentialsFile.profile(profile, of: text)
        guard let entries else { throw .noCredentials(reason: "\(name) has no profile \(profile)") }
        guard let access = entries["aws_access_key_id"], let secret = entries["aws_secret_access_key"] else {
            throw .noCredentials(reason: "the profile \(profile) of \(name) has no access key and secret key")
        }
        return try S3Credentials(
            accessKey: access, secretKey: secret, sessionToken: entries["aws_session_token"]
        ).checked()
    }

    /// Returns the bytes of a regular file of at most 1 MiB.
    private static func read(_ path: String) -> [UInt8]? {
        let attributes = try? FileManager.default.attributesOfItem(
            atPath: URL(fileURLWithPath: path).resolvingSymlinksInPath().path)
        guard let attributes, attributes[.type] as? FileAttributeType == .typeRegular,
            let size = attributes[.size] as? NSNumber, size.intValue <= 1 << 20,
            let data = FileManager.default.contents(atPath: path)
        else { return nil }
        return [UInt8](data)
    }
}

/// The shared credentials file: profiles in brackets, and a `name = value` on each line.
package enum CredentialsFile {
    /// Returns the entries of a profile, with names in lowercase; nil if there is no such profile.
    package static func profile(_ name: String, of text: String) -> [String: String]? {
        var entries: [String: String]?
        var isInside = false
        for line in text.split(whereSeparator: \.isNewline) {
            let trimmed = line.trimmingPrefix { $0 == " " || $0 == "\t" }
            guard let first = trimmed.first, first != "#", first != ";" else { continue }
            if first == "[" {
                let title = trimmed.dropFirst().prefix { $0 != "]" }.split { $0 == " " || $0 == "\t" }
                isInside = title == [Substring(name)] || title == ["profile", Substring(name)]
                if isInside, entries == nil { entries = [:] }
                continue
            }
            // Indented lines belong to settings of other services.
            guard isInside, trimmed.startIndex == line.startIndex, let equals = line.firstIndex(of: "=") else {
                continue
            }
            let key = blankless(line[..<equals]).lowercased()
            entries?[key] = blankless(line[line.index(after: equals)...])
        }
        return entries
    }

    private static func blankless(_ text: Substring) -> String { text.trimmingCharacters(in: .whitespaces) }
}

/// The instance metadata service of virtual machines, in its second version, whose requests need a session token.
///
/// Source: Amazon EC2 User Guide, "Use the Instance Metadata Service to access instance metadata".
struct InstanceMetadata: Sendable {
    private struct Answer: Decodable {
        var Code: String?
        var AccessKeyId: String
        var SecretAccessKey: String
        var Token: String?
        var Expiration: String?
    }

    private static let path = "/latest/meta-data/iam/security-credentials/"
    let transport: any HTTPTransport

    func credentials(at endpoint: String?) async throws(S3Error) -> S3Credentials {
        let base = endpoint ?? "http://169.254.169.254"
        let token = try await text(
            base + "/latest/api/token", method: "PUT", headers: ["X-aws-ec2-metadata-token-ttl-seconds": "21600"])
        let fields: HTTPHeaders = ["X-aws-ec2-metadata-token": token]
        let roles = try await text(base + Self.path, method: "GET", headers: fields)
        guard let role = roles.split(whereSeparator: \.isNewline).first else {
            throw .noCredentials(reason: "the virtual machine has no role")
        }
        let json = try await text(
            base + Self.path + RequestSigner.encoded(String(role)), method: "GET", headers: fields)
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(json.utf8)),
            answer.Code.map({ $0 == "Success" }) ?? true
        else { throw .noCredentials(reason: "the answer of the instance metadata service is not valid") }
        var credentials = S3Credentials(
            accessKey: answer.AccessKeyId, secretKey: answer.SecretAccessKey, sessionToken: answer.Token)
        credentials.expires = answer.Expiration.flatMap(S3Time.parse(iso:))
        return credentials
    }

    private func text(_ address: String, method: String, headers: HTTPHeaders) async throws(S3Error) -> String {
        guard let url = URL(string: address) else {
            throw .noCredentials(reason: "the address of the instance metadata service is not valid")
        }
        var request = HTTPRequest(url: url, method: method, headers: headers)
        request.connectTimeout = .seconds(1)
        request.idleTimeout = .seconds(2)
        request.totalTimeout = .seconds(3)
        request.maximumBodySize = .kibibytes(64)
        request.acceptsCompression = false
        if method == "PUT" { request.body = [] }
        do throws(NetworkError) {
            let response = try await transport.load(request)
            let bytes = try await response.body.collect(upTo: .kibibytes(64))
            if response.head.status == 200, let text = String(validating: bytes, as: UTF8.self), !text.isEmpty {
                return text
            }
        } catch {
            throw .noCredentials(reason: "the instance metadata service does not answer")
        }
        throw .noCredentials(reason: "the instance metadata service refuses to answer")
    }
}
