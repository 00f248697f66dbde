#if os(Linux)
import CVitrineCurl
public import VitrineCore

extension CurlLoader {
    /// How a ``CurlLoader`` connects.
    public struct Configuration: Sendable {
        /// How many connections to one host at a time (R76). Requests beyond wait, the most urgent go first. Over one
        /// HTTP/2 connection a hundred requests are under way. Default: 10.
        public var connectionsPerHost = 10
        /// How many connections in all. Default: 256.
        public var connections = 256
        /// Whether HTTP/2 is used where a server offers it. Default: true.
        public var allowsHTTP2 = true
        /// Who connects in the loader's place. Default: whom the environment names.
        public var proxy = Proxy.environment
        /// A file of certificates (PEM) to trust instead of the system's.
        public var certificateAuthorities: String?
        /// What the loader proves who it is with, where a server asks.
        public var clientCertificate: ClientCertificate?
        /// What the loader calls itself; nil for nothing. Default: `Vitrine`.
        public var userAgent: String? = "Vitrine"
        /// How much of a body is received before anybody reads it. Default: 512 KiB.
        public var receiveWindow = ByteCount.kibibytes(512)
        /// The most bytes of a response's header. Default: 64 KiB.
        public var headerSize = ByteCount.kibibytes(64)
        /// The most fields of a response's header. Default: 200.
        public var headerCount = 200

        /// Bytes read from the system at a time.
        var bufferSize = 32 << 10
        /// The same for what is meant to be large.
        var largeBufferSize = 256 << 10

        public init() {}
    }

    /// Who connects in a loader's place.
    public enum Proxy: Sendable, Hashable {
        /// Whom `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` name when the loader is made.
        case environment
        /// Nobody.
        case none
        /// `http://host:port`, `https://…`, `socks5h://…` and what else libcurl knows, for all hosts.
        case url(String)
    }

    /// A certificate and its key, as PEM files.
    public struct ClientCertificate: Sendable {
        /// The file of the certificate.
        public var certificate: String
        /// The file of the key; nil if it is in the same.
        public var key: String?
        /// What the key is encrypted with.
        public var password: String?

        public init(certificate: String, key: String? = nil, password: String? = nil) {
            self.certificate = certificate
            self.key = key
            self.password = password
        }
    }
}

extension CurlLoader.Configuration {
    func makeLoop(callbacks: ccurl_callbacks) -> OpaquePointer? {
        var options = ccurl_options()
        options.connections_per_host = max(1, connectionsPerHost)
        options.connections = max(1, connections)
        options.header_size = headerSize.bytes
        options.header_count = Int32(clamping: headerCount)
        var callbacks = callbacks
        return withPath(certificateAuthorities) { authorities in
            withPath(clientCertificate?.certificate) { certificate in
                withPath(clientCertificate?.key) { key in
                    withText(clientCertificate?.password) { password in
                        options.ca_file = authorities
                        options.client_certificate = certificate
                        options.client_key = key
                        options.client_key_password = password
                        return ccurl_loop_create(&options, &callbacks)
                    }
                }
            }
        }
    }

    /// Paths may contain bytes that are not UTF-8.
    private func withPath<Result>(_ path: String?, _ body: (UnsafePointer<CChar>?) -> Result?) -> Result? {
        guard let path else { return body(nil) }
        return PathText.withSystemPath(path, failure: nil) { body($0) }
    }

    private func withText<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        guard let text else { return body(nil) }
        return text.withCString { body($0) }
    }
}
#endif
