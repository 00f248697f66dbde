import Foundation
package import NIOCore
import Synchronization
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork

/// The grammars, signatures and the renderer of a configuration, for the HTTP layer.
package final class ServerBackend: ImageBackend {
    /// A URL with the results that were lately sent for it, by the place of the negotiated format.
    package final class Plan: Sendable {
        struct Place: Sendable {
            let place: Renderer.ResultPlace
            var result: ImageResult?
            var freshUntil = Duration.zero
            var entityTag = ""
            /// That of the result on disk, and the result of it without its bytes.
            var stored: (head: StoredHead, result: ImageResult)?
        }

        let url: ImageURL
        private let places = Mutex([Place?](repeating: nil, count: FormatNegotiation.negotiable.count + 1))

        init(_ url: ImageURL) { self.url = url }

        /// - Parameter find: Returns the place of the result at first; nil for a source that is refused.
        func place(_ slot: Int, _ find: () -> Renderer.ResultPlace?) -> Place? {
            if let place = places.withLock({ $0[slot] }) { return place }
            guard let found = find() else { return nil }
            let place = Place(place: found)
            places.withLock { $0[slot] = place }
            return place
        }

        func keep(_ result: ImageResult, image: RenderedImage, slot: Int) {
            places.withLock { places in
                places[slot]?.result = result
                places[slot]?.freshUntil = image.source.freshUntil
                places[slot]?.entityTag = image.entityTag
            }
        }

        func keep(_ stored: (head: StoredHead, result: ImageResult), _ slot: Int) {
            places.withLock { $0[slot]?.stored = stored }
        }
    }

    private struct Rules: Sendable {
        var native: NativeGrammar
        var thumbor: ThumborGrammar
        var signer: URLSigner
        var thumborSigner: URLSigner
        var iiif: IIIFGrammar
    }

    /// Makes the images.
    package let renderer: Renderer
    private let rules: Rules
    private let timeout: Duration

    /// - Throws: ``ConfigurationError`` for presets that no URL could use.
    package init(_ configuration: ServerConfiguration, _ renderer: Renderer) throws {
        rules = try Self.rules(configuration)
        timeout = .seconds(configuration.timeout)
        self.renderer = renderer
    }

    private static func rules(_ configuration: ServerConfiguration) throws -> Rules {
        let native = try configuration.grammar()
        let thumborKeys = configuration.thumborKey.isEmpty
            ? [] : [(key: Array(configuration.thumborKey.utf8), salt: [UInt8]())]
        let base: ProcessingOptions
        do throws(RequestError) {
            base = try native.base()
        } catch {
            throw ConfigurationError("presets: \(error.reason)")
        }
        return Rules(
            native: native, thumbor: ThumborGrammar(defaults: base, rules: native.rules),
            signer: URLSigner(
                pairs: Array(zip(configuration.keys, configuration.salts)).map { (key: $0.0, salt: $0.1) },
                size: configuration.signatureSize, trusted: Set(configuration.trustedSignatures)),
            thumborSigner: URLSigner(pairs: thumborKeys, algorithm: .thumborSHA1),
            iiif: IIIFGrammar(configuration, defaults: base, rules: native.rules))
    }

    package func parse(_ target: ImageTarget) throws(RequestError) -> ImageURL {
        // Its sources are those of the configuration, so that it has no signatures.
        if target.grammar == .iiif { return try rules.iiif.parse(target.path) }
        let path = target.path.hasPrefix("/") ? target.path.dropFirst() : target.path
        guard let slash = path.firstIndex(of: "/") else {
            throw RequestError(404, code: "not-found", reason: "There is no image at this path.")
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
        case .iiif: return try rules.iiif.parse(target.path)
        }
    }

    private static let invalidSignature = RequestError(
        403, code: "invalid-signature", reason: "The signature is not valid.")

    package func plan(for url: ImageURL) -> Plan { Plan(url) }

    package func resultInMemory(for plan: Plan, format: FormatChoice) -> ImageResult? {
        guard let place = place(plan, format), let image = renderer.freshResult(at: place.place) else { return nil }
        if let result = place.result, place.freshUntil == image.source.freshUntil, place.entityTag == image.entityTag {
            return result
        }
        let result = Self.result(image, plan.url)
        plan.keep(result, image: image, slot: format.slot)
        return result
    }

    package func resultOnDisk(for plan: Plan, format: FormatChoice) -> (head: ImageResult, bytes: ByteBuffer)? {
        guard let place = place(plan, format),
            let found = renderer.freshResidentResult(at: place.place, known: place.stored?.head)
        else { return nil }
        let count = found.image.bytes.readableBytes
        if let stored = place.stored, stored.head === found.head, stored.result.count == count {
            return (stored.result, found.image.bytes)
        }
        let result = Self.result(found.head.image, plan.url, body: found.image.bytes)
        plan.keep((found.head, result), format.slot)
        return (result, found.image.bytes)
    }

    private func place(_ plan: Plan, _ format: FormatChoice) -> Plan.Place? {
        plan.place(format.slot) { try? renderer.place(for: plan.url, format: format.preferred) }
    }

    package func result(
        for plan: Plan, format: FormatChoice, request: RequestInformation
    ) async throws -> ImageAnswer {
        let url = plan.url
        try Self.checkExpiry(of: url)
        let cheaper = format.acceptable.first { $0 != format.preferred && $0 != .avif && $0 != .jxl }
        let rendering = try await renderer.image(
            for: url, format: format.preferred, alternative: cheaper, priority: request.isBackground ? .low : .normal,
            deadline: deadline)
        return Self.answer(rendering, url)
    }

    package func information(for plan: Plan, request: RequestInformation) async throws -> ImageAnswer {
        try Self.checkExpiry(of: plan.url)
        return Self.answer(try await renderer.infoDocument(for: plan.url, deadline: deadline), plan.url)
    }

    package func document(_ document: IIIFDocument, request: RequestInformation) async throws -> ImageAnswer {
        try await IIIFDocuments(rules.iiif, renderer, deadline: deadline).answer(document)
    }

    private var deadline: ContinuousClock.Instant { .now + timeout }

    private static func checkExpiry(of url: ImageURL) throws(RequestError) {
        guard let expires = url.options.expires, Date().timeIntervalSince1970 >= Double(expires) else { return }
        throw RequestError(404, code: "expired", reason: "The URL has expired.")
    }

    /// - Parameter body: The bytes, if the image is without them.
    private static func result(_ image: RenderedImage, _ url: ImageURL, body: ByteBuffer? = nil) -> ImageResult {
        let expires = image.source.freshUntil.components.seconds
        // Summaries have neither size nor format, as sources that were not decoded.
        let isUndecoded = image.format == nil && image.size == nil && image.mediaType != "application/json"
        var metadata = ImageResult.Metadata(
            mediaType: image.mediaType, entityTag: String(image.entityTag.dropFirst().dropLast()))
        metadata.lastModified = image.source.lastModified.flatMap { HTTPDate.seconds($0, now: .seconds(time(nil))) }
        metadata.expires = image.sourceCaching.hasLifetime ? expires : nil
        metadata.sourceCacheControl = image.sourceCaching.control
        metadata.isSource = url.options.isRaw || isUndecoded
        metadata.isProvisional = image.isProvisional
        metadata.canonicalPath = image.canonicalPath
        metadata.contentEncoding = SourceHeader.contentEncoding(
            of: (body ?? image.bytes).readableBytesView, mediaType: image.mediaType)
        return ImageResult(bytes: image.bytes, metadata: metadata, count: body?.readableBytes)
    }

    private static func answer(_ rendering: Rendering, _ url: ImageURL) -> ImageAnswer {
        ServerObservation.trace(rendering.times)
        let result = result(rendering.image, url)
        let origin: ImageAnswer.Origin =
            if rendering.isStale { .stale } else {
                switch rendering.origin {
                case .memory: .memory
                case .disk, .confirmed: .disk
                case .made: .made
                case .coalesced: .coalesced
                case .shared: .shared
                case .store: .store
                }
            }
        let times = rendering.times
        let stages = [
            ("queue", times.queue), ("fetch", times.fetch), ("decode", times.decode), ("encode", times.encode),
        ]
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
            argumentsSeparator: argumentsSeparator.first ?? ":", defaults: processing)
        do throws(RequestError) {
            try grammar.validate()
        } catch {
            throw ConfigurationError("presets: \(error.reason)")
        }
        return grammar
    }

    /// The processing of URLs that ask for nothing.
    var processing: ProcessingOptions {
        var options = ProcessingOptions()
        options.autoRotate = autoRotate
        options.skipProcessing = Set(skipProcessing)
        return options
    }

    /// How images are made.
    ///
    /// - Parameter didReceive: Called with the bytes of each transfer of a source.
    package func rendering(didReceive: @escaping @Sendable (Int) -> Void = { _ in }) throws -> Renderer.Configuration {
        let temporary = FileManager.default.temporaryDirectory
        let own = temporary.appending(path: "vitrine-server-\(ProcessInfo.processInfo.processIdentifier)").path
        let directory = diskCache.isEmpty ? own : diskCache
        var rendering = Renderer.Configuration(cacheRoot: directory)
        rendering.resultMemory = ByteCount(memoryCache)
        rendering.tileMemory = ByteCount(tileMemory)
        rendering.resultDisk = ByteCount(diskCache.isEmpty ? 0 : diskCacheBytes / 2)
        rendering.sourceDisk = ByteCount(diskCache.isEmpty ? 0 : diskCacheBytes / 2)
        rendering.sources = sources
        rendering.sources.didReceive = didReceive
        rendering.settings.quality = quality
        rendering.settings.formatQuality.merge(formatQuality) { $1 }
        rendering.settings.stripsMetadata = stripMetadata
        rendering.settings.keepsCopyright = keepCopyright
        rendering.settings.watermarkOpacity = watermarkOpacity
        rendering.settings.maximumSide = maximumResultDimension
        if !watermark.isEmpty {
            do {
                rendering.settings.watermark = try ImageDecoder().decode(.file(watermark))
            } catch {
                throw ConfigurationError("watermark: \(error)")
            }
        }
        rendering.admission.renderBytes = ByteCount(renderMemory)
        rendering.admission.sourceBytes = ByteCount(sourceMemory)
        if workers > 0 { rendering.admission.renders = workers }
        rendering.requiresSandbox = requireSandbox
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
        sources.policy.allowPrivateAddresses(
            loopback: allowLoopbackSources, linkLocal: allowLinkLocalSources, networks: allowPrivateSources)
        sources.policy.maximumRedirects = maximumRedirects
        sources.allowedPrefixes = allowedSources.isEmpty ? nil : allowedSources
        sources.baseURL = baseURL.isEmpty ? nil : baseURL
        sources.localRoot = localRoot.isEmpty ? nil : localRoot
        sources.isLocalShared = localShared
        sources.hostRules = sourceHeaders.map { host, fields in
            .init(host: host, headers: fields.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) })
        }
        sources.userAgent = userAgent
        // The limit is ``Admission``'s.
        sources.connectionsPerHost = downloadsPerHost
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
        http.hasNative = native
        http.hasInformation = info
        if !thumbor { http.thumborPrefix = nil }
        http.hasIIIF = iiif
        http.publicURL = publicURL.isEmpty ? nil : publicURL
        http.sendsServerTiming = serverTiming
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
                fallback.lifetime = fallbackTTL > 0 ? fallbackTTL : ttl
                http.fallback = fallback
            } catch {
                throw ConfigurationError("fallback-image: \(error)")
            }
        }
        return http
    }
}
