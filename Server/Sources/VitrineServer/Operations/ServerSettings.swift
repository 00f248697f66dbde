import Foundation
import Logging
import VitrineImaging

/// A setting: one name, from which its flag (`--name`), its variable (`VITRINE_NAME`) and its key in files follow.
package struct Setting: Sendable {
    package var name: String
    /// The unit or the form of the value, for example `seconds`.
    package var unit: String
    package var help: String
    /// Variables of imgproxy that mean the same.
    package var aliases: [String] = []
    /// Whether its value is never shown.
    package var isSecret = false
    /// Whether SIGHUP applies a change.
    package var isReloadable = false
    /// Whether its flag stands alone.
    package var isSwitch = false
    /// Whether its flag may be repeated.
    package var isList = false
    package var set: @Sendable (inout ServerConfiguration, SettingValue) throws -> Void
    package var get: @Sendable (ServerConfiguration) -> SettingValue
    /// Copies the value from one configuration to another.
    package var copy: @Sendable (_ from: ServerConfiguration, _ to: inout ServerConfiguration) -> Void

    package var variable: String { "VITRINE_" + name.uppercased().replacing("-", with: "_") }
}

private let hexadecimal = list(
    unit: "hexadecimal, comma-separated",
    read: { text in
        // The text is not part of the message: it may be most of a key.
        guard let bytes = [UInt8](hexadecimal: text), !bytes.isEmpty else {
            throw SettingError("a value is not hexadecimal")
        }
        return bytes
    }, show: { $0.map { String(format: "%02x", $0) }.joined() })
private let texts = list(unit: "list", read: { $0 }, show: { $0 })
private let addresses = Kind<[ListenAddress]>(unit: "HOST:PORT or unix:/PATH, list", isList: true) { value in
    if value == .text("off") { return [] }
    return try list(unit: "", read: { try ListenAddress($0) }, show: \.description).read(value)
} show: { .list($0.map { .text($0.description) }) }
private let formats = list(
    unit: "formats, list", read: { try format($0) }, show: { $0.rawValue })

private func format(_ name: String) throws -> ImageFormat {
    let lowercased = name.lowercased()
    guard let format = ImageFormat(rawValue: lowercased == "jpg" ? "jpeg" : lowercased) else {
        throw SettingError("“\(name)” is not a format")
    }
    return format
}

private func headers(_ unit: String) -> Kind<[String: String]> {
    table(
        unit: unit,
        key: { name in
            guard !name.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }) else {
                throw SettingError("it is not the name of a field")
            }
            return name
        }, name: { $0 }, value: .text())
}

func setting<Value: Sendable>(
    _ name: String, path: any WritableKeyPath<ServerConfiguration, Value> & Sendable, kind: Kind<Value>,
    aliases: String..., secret: Bool = false, reloads: Bool = false, help: () -> String
) -> Setting {
    Setting(
        name: name, unit: kind.unit, help: help(), aliases: aliases.map { "IMGPROXY_" + $0 }, isSecret: secret,
        isReloadable: reloads, isSwitch: kind.isSwitch, isList: kind.isList,
        set: { $0[keyPath: path] = try kind.read($1) }, get: { kind.show($0[keyPath: path]) },
        copy: { $1[keyPath: path] = $0[keyPath: path] })
}

/// The table of settings.
package enum ServerSettings {
    /// Every setting, in the order of the documentation.
    package static let all: [Setting] = [
        // Listeners
        setting("bind", path: \.bind, kind: addresses, aliases: "BIND") {
            "Addresses that serve images. Sockets that systemd passes replace them."
        },
        setting("admin-bind", path: \.adminBind, kind: addresses) {
            "Addresses of metrics, health, configuration and purges, or “off”. Never public."
        },
        setting(
            "admin-hosts", path: \.adminHosts,
            kind: list(
                unit: "names, list",
                read: { name in
                    guard IIIFDocument.isAuthority(name), !name.contains(":") else {
                        throw SettingError("“\(name)” is not the name of a host without a port")
                    }
                    return name
                }, show: { $0 }), reloads: true
        ) { "Names by which clients may ask the admin listener, besides addresses and localhost." },
        setting("tls-certificate", path: \.tlsCertificate, kind: .path, reloads: true) {
            "A PEM file with the certificate and its chain. Empty for cleartext."
        },
            setting("tls-key", path: \.tlsKey, kind: .path, reloads: true) {
                "A PEM file with the certificate's private key."
            },
        setting("http2", path: \.http2, kind: .boolean) { "Whether clients may use HTTP/2, with TLS or in cleartext." },
        setting(
                "keep-alive-timeout", path: \.keepAliveTimeout, kind: .number(1...3600, unit: "seconds"),
                aliases: "KEEP_ALIVE_TIMEOUT"
        ) { "How long a connection may be idle, and how long the head of a request may take." },
        setting(
                "request-timeout", path: \.requestTimeout, kind: .number(1...3600, unit: "seconds"),
                aliases: "READ_REQUEST_TIMEOUT",
            "READ_TIMEOUT"
        ) {
            "How long a request may take from its first byte to its last one, its body included."
        },
        setting(
                "send-timeout", path: \.sendTimeout, kind: .number(1...3600, unit: "seconds"),
                aliases: "WRITE_RESPONSE_TIMEOUT", "WRITE_TIMEOUT"
        ) {
            "How long a client may read nothing of an answer."
        },
        setting(
                "max-connections", path: \.maximumConnections, kind: .integer(1...1_000_000, unit: "connections"),
                aliases: "MAX_CLIENTS"
        ) { "Connections of all clients; further ones wait in the system's queue." },
        setting("max-requests", path: \.maximumRequests, kind: .integer(1...1_000_000, unit: "requests")) {
            "Requests under way of all clients; further ones are answered 503 before any work."
        },
        setting("max-client-requests", path: \.maximumClientRequests, kind: .integer(1...1_000_000, unit: "requests")) {
            "Requests under way of one client, as rate-limit counts clients; further ones are answered 429."
        },
        setting("answer-memory", path: \.answerMemory, kind: .bytes(16_777_216...1 << 46)) {
            "The bytes of answers that wait for their clients; above, the connection that holds most is closed."
        },
        setting("max-header-bytes", path: \.maximumHeaderBytes, kind: .bytes(1024...1_048_576)) {
            "The size of a request's head, its URL included."
        },
        setting("lame-duck", path: \.lameDuck, kind: .number(0...300, unit: "seconds")) {
            "How long a stopping server still accepts requests while /ready answers 503."
        },
        setting(
                "stop-timeout", path: \.stopTimeout, kind: .number(0...3600, unit: "seconds"),
                aliases: "GRACEFUL_STOP_TIMEOUT"
        ) { "How long requests under way may take after the lame-duck time." },

        // Signatures
        setting("key", path: \.keys, kind: hexadecimal, aliases: "KEY", secret: true, reloads: true) {
            "Keys of signatures. A URL is valid if any pair of key and salt signs it."
        },
            setting("salt", path: \.salts, kind: hexadecimal, aliases: "SALT", secret: true, reloads: true) {
                "The salt of each key."
            },
        setting("key-file", path: \.keyFile, kind: .path, reloads: true) { "A file with further keys, one a line." },
        setting("salt-file", path: \.saltFile, kind: .path, reloads: true) { "A file with the salts of these keys." },
        setting(
                "signature-size", path: \.signatureSize, kind: .integer(1...32, unit: "bytes"),
                aliases: "SIGNATURE_SIZE", reloads: true
        ) { "Bytes of a signature before it is encoded." },
        setting(
                "trusted-signatures", path: \.trustedSignatures, kind: texts, aliases: "TRUSTED_SIGNATURES",
                secret: true, reloads: true
        ) { "Signatures that are valid for every URL." },
        setting("thumbor-key", path: \.thumborKey, kind: .text(), secret: true, reloads: true) {
            "The key of signed URLs in thumbor's grammar."
        },
        setting("allow-unsigned", path: \.allowUnsigned, kind: .boolean) {
            "Whether unsigned URLs are served on addresses that other machines can reach."
        },

        // Pages
        setting("gallery", path: \.gallery, kind: .boolean) {
            "Whether /gallery/ shows the files of local-root, read-only."
        },
        setting(
            "gallery-token", path: \.galleryToken,
            kind: .text { $0.isEmpty || $0.utf8.count >= 16 ? nil : "it has fewer than 16 bytes" }, secret: true,
            reloads: true
        ) { "The text with which the gallery is opened, from every machine. Empty: only this machine may open it." },

        // URLs
        setting("native", path: \.native, kind: .boolean, reloads: true) {
            "Whether URLs may be in the native grammar, that of imgproxy."
        },
        setting("thumbor", path: \.thumbor, kind: .boolean, reloads: true) {
            "Whether URLs may be in the grammar of thumbor, below /thumbor."
        },
        setting("info", path: \.info, kind: .boolean, reloads: true) { "Whether /info answers JSON about sources." },
        setting(
            "presets", path: \.presets,
                kind: table(unit: "NAME=OPTIONS, list", key: { $0 }, name: { $0 }, value: .text()), aliases: "PRESETS",
                reloads: true
        ) { "Named options. “default” applies to every URL." },
        setting("only-presets", path: \.onlyPresets, kind: .boolean, aliases: "ONLY_PRESETS", reloads: true) {
            "Whether URLs name presets instead of options."
        },
            setting(
                "allowed-options", path: \.allowedOptions, kind: texts, aliases: "ALLOWED_PROCESSING_OPTIONS",
                reloads: true
            ) {
            "The options that URLs may use. Empty for all."
        },
        setting(
            "arguments-separator", path: \.argumentsSeparator,
            kind: .text(unit: "character") { $0.count == 1 && $0 != "/" ? nil : "it is not one character" },
            aliases: "ARGUMENTS_SEPARATOR", reloads: true
        ) { "The character between the arguments of an option." },

        // Sources
        setting("local-root", path: \.localRoot, kind: .path, aliases: "LOCAL_FILESYSTEM_ROOT") {
            "The directory of local:/// sources. Empty for none."
        },
        setting("local-shared", path: \.localShared, kind: .boolean) {
            "Whether all nodes of a fleet see the same files in local-root, so that they share results of them."
        },
        setting("iiif", path: \.iiif, kind: .boolean, reloads: true) {
            "Whether /iiif answers the APIs of IIIF for the configured sources, without signatures."
        },
        setting("public-url", path: \.publicURL, kind: .text(unit: "URL"), reloads: true) {
            "The address of this server in documents of IIIF. Empty for that of the request."
        },
        setting(
            "base-url", path: \.baseURL,
            kind: .text(unit: "URL") { text in
                guard !text.contains("?"), !text.contains("#") else { return "it has a query or a fragment" }
                // What follows would otherwise continue the name of a host or directory.
                return text.isEmpty || text.hasSuffix("/") ? nil : "it does not end in a slash; write “\(text)/”"
            }, aliases: "BASE_URL", reloads: true
        ) { "The beginning of every source's address, with a slash at its end." },
        setting(
            "allowed-sources", path: \.allowedSources,
            kind: list(
                unit: "list",
                read: { text in
                    guard !text.contains("*") else {
                        throw SettingError("“\(text)” has a wildcard; only beginnings count")
                    }
                    guard AllowedPrefix(text) != nil else {
                        throw SettingError(
                            "“\(text)” is not the beginning of an address; write https://example.org/images/, "
                                + "s3://bucket/ or local:///")
                    }
                    return text
                }, show: { $0 }), aliases: "ALLOWED_SOURCES", reloads: true
        ) {
            "Beginnings of the addresses of allowed sources. Empty for all."
        },
        setting(
                "allow-loopback-sources", path: \.allowLoopbackSources, kind: .boolean,
                aliases: "ALLOW_LOOPBACK_SOURCE_ADDRESSES"
        ) { "Whether sources may be on this machine." },
        setting(
                "allow-link-local-sources", path: \.allowLinkLocalSources, kind: .boolean,
                aliases: "ALLOW_LINK_LOCAL_SOURCE_ADDRESSES"
        ) { "Whether sources may have link-local addresses." },
        setting(
                "allow-private-sources", path: \.allowPrivateSources, kind: .boolean,
                aliases: "ALLOW_PRIVATE_SOURCE_ADDRESSES"
        ) { "Whether sources may have addresses of private networks." },
        setting(
                "max-source-bytes", path: \.maximumSourceBytes, kind: .bytes(1...1 << 40), aliases: "MAX_SRC_FILE_SIZE",
                reloads: true
        ) { "The size of a source." },
        setting(
            "max-source-megapixels", path: \.maximumSourceMegapixels, kind: .number(0.001...10_000, unit: "megapixels"),
            aliases: "MAX_SRC_RESOLUTION", reloads: true
        ) { "The pixels of a source." },
        setting(
                "max-redirects", path: \.maximumRedirects, kind: .integer(0...50, unit: "redirects"),
                aliases: "MAX_REDIRECTS", reloads: true
        ) {
            "Redirects that the download of a source follows."
        },
        setting(
                "download-timeout", path: \.downloadTimeout, kind: .number(0.1...3600, unit: "seconds"),
                aliases: "DOWNLOAD_TIMEOUT",
            reloads: true
        ) { "How long the download of a source may take." },
            setting("downloads", path: \.downloads, kind: .integer(1...10_000, unit: "downloads")) {
                "Simultaneous downloads."
            },
        setting("downloads-per-host", path: \.downloadsPerHost, kind: .integer(1...10_000, unit: "downloads")) {
            "Simultaneous downloads from one host."
        },
        setting("user-agent", path: \.userAgent, kind: .text(), aliases: "USER_AGENT", reloads: true) {
            "The User-Agent field of downloads."
        },
        setting(
            "source-headers", path: \.sourceHeaders,
            kind: table(
                unit: "tables of fields by host, files only", key: { $0.lowercased() }, name: { $0 },
                value: headers("fields")),
            secret: true, reloads: true
        ) { "Fields of the requests to a host, for example its credentials." },

        // Results
            setting(
                "quality", path: \.quality, kind: .integer(1...100, unit: "1 to 100"), aliases: "QUALITY", reloads: true
            ) {
            "The quality of results whose URL names none."
        },
        setting(
            "format-quality", path: \.formatQuality,
            kind: table(
                unit: "FORMAT=QUALITY, list", key: { try format($0) }, name: { $0.rawValue },
                value: .integer(1...100, unit: "")), aliases: "FORMAT_QUALITY", reloads: true
        ) { "The quality of a format." },
        setting("strip-metadata", path: \.stripMetadata, kind: .boolean, aliases: "STRIP_METADATA", reloads: true) {
            "Whether results have no Exif and XMP."
        },
        setting("keep-copyright", path: \.keepCopyright, kind: .boolean, aliases: "KEEP_COPYRIGHT", reloads: true) {
            "Whether the author and the copyright stay."
        },
        setting("auto-rotate", path: \.autoRotate, kind: .boolean, aliases: "AUTO_ROTATE", reloads: true) {
            "Whether images are turned upright by their metadata."
        },
            setting(
                "auto-webp", path: \.autoWebP, kind: .boolean, aliases: "AUTO_WEBP", "ENABLE_WEBP_DETECTION",
                reloads: true
            ) {
            "Whether clients that accept WebP get it."
        },
            setting(
                "auto-avif", path: \.autoAVIF, kind: .boolean, aliases: "AUTO_AVIF", "ENABLE_AVIF_DETECTION",
                reloads: true
            ) {
            "Whether clients that accept AVIF get it."
        },
        setting("auto-jxl", path: \.autoJPEGXL, kind: .boolean, aliases: "AUTO_JXL", reloads: true) {
            "Whether clients that accept JPEG XL get it."
        },
        setting("client-hints", path: \.clientHints, kind: .boolean, aliases: "ENABLE_CLIENT_HINTS", reloads: true) {
            "Whether the client's Width and DPR fields apply to URLs without them."
        },
        setting("encode-deadline", path: \.encodeDeadline, kind: .number(0...60, unit: "seconds"), reloads: true) {
            "After this time, a slow format is left to the background and a faster one is answered; 0 to wait."
        },
        setting(
            "max-result-dimension", path: \.maximumResultDimension, kind: .integer(1...65_535, unit: "pixels"),
            aliases: "MAX_RESULT_DIMENSION", reloads: true
        ) { "The longest side of a result." },
            setting(
                "skip-processing", path: \.skipProcessing, kind: formats, aliases: "SKIP_PROCESSING_FORMATS",
                reloads: true
            ) {
            "Sources of these formats are answered as they are."
        },
        setting("watermark", path: \.watermark, kind: .path, aliases: "WATERMARK_PATH", reloads: true) {
            "The image file of watermarks."
        },
        setting(
                "watermark-opacity", path: \.watermarkOpacity, kind: .number(0...1, unit: "0 to 1"),
                aliases: "WATERMARK_OPACITY", reloads: true
        ) { "The opacity of a watermark whose URL says 1." },

        // Answers
        setting("ttl", path: \.ttl, kind: .integer(0...315_360_000, unit: "seconds"), aliases: "TTL", reloads: true) {
            "How long clients and proxies may keep an image."
        },
        setting(
                "cache-control-passthrough", path: \.cacheControlPassthrough, kind: .boolean,
                aliases: "CACHE_CONTROL_PASSTHROUGH",
            reloads: true
        ) { "Whether the source's Cache-Control and Expires take the place of ttl." },
        setting("negative-ttl", path: \.negativeTTL, kind: .integer(0...86_400, unit: "seconds"), reloads: true) {
            "How long an error of a source is remembered."
        },
        setting(
                "stale-while-revalidate", path: \.staleWhileRevalidate, kind: .integer(0...31_536_000, unit: "seconds"),
                reloads: true
        ) { "How long an expired image is still answered while it is made anew." },
        setting("allow-origin", path: \.allowOrigin, kind: .text(), aliases: "ALLOW_ORIGIN", reloads: true) {
            "The Access-Control-Allow-Origin field of images. Empty for none."
        },
        setting("fallback-image", path: \.fallbackImage, kind: .path, aliases: "FALLBACK_IMAGE_PATH", reloads: true) {
            "The image file that is answered if a source has no image."
        },
        setting(
            "fallback-status", path: \.fallbackStatus,
            kind: Kind(unit: "status") { value in
                let status = try Kind.integer(0...599, unit: "").read(value)
                guard status == 0 || status >= 200 else { throw SettingError("\(status) is not 0 or from 200 on") }
                return status
            } show: { .integer($0) }, aliases: "FALLBACK_IMAGE_HTTP_CODE", reloads: true
        ) { "The status of the fallback image; 0 for that of the error." },
        setting(
                "fallback-ttl", path: \.fallbackTTL, kind: .integer(0...315_360_000, unit: "seconds"),
                aliases: "FALLBACK_IMAGE_TTL",
            reloads: true
        ) { "How long the fallback image may be kept; 0 for ttl." },
        setting("server-timing", path: \.serverTiming, kind: .boolean, reloads: true) {
            "Whether answers say in Server-Timing how long each step took."
        },

        // Resources
        setting("timeout", path: \.timeout, kind: .number(0.1...3600, unit: "seconds"), aliases: "TIMEOUT") {
            "How long an answer may take, its wait in queues included."
        },
            setting(
                "workers", path: \.workers, kind: .integer(0...1024, unit: "renders"), aliases: "WORKERS", "CONCURRENCY"
            ) {
            "Simultaneous renders; 0 for twice the processors, and at least 4."
        },
        setting("require-sandbox", path: \.requireSandbox, kind: .boolean) {
            "Whether decoders are refused where the kernel or the container forbids seccomp or Landlock."
        },
        setting("render-memory", path: \.renderMemory, kind: .bytes(16_777_216...1 << 46)) {
            "The memory that all renders may use at once, as estimated."
        },
        setting("source-memory", path: \.sourceMemory, kind: .bytes(1_048_576...1 << 46)) {
            "The bytes of sources that are held at once, from the first byte of each to its render; one host has half."
        },
        setting(
                "queue-limit", path: \.queueLimit, kind: .integer(0...1_000_000, unit: "requests"),
                aliases: "REQUESTS_QUEUE_SIZE"
        ) { "Requests that wait for a render, and as many for a download; further ones are answered 503." },
            setting("memory-cache", path: \.memoryCache, kind: .bytes(0...1 << 46)) {
                "The size of results in memory; 0 for none."
            },
        setting("tile-memory", path: \.tileMemory, kind: .bytes(0...1 << 46)) {
            "The size of decoded images that tiles of IIIF are cut from; 0 for none."
        },
        setting("disk-cache", path: \.diskCache, kind: .path) {
            "The directory of results and sources on disk. Empty for none."
        },
        setting("disk-cache-bytes", path: \.diskCacheBytes, kind: .bytes(1_048_576...1 << 50)) {
            "The size of both on disk, half for each."
        },

        // Clients
            setting(
                "rate-limit", path: \.rateLimit, kind: .number(0...1_000_000, unit: "requests per second"),
                reloads: true
            ) {
            "Requests of one client; an IPv6 client is its /64 network. 0 for no limit."
        },
        setting("rate-burst", path: \.rateBurst, kind: .integer(0...1_000_000, unit: "requests"), reloads: true) {
            "Requests of one client at once; 0 for those of two seconds."
        },
        setting("rate-clients", path: \.rateClients, kind: .integer(16...10_000_000, unit: "clients")) {
            "Clients whose requests are counted; the least recent are forgotten."
        },
        setting(
            "trusted-proxies", path: \.trustedProxies,
            kind: list(unit: "addresses or networks, list", read: { try AddressRange($0) }, show: \.description),
            reloads: true
        ) { "Proxies whose X-Forwarded-For field names the client; “unix” for those on Unix sockets." },

        // Reports
        setting(
            "log-level", path: \.logLevel,
            kind: Kind(unit: Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")) { value in
                guard case .text(let text) = value,
                    let level = Logger.Level(rawValue: text == "warn" ? "warning" : text)
                else {
                    let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
                    throw SettingError("\(value.brief) is not one of \(levels)")
                }
                return level
            } show: { .text($0.rawValue) }, aliases: "LOG_LEVEL", reloads: true
        ) { "The least important level that is logged." },
        setting(
            "log-format", path: \.logFormat,
            kind: Kind(unit: "json or text") { value in
                switch value {
                case .text("json"), .text("structured"): return .json
                case .text("text"), .text("pretty"): return .text
                default: throw SettingError("\(value.brief) is not json or text")
                }
            } show: { .text($0.rawValue) }, aliases: "LOG_FORMAT"
        ) { "The form of log lines." },
            setting("log-requests", path: \.logRequests, kind: .boolean, reloads: true) {
                "Whether every request is logged."
            },
        setting("otlp-endpoint", path: \.otlpEndpoint, kind: .url) {
            "The base URL of an OpenTelemetry collector (OTLP over HTTP, JSON). Empty for no traces."
        },
        setting("otlp-headers", path: \.otlpHeaders, kind: headers("NAME=VALUE, list"), secret: true) {
            "Fields of the requests to the collector."
        },
        setting("trace-ratio", path: \.traceRatio, kind: .number(0...1, unit: "0 to 1")) {
            "The part of requests that is traced, if the client does not decide."
        },
        setting("service-name", path: \.serviceName, kind: .text()) { "The name of this service in traces." },
    ] + fleet + buckets

    /// The flags as text for `--help`.
    package static var help: String {
        let defaults = ServerConfiguration()
        return all.map { setting in
            let value = setting.get(defaults)
            let shown = value == .text("") || value == .list([]) || value == .table([:]) ? "none" : value.toml
            let imgproxy = setting.aliases.isEmpty ? "" : ", \(setting.aliases.joined(separator: ", "))"
            return """
                  --\(setting.name)  (\(setting.unit); default: \(shown))
                      \(setting.help)
                      \(setting.variable)\(imgproxy)\(setting.isReloadable ? "; reloaded by SIGHUP" : "")
                """
        }.joined(separator: "\n")
    }
}
