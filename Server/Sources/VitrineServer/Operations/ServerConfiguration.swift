import Foundation
package import Logging
import VitrineCore
public import VitrineImaging
import VitrineNetwork

/// The address of a listener.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// A host's name or address without brackets, and a port; port 0 for a free one.
    case tcp(host: String, port: Int)
    /// The path of a Unix socket.
    case unix(String)

    /// Reads `127.0.0.1:8080`, `[::1]:8080`, `:8080` (every address), `unix:/run/a.sock` or `/run/a.sock`.
    package init(_ text: String) throws {
        if text.hasPrefix("unix:") || text.hasPrefix("/") {
            let path = text.hasPrefix("/") ? text : String(text.dropFirst(5))
            // The size of sun_path, with its end.
            guard path.hasPrefix("/"), path.utf8.count < 108 else {
                throw SettingError("“\(text)” is no absolute path of at most 107 bytes")
            }
            self = .unix(path)
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port)
        else { throw SettingError("“\(text)” is no address of the form HOST:PORT, [IPV6]:PORT or unix:/PATH") }
        var host = text[..<colon]
        if host.hasPrefix("[") && host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            guard host.contains(":") else { throw SettingError("“\(text)” has no IPv6 address in its brackets") }
        } else if host.contains(":") {
            throw SettingError("“\(text)” has an IPv6 address without brackets")
        }
        self = .tcp(host: host.isEmpty ? "0.0.0.0" : String(host), port: port)
    }

    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    /// Whether only this machine can connect.
    package var isLocal: Bool {
        switch self {
        case .unix: true
        case .tcp(let host, _):
            host == "localhost" || host == "::1"
                || host.split(separator: ".").count == 4 && host.hasPrefix("127.")
                    && host.allSatisfy { $0.isNumber || $0 == "." }
        }
    }
}

/// The settings of the image server, with defaults for all.
///
/// ```swift
/// var configuration = ServerConfiguration()
/// configuration.localRoot = "/srv/pictures"
/// configuration.keys = [key]
/// configuration.salts = [salt]
/// ```
///
/// The program has settings of its own besides, for listeners, logs and limits of clients. The guide for operators has
/// the ranges and the defaults of all settings.
public struct ServerConfiguration: Sendable, Equatable {
    package enum LogFormat: String, Sendable, CaseIterable { case json, text }

    // MARK: Listeners
    package var bind = [ListenAddress.tcp(host: "127.0.0.1", port: 8080)]
    package var adminBind = [ListenAddress.tcp(host: "127.0.0.1", port: 8081)]
    package var adminHosts: [String] = []
    package var tlsCertificate = ""
    package var tlsKey = ""
    package var http2 = true
    package var keepAliveTimeout = 60.0
    package var requestTimeout = 30.0
    package var sendTimeout = 60.0
    package var maximumConnections = 10_000
    package var maximumRequests = 10_000
    package var maximumClientRequests = 2_500
    package var answerMemory = 512 << 20
    package var maximumHeaderBytes = 65_536
    package var lameDuck = 5.0
    package var stopTimeout = 20.0

    // MARK: Signatures
    /// Keys of signatures. A URL is valid if any pair of key and salt signs it.
    public var keys: [[UInt8]] = []
    /// The salt of each key.
    public var salts: [[UInt8]] = []
    package var keyFile = ""
    package var saltFile = ""
    /// Bytes of a signature before it is encoded.
    public var signatureSize = 32
    /// Signatures that are valid for every URL.
    public var trustedSignatures: [String] = []
    /// The key of signed URLs in thumbor's grammar.
    public var thumborKey = ""
    package var allowUnsigned = false

    // MARK: Pages
    package var gallery = false
    package var galleryToken = ""

    // MARK: URLs
    /// Whether URLs may be in the native grammar, that of imgproxy: images at `/SIGNATURE/…`.
    public var native = ImageHTTPConfiguration().hasNative
    /// Whether URLs may be in the grammar of thumbor, below `/thumbor`.
    public var thumbor = ImageHTTPConfiguration().thumborPrefix != nil
    /// Whether `/info` answers JSON about sources.
    public var info = ImageHTTPConfiguration().hasInformation
    /// Named options. “default” applies to every URL.
    public var presets: [String: String] = [:]
    /// Whether URLs name presets instead of options.
    public var onlyPresets = false
    /// The options that URLs may use. Empty for all.
    public var allowedOptions: [String] = []
    /// The character between the arguments of an option.
    public var argumentsSeparator = ":"

    // MARK: Sources
    /// The directory of local:/// sources. Empty for none.
    public var localRoot = ""
    /// Whether all nodes of a fleet see the same files in ``localRoot``, by a network file system for example. Their
    /// results are then shared, tiles too. Default false.
    public var localShared = false
    /// Whether /iiif answers the APIs of IIIF for the configured sources, without signatures.
    public var iiif = ImageHTTPConfiguration().hasIIIF
    /// The address of this server in documents of IIIF. Empty for that of the request.
    public var publicURL = ""
    /// The beginning of every source's address.
    public var baseURL = ""
    /// Beginnings of the addresses of allowed sources. Empty for all.
    public var allowedSources: [String] = []
    /// Whether sources may be on this machine.
    public var allowLoopbackSources = false
    /// Whether sources may have link-local addresses.
    public var allowLinkLocalSources = false
    /// Whether sources may have addresses of private networks.
    public var allowPrivateSources = false
    /// The size of a source. In bytes.
    public var maximumSourceBytes = Part.sources.maximumBytes.bytes
    /// The pixels of a source.
    public var maximumSourceMegapixels = Double(Part.rendering.limits.maximumPixels) / 1e6
    /// Redirects that the download of a source follows.
    public var maximumRedirects = Part.sources.policy.maximumRedirects
    /// How long the download of a source may take. In seconds.
    public var downloadTimeout = Part.sources.totalTimeout / .seconds(1)
    /// Simultaneous downloads.
    public var downloads = Part.rendering.admission.loads
    /// Simultaneous downloads from one host.
    public var downloadsPerHost = Part.rendering.admission.loadsPerHost
    /// The User-Agent field of downloads.
    public var userAgent = Part.sources.userAgent
    /// Fields of the requests to a host, for example its credentials.
    public var sourceHeaders: [String: [String: String]] = [:]

    // MARK: Results
    /// The quality of results whose URL names none.
    public var quality = Part.rendering.settings.quality
    /// The quality of a format.
    public var formatQuality: [ImageFormat: Int] = [:]
    /// Whether results have no Exif and XMP.
    public var stripMetadata = Part.rendering.settings.stripsMetadata
    /// Whether the author and the copyright stay.
    public var keepCopyright = Part.rendering.settings.keepsCopyright
    /// Whether images are turned upright by their metadata.
    public var autoRotate = ProcessingOptions().autoRotate
    /// Whether clients that accept WebP get it.
    public var autoWebP = Part.http.negotiation.formats.contains(.webp)
    /// Whether clients that accept AVIF get it.
    public var autoAVIF = Part.http.negotiation.formats.contains(.avif)
    /// Whether clients that accept JPEG XL get it.
    public var autoJPEGXL = Part.http.negotiation.formats.contains(.jxl)
    /// Whether the client's Width and DPR fields apply to URLs without them.
    public var clientHints = Part.http.clientHints != nil
    /// After this time, a slow format is left to the background and a faster one is answered; 0 to wait. In
    /// seconds.
    public var encodeDeadline = (Part.rendering.encodeDeadline ?? .zero) / .seconds(1)
    /// The longest side of a result.
    public var maximumResultDimension = Part.rendering.limits.maximumOutputSide
    /// Sources of these formats are answered as they are.
    public var skipProcessing: [ImageFormat] = []
    /// The image file of watermarks.
    public var watermark = ""
    /// The opacity of a watermark whose URL says 1.
    public var watermarkOpacity = Part.rendering.settings.watermarkOpacity

    // MARK: Answers
    /// How long clients and proxies may keep an image. In seconds.
    public var ttl = Part.http.cacheControl.maximumAge
    /// Whether the source's Cache-Control and Expires take the place of ttl.
    public var cacheControlPassthrough = Part.http.cacheControl.followsSource
    /// How long an error of a source is remembered. In seconds.
    public var negativeTTL = Int(Part.rendering.failures.unavailable / .seconds(1))
    /// How long an expired image is still answered while it is made anew. In seconds.
    public var staleWhileRevalidate = Int(Part.rendering.staleWhileRevalidate / .seconds(1))
    /// The Access-Control-Allow-Origin field of images. Empty for none.
    public var allowOrigin = ""
    /// The image file that is answered if a source has no image.
    public var fallbackImage = ""
    /// The status of the fallback image; 0 for that of the error.
    public var fallbackStatus = 200
    /// How long the fallback image may be kept; 0 for ttl. In seconds.
    public var fallbackTTL = 60
    /// Whether answers say in Server-Timing how long each step took.
    public var serverTiming = Part.http.sendsServerTiming

    // MARK: Resources
    /// How long an answer may take, its wait in queues included. In seconds.
    public var timeout = Part.rendering.admission.queueDeadline / .seconds(1)
    /// Simultaneous renders; 0 for twice the processors, and at least 4.
    public var workers = 0
    /// Whether decoders are refused where the kernel or the container forbids seccomp or Landlock.
    public var requireSandbox = false
    /// The memory that all renders may use at once, as estimated. In bytes.
    public var renderMemory = Part.rendering.admission.renderBytes.bytes
    /// The bytes of sources that are held at once, from the first byte of each to its render. One host has half.
    public var sourceMemory = Part.rendering.admission.sourceBytes.bytes
    /// Requests that wait for a render, and as many for a download; further ones are answered 503.
    public var queueLimit = Part.rendering.admission.queueLength
    /// The size of results in memory; 0 for none. In bytes.
    public var memoryCache = Part.rendering.resultMemory.bytes
    /// The size of decoded images that tiles of IIIF are cut from; 0 for none. In bytes.
    public var tileMemory = Part.rendering.tileMemory.bytes
    /// The directory of results and sources on disk. Empty for none.
    public var diskCache = ""
    /// The size of both on disk, half for each. In bytes.
    public var diskCacheBytes = Part.rendering.resultDisk.bytes + Part.rendering.sourceDisk.bytes

    // MARK: Clients
    package var rateLimit = 0.0
    package var rateBurst = 0
    package var rateClients = 100_000
    package var trustedProxies: [AddressRange] = []

    // MARK: Reports
    package var logLevel = Logger.Level.info
    package var logFormat = LogFormat.json
    package var logRequests = true
    package var otlpEndpoint = ""
    package var otlpHeaders: [String: String] = [:]
    package var traceRatio = 1.0
    package var serviceName = "vitrine-server"

    /// The Redis servers that share results.
    public var fleet = FleetConfiguration()
    /// Buckets of sources, and of results.
    public var s3 = BucketConfiguration()

    /// The parts that state defaults.
    private enum Part {
        static let rendering = Renderer.Configuration(cacheRoot: "")
        static let sources = rendering.sources
        static let http = ImageHTTPConfiguration()
    }

    /// Creates the defaults.
    public init() {}

    /// Reads a file of the program, in JSON if its name ends with `.json`, else in TOML.
    ///
    /// - Throws: ``ConfigurationError`` if the file cannot be read, for unknown names and for invalid values.
    public init(file path: String) throws {
        self = try Self.load(arguments: ["--config", path], environment: [:]).configuration
    }

    /// Whether a URL needs a signature.
    package var isSigned: Bool { !keys.isEmpty }

    /// The texts that no log line and no answer may contain.
    package var secrets: [String] {
        (keys + salts).map { $0.map { String(format: "%02x", $0) }.joined() } + [thumborKey, galleryToken]
            + trustedSignatures + sourceHeaders.values.flatMap(\.values) + otlpHeaders.values + sharedSecrets
    }
}

/// A configuration that the server refuses.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The exit status of a program whose configuration is wrong, EX_CONFIG of sysexits.h.
    package static let exitStatus: Int32 = 78

    /// The reason, as one line.
    public var description: String

    package init(_ description: String) {
        self.description = description.split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    /// Refuses one of two settings without the other.
    static func requireBoth(_ first: (name: String, value: String), _ second: (name: String, value: String)) throws {
        guard first.value.isEmpty != second.value.isEmpty else { return }
        let (given, missing) = first.value.isEmpty ? (second, first) : (first, second)
        throw ConfigurationError("\(given.name): it needs \(missing.name)")
    }
}

extension ServerConfiguration {
    /// A configuration and how it came about.
    package struct Loaded: Sendable {
        package var configuration: ServerConfiguration
        /// Names of the settings that are not at their defaults because of a flag, a variable or the file.
        package var given: Set<String> = []
        /// Lines for the operator about variables without an effect.
        package var warnings: [String] = []
    }

    /// Reads flags, then the environment, then the file; the first that gives a setting decides.
    ///
    /// - Parameters:
    ///   - arguments: Flags of settings and `--config FILE`, without the program's name and its commands.
    ///   - environment: `VITRINE_…` and imgproxy's variables; others are left alone.
    /// - Throws: ``ConfigurationError``: an unknown name, an invalid value, an unreadable file, contradictory values.
    package static func load(arguments: [String], environment: [String: String]) throws -> Loaded {
        try ConfigurationReader(environment).read(arguments)
    }

    /// Whether the values agree with one another, and with the sockets that are open. A start and a reload are judged
    /// by this alone.
    ///
    /// - Parameter addresses: Those of the main listeners, nil for a socket that does not tell its own. Default: the
    ///   addresses of ``bind``, before any socket is open.
    package func validate(listening addresses: [ListenAddress?]? = nil) throws {
        try ConfigurationValidator(configuration: self).validate(listening: addresses ?? bind)
    }

    /// Checks files and directories that the server needs: once, before it listens.
    package func checkFiles() throws {
        try ConfigurationValidator(configuration: self).checkFiles()
    }

    /// The settings of `other` that differ and that only a start of the program applies.
    package func differencesThatNeedARestart(_ other: ServerConfiguration) -> [String] {
        ServerSettings.all.filter { !$0.isReloadable && $0.get(self) != $0.get(other) }.map(\.name)
    }

    /// One line of TOML for each setting in effect; secrets are masked.
    package func toml(given: Set<String> = []) -> String {
        ServerSettings.all.map { setting in
            "\(setting.name) = \(masked(setting).toml)\(given.contains(setting.name) ? "" : "  # default")\n"
        }.joined()
    }

    /// One JSON object; secrets are masked.
    package var json: String {
        SettingValue.table(Dictionary(uniqueKeysWithValues: ServerSettings.all.map { ($0.name, masked($0)) })).json
    }

    /// This configuration with the reloadable settings of another one.
    package func withReloadableSettings(of other: ServerConfiguration) -> ServerConfiguration {
        var result = self
        for setting in ServerSettings.all where setting.isReloadable { setting.copy(other, &result) }
        return result
    }

    private func masked(_ setting: Setting) -> SettingValue {
        let value = setting.get(self)
        return setting.isSecret ? value.masked : value
    }
}
