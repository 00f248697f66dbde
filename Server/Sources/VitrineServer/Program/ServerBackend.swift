import Foundation
import NIOCore
import Synchronization
import VitrineCache
import VitrineCore
import VitrineImaging
@_spi(HTTPCacheEngine) import VitrineNetwork

/// The grammars, signatures and the renderer of a configuration, for the HTTP layer.
package final class ServerBackend: ImageBackend {
    /// What a reload replaces.
    private struct Rules: Sendable {
        var native: NativeGrammar
        var thumbor = ThumborGrammar()
        var signer: URLSigner
        var thumborSigner: URLSigner
    }

    /// Makes the images.
    package let renderer: Renderer
    private let rules: Mutex<Rules>
    private let timeout: Mutex<Duration>

    /// - Throws: ``ConfigurationError`` for presets that no URL could use, and for a watermark that is no image.
    package init(_ configuration: ServerConfiguration) throws {
        rules = Mutex(try Self.rules(configuration))
        timeout = Mutex(.seconds(configuration.timeout))
        renderer = Renderer(try configuration.rendering())
    }

    /// Applies a new configuration to later requests.
    package func reload(_ configuration: ServerConfiguration) throws {
        let new = try Self.rules(configuration)
        rules.withLock { $0 = new }
        timeout.withLock { $0 = .seconds(configuration.timeout) }
    }

    private static func rules(_ configuration: ServerConfiguration) throws -> Rules {
        let native = try configuration.grammar()
        let thumborKeys = configuration.thumborKey.isEmpty
            ? [] : [(key: Array(configuration.thumborKey.utf8), salt: [UInt8]())]
        return Rules(
            native: native,
            signer: URLSigner(
                pairs: Array(zip(configuration.keys, configuration.salts)).map { (key: $0.0, salt: $0.1) },
                size: configuration.signatureSize, trusted: Set(configuration.trustedSignatures)),
            thumborSigner: URLSigner(pairs: thumborKeys, algorithm: .thumborSHA1))
    }

    package func parse(_ target: ImageTarget) throws(RequestError) -> ImageURL {
        let rules = rules.withLock { $0 }
        let path = target.path.hasPrefix("/") ? target.path.dropFirst() : target.path
        guard let slash = path.firstIndex(of: "/") else {
            throw RequestError(404, "not-found", "There is no image at this path.")
        }
        let signature = path[..<slash]
        switch target.grammar {
        case .native:
            if rules.signer.hasKeys {
                guard rules.signer.isValid(signature, for: path[slash...]) else { throw Self.invalidSignature }
            } else {
                try URLSigner.checkPlaceholder(signature)
            }
            return try rules.native.parse(path[slash...])
        case .thumbor:
            let rest = target.query.map { Substring("\(path[slash...])?\($0)") } ?? path[slash...]
            if rules.thumborSigner.hasKeys {
                guard rules.thumborSigner.isValid(signature, for: rest) else { throw Self.invalidSignature }
            } else if rules.signer.hasKeys || signature != "unsafe" {
                // Keys of the native grammar do not make this one an open door.
                throw Self.invalidSignature
            }
            return try rules.thumbor.parse(rest)
        }
    }

    private static let invalidSignature = RequestError(403, "invalid-signature", "The signature is not valid.")

    /// The memory of results is asked by ``result(for:format:request:)``, which also tells whether they are fresh.
    package func resultInMemory(for url: ImageURL, format: FormatChoice) -> ImageResult? { nil }

    package func result(
        for url: ImageURL, format: FormatChoice, request: RequestInformation
    ) async throws -> ImageAnswer {
        try Self.checkExpiry(of: url)
        let cheaper = format.acceptable.first { $0 != format.preferred && $0 != .avif && $0 != .jxl }
        let rendering = try await renderer.image(
            for: url, format: format.preferred, alternative: cheaper, deadline: deadline)
        return Self.answer(rendering)
    }

    package func information(for url: ImageURL, request: RequestInformation) async throws -> ImageAnswer {
        try Self.checkExpiry(of: url)
        return Self.answer(try await renderer.infoDocument(for: url, deadline: deadline))
    }

    private var deadline: ContinuousClock.Instant { .now + timeout.withLock { $0 } }

    private static func checkExpiry(of url: ImageURL) throws(RequestError) {
        guard let expires = url.options.expires, Date().timeIntervalSince1970 >= Double(expires) else { return }
        throw RequestError(404, "expired", "The URL has expired.")
    }

    private static func answer(_ rendering: Rendering) -> ImageAnswer {
        let image = rendering.image
        let result = ImageResult(
            bytes: image.bytes, mediaType: image.mediaType,
            entityTag: String(image.entityTag.dropFirst().dropLast()),
            expires: image.freshUntil.components.seconds, isSource: image.format == nil && image.size == nil)
        let origin: ImageAnswer.Origin =
            if rendering.isStale { .stale } else {
                switch rendering.origin {
                case .memory: .memory
                case .disk, .confirmed: .disk
                case .made: .made
                case .coalesced: .coalesced
                }
            }
        let times = rendering.times
        let stages = [("queue", times.queue), ("fetch", times.fetch), ("decode", times.decode), ("encode", times.encode)]
        return ImageAnswer(result, origin, stages: stages.filter { $0.1 > .zero }.map { .init($0.0, $0.1) })
    }
}

extension ServerConfiguration {
    /// The grammar of its URLs.
    ///
    /// - Throws: ``ConfigurationError`` for a preset or an allowed option that does not exist.
    package func grammar() throws -> NativeGrammar {
        let grammar = NativeGrammar(
            presets: presets, onlyPresets: onlyPresets,
            allowedOptions: allowedOptions.isEmpty ? nil : Set(allowedOptions),
            argumentsSeparator: argumentsSeparator.first ?? ":")
        do throws(RequestError) {
            try grammar.validate()
        } catch {
            throw ConfigurationError("presets: \(error.reason)")
        }
        return grammar
    }

    /// How images are made.
    func rendering() throws -> Renderer.Configuration {
        let directory = diskCache.isEmpty
            ? FileManager.default.temporaryDirectory.appending(path: "vitrine-server-\(ProcessInfo.processInfo.processIdentifier)").path
            : diskCache
        var rendering = Renderer.Configuration(cacheRoot: directory)
        rendering.resultMemory = ByteCount(memoryCache)
        rendering.resultDisk = ByteCount(diskCache.isEmpty ? 0 : diskCacheBytes / 2)
        rendering.sourceDisk = ByteCount(diskCache.isEmpty ? 0 : diskCacheBytes / 2)
        rendering.sources = sources
        rendering.settings.quality = quality
        rendering.settings.formatQuality.merge(formatQuality) { $1 }
        rendering.settings.stripsMetadata = stripMetadata
        rendering.settings.keepsCopyright = keepCopyright
        rendering.settings.watermarkOpacity = watermarkOpacity
        if !watermark.isEmpty {
            do {
                rendering.settings.watermark = try ImageDecoder().decode(.file(watermark))
            } catch {
                throw ConfigurationError("watermark: \(error)")
            }
        }
        rendering.admission.renderBytes = ByteCount(renderMemory)
        if workers > 0 { rendering.admission.renders = workers }
        rendering.admission.loads = downloads
        rendering.admission.loadsPerHost = downloadsPerHost
        rendering.admission.queueLength = queueLimit
        rendering.admission.queueDeadline = .seconds(timeout)
        rendering.limits.maximumPixels = Int(maximumSourceMegapixels * 1_000_000)
        rendering.limits.maximumOutputSide = maximumResultDimension
        rendering.failures.missing = .seconds(negativeTTL)
        rendering.failures.unavailable = .seconds(negativeTTL)
        rendering.failures.unusable = .seconds(negativeTTL)
        rendering.staleWhileRevalidate = .seconds(staleWhileRevalidate)
        rendering.encodeDeadline = encodeDeadline > 0 ? .seconds(encodeDeadline) : nil
        return rendering
    }

    private var sources: SourceTable.Configuration {
        var sources = SourceTable.Configuration()
        sources.policy = .publicOnly
        if allowLoopbackSources { sources.policy.privateExceptions.insert(.loopback) }
        if allowLinkLocalSources { sources.policy.privateExceptions.insert(.linkLocal) }
        if allowPrivateSources { sources.policy.privateExceptions.insert(.networks) }
        // Servers of one's own are on any port.
        if !sources.policy.privateExceptions.isEmpty { sources.policy.ports = nil }
        sources.policy.maximumRedirects = maximumRedirects
        sources.allowedPrefixes = allowedSources.isEmpty ? nil : allowedSources
        sources.baseURL = baseURL.isEmpty ? nil : baseURL
        sources.localRoot = localRoot.isEmpty ? nil : localRoot
        sources.hostRules = sourceHeaders.map { host, fields in
            .init(host: host, headers: fields.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) })
        }
        sources.headers = [(name: "User-Agent", value: userAgent)]
        sources.maximumBytes = ByteCount(maximumSourceBytes)
        sources.totalTimeout = .seconds(downloadTimeout)
        return sources
    }

    /// How answers are sent.
    package func http() throws -> ImageHTTPConfiguration {
        var http = ImageHTTPConfiguration()
        var formats: [ImageFormat] = []
        if autoAVIF { formats.append(.avif) }
        if autoJPEGXL { formats.append(.jxl) }
        if autoWebP { formats.append(.webp) }
        // Without these, every client gets the format of the source.
        if !formats.isEmpty { formats += [.jpeg, .png] }
        http.negotiation = FormatNegotiation(formats: formats)
        http.clientHints = clientHints ? ClientHints() : nil
        http.cacheControl.maximumAge = ttl
        http.cacheControl.followsSource = cacheControlPassthrough
        for status in http.errorLifetimes.keys { http.errorLifetimes[status] = negativeTTL }
        http.allowedOrigins = allowOrigin.isEmpty ? [] : [allowOrigin]
        // The part that receives connections has made one already.
        http.sendsRequestID = false
        if !fallbackImage.isEmpty {
            do {
                let bytes = try [UInt8](Data(contentsOf: URL(filePath: fallbackImage)))
                let type = ImageFormat.detect(bytes)?.mediaType ?? "application/octet-stream"
                var fallback = ImageHTTPConfiguration.Fallback(bytes: ByteBuffer(bytes: bytes), mediaType: type)
                fallback.status = fallbackStatus == 0 ? nil : fallbackStatus
                if fallbackTTL > 0 { fallback.lifetime = fallbackTTL }
                http.fallback = fallback
            } catch {
                throw ConfigurationError("fallback-image: \(error)")
            }
        }
        return http
    }
}

extension ServerCommand.Parts {
    /// The image server.
    package static let images = ServerCommand.Parts(
        hooks: { configuration, _, _ in
            let backend = try ServerBackend(configuration)
            let service = ImageService(backend, configuration: try configuration.http())
            let renderer = backend.renderer
            return ImageServer.Hooks(
                responder: ImageResponder(service, context: ServerRequestContext.self),
                purge: { request in
                    switch request {
                    case .source(let address): return try await renderer.purge(source: address)
                    case .all:
                        let count = (try? await renderer.results.count(of: .original)) ?? 0
                        try await renderer.purgeAll()
                        return count
                    case .prefix, .tag:
                        throw RequestError(501, "unsupported-purge", "Results are removed by source, or all.")
                    }
                },
                reload: { configuration in
                    try backend.reload(configuration)
                    service.forgetTargets()
                },
                facts: {
                    let (renders, loads) = (renderer.admission.renders, renderer.admission.loads)
                    return [
                        "renders_waiting": .integer(renders.waiting), "renders_running": .integer(renders.running),
                        "loads_waiting": .integer(loads.waiting), "loads_running": .integer(loads.running),
                    ]
                })
        },
        explain: { path, configuration in
            Explanation(path: path, native: try configuration.grammar()).json
        })
}
