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
    /// Whether pictures are turned upright by their metadata.
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
    /// The size of decoded pictures that tiles of IIIF are cut from; 0 for none. In bytes.
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
        let byName = Dictionary(uniqueKeysWithValues: settings.map { ($0.name, $0) })
        var loaded = Loaded(configuration: ServerConfiguration())
        var file = environment["VITRINE_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        var layers: [[(setting: Setting, value: SettingValue, origin: String)]] = []

        // Flags.
        var flags: [String: SettingValue] = [:]
        var order: [String] = []
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            guard argument.hasPrefix("--"), argument.count > 2 else {
                throw ConfigurationError("“\(argument)” is not a flag; see --help")
            }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            let isSwitch = byName[name]?.isSwitch ?? false
            guard name == "config" || byName[name] != nil else {
                throw ConfigurationError("--\(name): there is no such flag\(suggestion(for: name)); see --help")
            }
            let text: String
            if parts.count == 2 {
                text = String(parts[1])
            } else if isSwitch, index == arguments.count || arguments[index].hasPrefix("--") {
                text = "true"
            } else if index < arguments.count {
                text = arguments[index]
                index += 1
            } else {
                throw ConfigurationError("--\(name): its value is missing")
            }
            if name == "config" {
                file = text
            } else if let earlier = flags[name] {
                guard byName[name]?.isList == true, case .text(let first) = earlier else {
                    throw ConfigurationError("--\(name): it is given twice")
                }
                flags[name] = .text("\(first),\(text)")
            } else {
                flags[name] = .text(text)
                order.append(name)
            }
        }
        layers.append(
            order.compactMap { name in
                guard let setting = byName[name], let value = flags[name] else { return nil }
                return (setting, value, "--\(name)")
            })
        layers.append(try variables(environment, &loaded.warnings))
        if let file { layers.append(try values(ofFile: file, byName)) }

        for layer in layers {
            for (setting, value, origin) in layer where loaded.given.insert(setting.name).inserted {
                do {
                    try setting.set(&loaded.configuration, value)
                } catch let error as SettingError {
                    throw ConfigurationError("\(origin): \(error.reason)")
                }
            }
        }
        try loaded.configuration.readCredentials()
        try loaded.configuration.validate()
        return loaded
    }

    /// The settings that the environment gives.
    private static func variables(
        _ environment: [String: String], _ warnings: inout [String]
    ) throws -> [(setting: Setting, value: SettingValue, origin: String)] {
        var result: [(setting: Setting, value: SettingValue, origin: String)] = []
        var known: Set<String> = ["VITRINE_CONFIG"]
        // Variables of the library and of its builds.
        known.formUnion(
            ["AGENT", "BROWSER", "PDF", "SANITIZE_THREADS", "STRICT", "TEXT", "VIDEO", "WORKER", "WORKER_SANDBOX"]
                .map { "VITRINE_" + $0 })
        for setting in settings {
            known.insert(setting.variable)
            known.formUnion(setting.aliases)
            var found: (name: String, text: String)?
            for name in [setting.variable] + setting.aliases {
                // An empty variable is one that is not set.
                guard let text = environment[name], !text.isEmpty else { continue }
                if let found, found.text != text {
                    throw ConfigurationError("\(name): it contradicts \(found.name)")
                }
                found = found ?? (name, text)
            }
            if let found { result.append((setting, .text(found.text), found.name)) }
        }
        for name in environment.keys.sorted() where !known.contains(name) && environment[name] != "" {
            if name.hasPrefix("VITRINE_") {
                let similar = suggestion(for: name.dropFirst(8).lowercased().replacing("_", with: "-"))
                throw ConfigurationError("\(name): there is no such setting\(similar)")
            }
            guard name.hasPrefix("IMGPROXY_") else { continue }
            if let reason = refusedVariables[name] { throw ConfigurationError("\(name): \(reason)") }
            warnings.append("\(name) has no effect")
        }
        return result
    }

    /// Variables of imgproxy that limit or protect something. Ignoring one would be less safe than its operator thinks.
    private static let refusedVariables = [
        "IMGPROXY_SECRET": "requests with a secret are not supported; use signatures",
        "IMGPROXY_PATH_PREFIX": "prefixes of paths are not supported; remove the prefix in the proxy in front",
        "IMGPROXY_MAX_ANIMATION_FRAMES": "limits of animations are not configurable",
        "IMGPROXY_MAX_ANIMATION_FRAME_RESOLUTION": "limits of animations are not configurable",
        "IMGPROXY_MAX_CHAINED_PIPELINES": "pipelines are not chained; remove the variable",
        "IMGPROXY_ALLOWED_INFO_OPTIONS": "options of /info are not limited apart; use VITRINE_ALLOWED_OPTIONS",
        "IMGPROXY_INFO_ONLY_PRESETS": "presets of /info are those of images; use VITRINE_ONLY_PRESETS",
        "IMGPROXY_SOURCE_URL_ENCRYPTION_KEY": "encrypted sources are not supported; use signatures",
        "IMGPROXY_VIDEO_THUMBNAIL_MAX_ANALYZE_DURATION": "the analysis of videos has limits of its own",
        "IMGPROXY_S3_ALLOWED_BUCKETS": "buckets are listed in VITRINE_S3_BUCKETS, and no others are loaded",
        "IMGPROXY_S3_DENIED_BUCKETS": "buckets are listed in VITRINE_S3_BUCKETS, and no others are loaded",
        "IMGPROXY_GCS_ALLOWED_BUCKETS": "Google Cloud Storage is not supported; use its S3 interface",
        "IMGPROXY_GCS_DENIED_BUCKETS": "Google Cloud Storage is not supported; use its S3 interface",
        "IMGPROXY_ABS_ALLOWED_BUCKETS": "Azure Blob Storage is not supported",
        "IMGPROXY_ABS_DENIED_BUCKETS": "Azure Blob Storage is not supported",
        "IMGPROXY_SWIFT_ALLOWED_BUCKETS": "OpenStack Swift is not supported; use its S3 interface",
        "IMGPROXY_SWIFT_DENIED_BUCKETS": "OpenStack Swift is not supported; use its S3 interface",
        "IMGPROXY_PROMETHEUS_BIND": "metrics are on the admin listener; use VITRINE_ADMIN_BIND",
        "IMGPROXY_NETWORK": "the kind of a socket is part of VITRINE_BIND: HOST:PORT or unix:/PATH",
    ]

    private static func values(
        ofFile path: String, _ byName: [String: Setting]
    ) throws -> [(setting: Setting, value: SettingValue, origin: String)] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ConfigurationError("\(path): the file cannot be read")
        }
        let values: [String: SettingValue]
        do {
            if path.hasSuffix(".json") {
                values = try SettingValue.json(data)
            } else {
                guard let text = String(validating: data, as: UTF8.self) else {
                    throw SettingError("the file is not UTF-8")
                }
                values = try TOMLReader.read(text)
            }
        } catch let error as SettingError {
            throw ConfigurationError("\(path): \(error.reason)")
        }
        return try values.keys.sorted().map { name in
            guard let setting = byName[name], let value = values[name] else {
                throw ConfigurationError("\(path): \(name): there is no such setting\(suggestion(for: name))")
            }
            return (setting, value, "\(path): \(name)")
        }
    }

    /// `, did you mean “…”?` if a setting's name is similar.
    private static func suggestion(for name: String) -> String {
        let similar = settings.map { ($0.name, distance(Array(name.utf8), Array($0.name.utf8))) }.min { $0.1 < $1.1 }
        guard let similar, similar.1 <= max(2, name.count / 4) else { return "" }
        return "; did you mean “\(similar.0)”?"
    }

    /// The Levenshtein distance.
    private static func distance(_ first: [UInt8], _ second: [UInt8]) -> Int {
        var row = Array(0...second.count)
        for (i, a) in first.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in second.enumerated() {
                (diagonal, row[j + 1]) = (row[j + 1], min(row[j] + 1, row[j + 1] + 1, diagonal + (a == b ? 0 : 1)))
            }
        }
        return row[second.count]
    }

    /// Adds the keys and salts of files, one a line.
    private mutating func readCredentials() throws {
        func pairs(_ path: String, _ name: String) throws -> [[UInt8]] {
            guard !path.isEmpty else { return [] }
            guard let data = FileManager.default.contents(atPath: path),
                let text = String(validating: data, as: UTF8.self)
            else { throw ConfigurationError("\(name): \(path) cannot be read") }
            let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
                .filter { !$0.isEmpty }
            guard !lines.isEmpty else { throw ConfigurationError("\(name): \(path) is empty") }
            return try lines.enumerated().map { number, line in
                guard let bytes = [UInt8](hexadecimal: line), !bytes.isEmpty else {
                    throw ConfigurationError("\(name): \(path): line \(number + 1) is not hexadecimal")
                }
                return bytes
            }
        }
        keys += try pairs(keyFile, "key-file")
        salts += try pairs(saltFile, "salt-file")
    }

    /// Whether the values agree with one another, and with the sockets that are open. A start and a reload are judged
    /// by this alone.
    ///
    /// - Parameter addresses: Those of the main listeners, nil for a socket that does not tell its own. Default: the
    ///   addresses of ``bind``, before any socket is open.
    package func validate(listening addresses: [ListenAddress?]? = nil) throws {
        guard keys.count == salts.count else {
            throw ConfigurationError(
                "key: there are \(keys.count) keys and \(salts.count) salts; every key needs a salt of its own")
        }
        try requireSignatures(on: addresses ?? bind)
        try ConfigurationError.requireBoth(("tls-certificate", tlsCertificate), ("tls-key", tlsKey))
        guard !bind.isEmpty else { throw ConfigurationError("bind: at least one address is needed") }
        for address in adminBind where bind.contains(address) {
            if case .tcp(_, 0) = address { continue }
            throw ConfigurationError("admin-bind: \(address) is an address of bind as well")
        }
        guard !onlyPresets || !presets.isEmpty else {
            throw ConfigurationError("only-presets: no preset is defined, so that every URL would be refused")
        }
        try checkIIIF()
        guard !gallery || !localRoot.isEmpty else { throw ConfigurationError("gallery: it needs local-root") }
        guard galleryToken.isEmpty || gallery else { throw ConfigurationError("gallery-token: it needs gallery") }
        guard rateBurst == 0 || rateLimit > 0 else {
            throw ConfigurationError("rate-burst: it needs rate-limit")
        }
        // A printed configuration gives every setting, most of them with their defaults.
        let defaults = ServerConfiguration()
        guard !watermark.isEmpty || watermarkOpacity == defaults.watermarkOpacity else {
            throw ConfigurationError("watermark-opacity: it needs watermark")
        }
        guard !diskCache.isEmpty || diskCacheBytes == defaults.diskCacheBytes else {
            throw ConfigurationError("disk-cache-bytes: it needs disk-cache")
        }
        try validateShared()
    }

    /// Refuses to serve unsigned URLs to other machines.
    private func requireSignatures(on addresses: [ListenAddress?]) throws {
        guard !isSigned, !allowUnsigned, let open = addresses.first(where: { $0?.isLocal != true }) else { return }
        // What does not say where it listens may listen anywhere.
        let place = open?.description ?? "an inherited socket"
        throw ConfigurationError(
            "bind: \(place) is reachable from other machines, but URLs are not signed; set key and salt, "
                + "or allow-unsigned")
    }

    /// Checks files and directories that the server needs: once, before it listens.
    package func checkFiles() throws {
        func directory(_ path: String) -> Bool {
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
        }
        if !localRoot.isEmpty {
            guard directory(localRoot), FileManager.default.isReadableFile(atPath: localRoot) else {
                throw ConfigurationError("local-root: \(localRoot) is not a readable directory")
            }
        }
        for (name, path) in [
            ("tls-certificate", tlsCertificate), ("tls-key", tlsKey), ("watermark", watermark),
            ("fallback-image", fallbackImage), ("redis-password-file", fleet.redisPasswordFile),
            ("redis-tls-ca", fleet.redisAuthorities), ("redis-tls-certificate", fleet.redisCertificate),
            ("redis-tls-key", fleet.redisKey), ("s3-credentials-file", s3.credentialsFile),
            ("s3-tls-ca", s3.authorities),
        ] where !path.isEmpty {
            guard !directory(path), let file = FileHandle(forReadingAtPath: path) else {
                throw ConfigurationError("\(name): \(path) cannot be read")
            }
            try? file.close()
        }
        if !diskCache.isEmpty {
            // Attempted, because permissions say nothing about a read-only file system.
            let probe = "\(diskCache)/.vitrine-\(ProcessInfo.processInfo.processIdentifier)"
            do {
                try FileManager.default.createDirectory(atPath: diskCache, withIntermediateDirectories: true)
                try Data().write(to: URL(fileURLWithPath: probe))
                try FileManager.default.removeItem(atPath: probe)
            } catch {
                throw ConfigurationError("disk-cache: \(diskCache) is not a writable directory")
            }
        }
    }

    /// The settings of `other` that differ and that only a start of the program applies.
    package func differencesThatNeedARestart(_ other: ServerConfiguration) -> [String] {
        Self.settings.filter { !$0.isReloadable && $0.get(self) != $0.get(other) }.map(\.name)
    }

    /// One line of TOML for each setting in effect; secrets are masked.
    package func toml(given: Set<String> = []) -> String {
        Self.settings.map { setting in
            "\(setting.name) = \(masked(setting).toml)\(given.contains(setting.name) ? "" : "  # default")\n"
        }.joined()
    }

    /// One JSON object; secrets are masked.
    package var json: String {
        SettingValue.table(Dictionary(uniqueKeysWithValues: Self.settings.map { ($0.name, masked($0)) })).json
    }

    private func masked(_ setting: Setting) -> SettingValue {
        let value = setting.get(self)
        return setting.isSecret ? value.masked : value
    }
}

extension ServerConfiguration {
    /// This configuration with the reloadable settings of another one.
    package func withReloadableSettings(of other: ServerConfiguration) -> ServerConfiguration {
        var result = self
        for setting in Self.settings where setting.isReloadable { setting.copy(other, &result) }
        return result
    }
}
