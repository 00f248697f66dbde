import Foundation
import HTTPTypes
package import Hummingbird
package import HummingbirdCore
import Logging
import NIOCore
import Synchronization
import VitrineImaging

/// Answers requests for images: signature, grammar, negotiation, conditions, cache fields and errors.
///
/// Mount it in a router by ``Hummingbird/Router/addImages(_:at:)``, or make it all of an application by
/// ``ImageResponder``. Below the mount are:
///
/// - `/SIGNATURE/OPTIONS…/plain/URL@EXTENSION` and `/SIGNATURE/OPTIONS…/BASE64.EXTENSION`: an image, native grammar
/// - `/thumbor/…`: an image, thumbor's grammar
/// - `/iiif/…`: images and documents of IIIF, if they are enabled
/// - `/info/SIGNATURE/OPTIONS…/…`: JSON about the source of the same URL
/// - `/health`: 200 while the process answers
package final class ImageService<Backend: ImageBackend>: ImageAnswering {
    package let configuration: ImageHTTPConfiguration
    let backend: Backend
    private let targets: KnownTargets<Backend.Plan>
    private let errors: ErrorAnswer
    private let varying: Varying
    let now: @Sendable () -> Int64

    /// Creates a service.
    package convenience init(_ backend: Backend, configuration: ImageHTTPConfiguration = ImageHTTPConfiguration()) {
        self.init(backend, configuration: configuration, now: { Int64(time(nil)) })
    }

    /// - Parameter now: Returns the seconds since 1970.
    package init(_ backend: Backend, configuration: ImageHTTPConfiguration, now: @escaping @Sendable () -> Int64) {
        self.backend = backend
        self.configuration = configuration
        self.now = now
        targets = KnownTargets(capacity: configuration.keptTargets)
        errors = ErrorAnswer(configuration: configuration)
        varying = Varying(configuration)
    }

    /// Forgets parsed and verified targets. Call it after a change of keys, presets or limits of the backend.
    package func forgetTargets() { targets.removeAll() }

    /// A request after its header was read.
    struct Exchange {
        let fields: RequestFields
        let requestID: String
        let isHead: Bool
        /// Nil if the duration is not needed.
        let started: ContinuousClock.Instant?
        var route = AnswerRecord.Route.other
    }

    /// Answers a request.
    ///
    /// - Parameter mountLength: The bytes of the path that belong to the mount.
    package func respond<Context: RequestContext>(
        to request: Request, mountLength: Int, context: Context
    ) async -> Response {
        let method = request.method
        let whole = request.head.path ?? ""
        let target = whole[whole.utf8.index(whole.startIndex, offsetBy: mountLength)...]
        let fields = RequestFields(request.headers)
        var exchange = Exchange(
            fields: fields, requestID: Self.identifier(of: context, fields), isHead: method == .head,
            started: configuration.observe != nil || configuration.sendsServerTiming ? ContinuousClock.now : nil)
        if configuration.hasIIIF, target.utf8.starts(with: "/iiif/".utf8) { exchange.route = .iiif }
        guard method == .get || method == .head else {
            if method == .options { return preflight(exchange) }
            return failure(
                RequestError(405, code: "method-not-allowed", reason: "Images have GET and HEAD only."), exchange)
        }
        if fields.hasBody {
            let error = RequestError(413, code: "body-not-allowed", reason: "A request for an image has no body.")
            return failure(error, exchange, closes: true)
        }
        guard whole.utf8.count <= configuration.maximumTargetLength else {
            return failure(RequestError(414, code: "target-too-long", reason: "The URL is too long."), exchange)
        }
        if target.utf8.count == 7, target == "/health" { return health(exchange) }

        if exchange.route == .iiif, !IIIFDocument.isImage(target) {
            return await document(
                target, request: request, mountLength: mountLength, exchange: exchange, context: context)
        }
        let known: KnownTarget<Backend.Plan>
        do {
            known = try self.known(target, fields: fields)
        } catch {
            return failure(error, exchange, isImage: exchange.route != .iiif)
        }
        exchange.route = known.route
        if let expires = known.url.options.expires, Int64(expires) <= now() {
            return failure(RequestError(404, code: "expired", reason: "The URL has expired."), exchange, isImage: true)
        }
        if known.route == .information {
            return await information(known, exchange, context: context)
        }
        return await image(known, exchange, context: context)
    }

    private static func identifier<Context: RequestContext>(of context: Context, _ fields: RequestFields) -> String {
        if let id = (context as? ServerRequestContext)?.requestID, !id.isEmpty { return id }
        return fields.validRequestID ?? context.logger[metadataKey: "hb.request.id"]?.description
            ?? RequestID().description
    }

    // MARK: Routes

    /// Parses and verifies a target, if that did not happen lately.
    private func known(
        _ target: Substring, fields: RequestFields
    ) throws(RequestError) -> KnownTarget<Backend.Plan> {
        let hints = configuration.clientHints?.values(in: fields)
        let key = TargetKey(target: target, hints: hints.flatMap { $0.isEmpty ? nil : $0 })
        if let known = targets[key] { return known }
        let (route, imageTarget) = try self.route(of: target)
        var url = try backend.parse(imageTarget)
        if let hints, !url.options.isRaw { url = configuration.clientHints?.apply(hints, to: url) ?? url }
        let known = KnownTarget(
            route: url.wantsInfo ? .information : route, url: url, plan: try backend.plan(for: url),
            slots: configuration.negotiation.formats.count + 1)
        // A query that means nothing would make any number of keys.
        if route == .thumbor || imageTarget.query == nil { targets[key] = known }
        return known
    }

    private func route(
        of target: Substring
    ) throws(RequestError) -> (AnswerRecord.Route, ImageTarget) {
        let path: Substring
        var query: Substring?
        if let mark = target.utf8.firstIndex(of: 0x3F) {
            path = target[..<mark]
            query = target[target.utf8.index(after: mark)...]
        } else {
            path = target
        }
        guard path.utf8.first == 0x2F, path.utf8.count > 1 else {
            throw Self.nothingHere
        }
        if configuration.hasIIIF, path.utf8.starts(with: "/iiif/".utf8) {
            return (.iiif, ImageTarget(grammar: .iiif, path: path.dropFirst(5), query: query))
        }
        if path.utf8.starts(with: "/info/".utf8) {
            guard configuration.hasInformation else { throw Self.nothingHere }
            return (.information, ImageTarget(grammar: .native, path: path.dropFirst(5), query: query))
        }
        if let prefix = configuration.thumborPrefix, path.utf8.starts(with: prefix.utf8) {
            let rest = path[path.utf8.index(path.startIndex, offsetBy: prefix.utf8.count)...]
            if rest.utf8.first == 0x2F {
                return (.thumbor, ImageTarget(grammar: .thumbor, path: rest, query: query))
            }
        }
        // No signature of the native grammar has the name of another one.
        guard configuration.hasNative, !path.utf8.starts(with: "/thumbor/".utf8) || configuration.thumborPrefix != nil
        else { throw Self.nothingHere }
        return (.native, ImageTarget(grammar: .native, path: path, query: query))
    }

    private static var nothingHere: RequestError {
        RequestError(404, code: "not-found", reason: "There is nothing at this path.")
    }

    private func preflight(_ exchange: Exchange) -> Response {
        var fields = commonFields(exchange)
        fields.append(HTTPField(name: .allow, value: ImageMethods.allowed))
        if fields.contains(.accessControlAllowOrigin) {
            fields.append(HTTPField(name: .accessControlAllowMethods, value: ImageMethods.allowed))
            fields.append(
                HTTPField(
                    name: .accessControlAllowHeaders,
                    value: "Accept, If-Modified-Since, If-None-Match, If-Range, Range, X-Request-ID"))
            fields.append(HTTPField(name: .accessControlMaxAge, value: "86400"))
        }
        observe(exchange, status: 204)
        return Response(status: .noContent, headers: fields)
    }

    private func health(_ exchange: Exchange) -> Response {
        var exchange = exchange
        exchange.route = .health
        var fields = commonFields(exchange)
        let body = ByteBuffer(string: "{\"status\":\"ok\"}\n")
        fields.append(HTTPField(name: .contentType, value: "application/json"))
        fields.append(HTTPField(name: .contentLength, value: String(body.readableBytes)))
        fields.append(HTTPField(name: .cacheControl, value: "no-store"))
        observe(exchange, status: 200, bytes: exchange.isHead ? 0 : body.readableBytes)
        return Response(
            status: .ok, headers: fields, body: exchange.isHead ? ResponseBody() : ResponseBody(byteBuffer: body))
    }

    private func image<Context: RequestContext>(
        _ known: KnownTarget<Backend.Plan>, _ exchange: Exchange, context: Context
    ) async -> Response {
        let choice: FormatChoice
        if known.isOpen {
            choice = configuration.negotiation.choice(for: exchange.fields.accept)
            if configuration.refusesUnacceptable, configuration.negotiation.isUnacceptable(choice) {
                let error = RequestError(
                    406, code: "not-acceptable", reason: "The client accepts none of the enabled formats.")
                return failure(error, exchange, extra: varying.field(isOpen: true, isRaw: false))
            }
        } else {
            choice = .byURL
        }
        if let found = resultAtHand(known, choice) {
            let kept = keptHead(for: found.head, origin: found.origin, known: known, choice: choice, now: now())
            return send(
                found.head, whole: found.bytes, head: kept.head, origin: found.origin, stages: [], exchange: exchange)
        }
        do {
            let request = RequestInformation(id: exchange.requestID, isBackground: exchange.fields.isBackground)
            let (backend, plan) = (backend, known.plan)
            let answer = try await ClientDeparture.cancelling(Self.channel(of: context)) {
                try await backend.result(for: plan, format: choice, request: request)
            }
            let head = head(for: answer.result, answer.origin, known, now: now())
            return send(
                answer.result, whole: answer.result.bytes, head: head, origin: answer.origin, stages: answer.stages,
                exchange: exchange)
        } catch {
            var extra = HTTPFields()
            if configuration.fallback != nil { extra = varying.field(isOpen: known.isOpen, isRaw: false) }
            return failure(
                ErrorAnswer.visible(error), exchange, extra: extra, isImage: known.route != .iiif)
        }
    }

    /// The result if it takes no waiting to have it.
    private func resultAtHand(
        _ known: KnownTarget<Backend.Plan>, _ choice: FormatChoice
    ) -> (head: ImageResult, bytes: ByteBuffer, origin: ImageAnswer.Origin)? {
        if let result = backend.resultInMemory(for: known.plan, format: choice) {
            return (result, result.bytes, .memory)
        }
        return backend.resultOnDisk(for: known.plan, format: choice).map { ($0.head, $0.bytes, .disk) }
    }

    /// Returns the answer to a request for an image in memory, or on disk if that takes no waiting; nil for all others.
    ///
    /// It has no `X-Request-ID`, and no record of it is made.
    package func immediate(_ request: ImmediateRequest) -> ImmediateAnswer? {
        let fields = request.fields
        guard fields.range == nil, fields.origin == nil || varying.byOrigin == nil, !configuration.sendsServerTiming
        else { return nil }
        let hints = configuration.clientHints?.values(in: fields)
        let key = TargetKey(target: request.target[...], hints: hints.flatMap { $0.isEmpty ? nil : $0 })
        guard let known = targets[key], known.route != .information else { return nil }
        let time = now()
        if let expires = known.url.options.expires, Int64(expires) <= time { return nil }
        let choice = known.isOpen ? configuration.negotiation.choice(for: fields.accept) : .byURL
        if known.isOpen, configuration.refusesUnacceptable, configuration.negotiation.isUnacceptable(choice) {
            return nil
        }
        guard let found = resultAtHand(known, choice) else { return nil }
        let kept = keptHead(for: found.head, origin: found.origin, known: known, choice: choice, now: time)
        let allocator = request.channel.allocator
        if fields.ifNoneMatch != nil || fields.ifModifiedSince != nil,
            Precondition.isNotModified(
                fields, quotedTag: kept.head.quotedTag, lastModified: found.head.metadata.lastModified, now: time)
        {
            return ImmediateAnswer(kept.notModified, status: 304, origin: found.origin, allocator: allocator)
        }
        return ImmediateAnswer(
            kept.whole, status: 200, origin: found.origin, body: request.isHead ? nil : found.bytes,
            allocator: allocator)
    }

    private func keptHead(
        for result: ImageResult, origin: ImageAnswer.Origin, known: KnownTarget<Backend.Plan>,
        choice: FormatChoice, now: Int64
    ) -> KeptHead {
        if let kept = known.head(for: result, slot: choice.slot, now: now) { return kept }
        let kept = KeptHead(head(for: result, origin, known, now: now))
        known.keep(kept, slot: choice.slot)
        return kept
    }

    private func information<Context: RequestContext>(
        _ known: KnownTarget<Backend.Plan>, _ exchange: Exchange, context: Context
    ) async -> Response {
        do {
            let request = RequestInformation(id: exchange.requestID, isBackground: exchange.fields.isBackground)
            let (backend, plan) = (backend, known.plan)
            let answer = try await ClientDeparture.cancelling(Self.channel(of: context)) {
                try await backend.information(for: plan, request: request)
            }
            let head = AnswerHead(
                for: answer.result, origin: answer.origin, url: nil, varying: varying.byOrigin,
                configuration: configuration, now: now())
            return send(
                answer.result, whole: answer.result.bytes, head: head, origin: answer.origin, stages: answer.stages,
                exchange: exchange)
        } catch {
            return failure(ErrorAnswer.visible(error), exchange)
        }
    }

    static func channel<Context: RequestContext>(of context: Context) -> (any Channel)? {
        (context as? any ConnectionRequestContext)?.channel
    }

    // MARK: Answers

    private func head(
        for result: ImageResult, _ origin: ImageAnswer.Origin, _ known: KnownTarget<Backend.Plan>, now: Int64
    ) -> AnswerHead {
        AnswerHead(
            for: result, origin: origin, url: known.url,
            varying: varying.value(isOpen: known.isOpen, isRaw: known.url.options.isRaw),
            configuration: configuration, now: now)
    }

    func send(
        _ result: ImageResult, whole: ByteBuffer, head: AnswerHead, origin: ImageAnswer.Origin,
        stages: [ImageAnswer.Stage], exchange: Exchange
    ) -> Response {
        let fields = exchange.fields
        let image = SentImage(origin: origin, mediaType: result.metadata.mediaType, stages: stages)
        if fields.ifNoneMatch != nil || fields.ifModifiedSince != nil,
            Precondition.isNotModified(
                fields, quotedTag: head.quotedTag, lastModified: result.metadata.lastModified, now: now())
        {
            var response = Response(status: .notModified, headers: head.withoutBody)
            // A length of 0 would be that of the image.
            response.headers[.contentLength] = nil
            complete(&response.headers, stages: stages, exchange: exchange)
            observe(exchange, status: 304, image: image)
            return response
        }
        let count = whole.readableBytes
        var status = HTTPResponse.Status.ok
        var headers = head.fields
        var bytes = whole
        if fields.range != nil, !exchange.isHead,
            let range = Precondition.range(
                fields, quotedTag: head.quotedTag, lastModified: result.metadata.lastModified, count: count)
        {
            switch range {
            case .unsatisfiable:
                let extra: HTTPFields = [.contentRange: "bytes */\(count)"]
                let error = RequestError(416, code: "range-not-satisfiable", reason: "The range begins behind the end.")
                return failure(error, exchange, extra: extra)
            case .part(let part):
                guard let slice = bytes.getSlice(at: bytes.readerIndex + part.lowerBound, length: part.count) else {
                    return failure(RequestError(500, code: "internal", reason: "The range cannot be read."), exchange)
                }
                bytes = slice
                status = .partialContent
                headers[.contentLength] = String(part.count)
                headers.append(
                    HTTPField(name: .contentRange, value: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)"))
            }
        }
        complete(&headers, stages: stages, exchange: exchange)
        let sent = exchange.isHead ? 0 : bytes.readableBytes
        observe(exchange, status: status.code, bytes: sent, image: image)
        return Response(
            status: status, headers: headers, body: exchange.isHead ? ResponseBody() : ResponseBody(byteBuffer: bytes))
    }

    /// Adds the fields that are the request's own.
    private func complete(_ headers: inout HTTPFields, stages: [ImageAnswer.Stage], exchange: Exchange) {
        if configuration.sendsRequestID { headers.append(HTTPField(name: .requestID, value: exchange.requestID)) }
        if exchange.route != .iiif, let origin = exchange.fields.origin, varying.byOrigin != nil,
            configuration.allowedOrigins.contains(origin)
        {
            headers.append(HTTPField(name: .accessControlAllowOrigin, value: origin))
        }
        if configuration.sendsServerTiming, let started = exchange.started {
            headers.append(
                HTTPField(name: .serverTiming, value: ServerTiming.value(stages, total: .now - started)))
        }
    }

    /// The fields of answers that are no image: request identifier and CORS.
    func commonFields(_ exchange: Exchange) -> HTTPFields {
        var fields = HTTPFields()
        if configuration.allowedOrigins.contains("*") || exchange.route == .iiif {
            fields.append(HTTPField(name: .accessControlAllowOrigin, value: "*"))
        }
        complete(&fields, stages: [], exchange: exchange)
        if let vary = varying.byOrigin { fields.append(HTTPField(name: .vary, value: vary)) }
        return fields
    }

    /// - Parameter isImage: Whether an image was asked for, so that a fallback may replace the error.
    func failure(
        _ error: RequestError, _ exchange: Exchange, extra: HTTPFields = HTTPFields(), isImage: Bool = false,
        closes: Bool = false
    ) -> Response {
        var fields = commonFields(exchange)
        if extra.contains(.vary) { fields[.vary] = nil }
        for field in extra { fields.append(field) }
        let response = errors.response(
            for: error, requestID: exchange.requestID, extra: fields, isHead: exchange.isHead, isImage: isImage,
            closes: closes)
        observe(
            exchange, status: response.status.code, errorCode: error.code,
            bytes: response.body.contentLength ?? 0)
        return response
    }

    func observe(
        _ exchange: Exchange, status: Int, errorCode: String? = nil, bytes: Int = 0, image: SentImage? = nil
    ) {
        guard let observe = configuration.observe, let started = exchange.started else { return }
        observe(
            AnswerRecord(
                route: exchange.route, requestID: exchange.requestID, status: status, errorCode: errorCode,
                origin: image?.origin, mediaType: image?.mediaType, bytes: bytes, stages: image?.stages ?? [],
                duration: .now - started))
    }
}

/// An image of an answer, for its record.
struct SentImage {
    let origin: ImageAnswer.Origin
    let mediaType: String
    let stages: [ImageAnswer.Stage]
}

/// The values of `Vary`.
private struct Varying: Sendable {
    /// Nil if all origins are answered alike.
    let byOrigin: String?
    private let open: String?
    private let fixed: String?

    init(_ configuration: ImageHTTPConfiguration) {
        let origins = configuration.allowedOrigins
        byOrigin = origins.isEmpty || origins.contains("*") ? nil : "Origin"
        let rest = (configuration.clientHints?.names ?? []) + (byOrigin.map { [$0] } ?? [])
        fixed = rest.isEmpty ? nil : rest.joined(separator: ", ")
        let negotiated = configuration.negotiation.formats.isEmpty ? rest : ["Accept"] + rest
        open = negotiated.isEmpty ? nil : negotiated.joined(separator: ", ")
    }

    /// - Parameters:
    ///   - isOpen: Whether the format is chosen by `Accept`.
    ///   - isRaw: Whether neither `Accept` nor hints matter.
    func value(isOpen: Bool, isRaw: Bool) -> String? { isRaw ? byOrigin : isOpen ? open : fixed }

    func field(isOpen: Bool, isRaw: Bool) -> HTTPFields {
        value(isOpen: isOpen, isRaw: isRaw).map { [.vary: $0] } ?? HTTPFields()
    }
}

// MARK: - Targets

/// Identifies a target by its bytes, not by canonical equivalence.
package struct TargetKey: Hashable {
    let target: Substring
    var hints: ClientHints.Values?

    package init(target: Substring, hints: ClientHints.Values? = nil) {
        (self.target, self.hints) = (target, hints)
    }

    package static func == (first: TargetKey, second: TargetKey) -> Bool {
        guard first.target.utf8.count == second.target.utf8.count, first.hints == second.hints else { return false }
        let isSame = first.target.utf8.withContiguousStorageIfAvailable { first in
            second.target.utf8.withContiguousStorageIfAvailable { second -> Bool in
                guard let one = first.baseAddress, let other = second.baseAddress else { return first.isEmpty }
                return memcmp(one, other, first.count) == 0
            }
        }
        return (isSame ?? nil) ?? first.target.utf8.elementsEqual(second.target.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        let isHashed: Void? = target.utf8.withContiguousStorageIfAvailable {
            hasher.combine(bytes: UnsafeRawBufferPointer($0))
        }
        if isHashed == nil { for byte in target.utf8 { hasher.combine(byte) } }
        if let hints { hasher.combine(hints) }
    }
}

/// The header fields of a result, and their lines.
struct KeptHead: Sendable {
    let head: AnswerHead
    let whole: ImmediateAnswer.Lines
    let notModified: ImmediateAnswer.Lines

    init(_ head: AnswerHead) {
        self.head = head
        whole = ImmediateAnswer.Lines(.ok, head.fields)
        notModified = ImmediateAnswer.Lines(.notModified, head.withoutBody)
    }
}

/// A target after its verification, with the header fields of its results.
package final class KnownTarget<Plan: Sendable>: Sendable {
    let route: AnswerRecord.Route
    let url: ImageURL
    package let plan: Plan
    /// Whether `Accept` chooses the format.
    let isOpen: Bool
    private let heads: Mutex<[KeptHead?]>

    package init(route: AnswerRecord.Route, url: ImageURL, plan: Plan, slots: Int) {
        self.route = route
        self.url = url
        self.plan = plan
        isOpen = url.options.format == nil && !url.options.isRaw && slots > 1
        heads = Mutex(Array(repeating: nil, count: slots))
    }

    func head(for result: ImageResult, slot: Int, now: Int64) -> KeptHead? {
        guard let kept = heads.withLock({ $0[slot] }), kept.head.resultNumber == result.number,
            now <= kept.head.validUntil
        else { return nil }
        return kept
    }

    func keep(_ head: KeptHead, slot: Int) { heads.withLock { $0[slot] = head } }
}

/// Recent targets: those of the current and of the last period. A period ends when it has half of the capacity.
package final class KnownTargets<Plan: Sendable>: Sendable {
    private struct State {
        var current: [TargetKey: KnownTarget<Plan>] = [:]
        var last: [TargetKey: KnownTarget<Plan>] = [:]
    }

    private let state = Mutex(State())
    private let half: Int

    package init(capacity: Int) { half = max(1, capacity / 2) }

    package subscript(key: TargetKey) -> KnownTarget<Plan>? {
        get {
            state.withLock { state in
                if let known = state.current[key] { return known }
                guard let known = state.last[key] else { return nil }
                insert(known, key: key, state: &state)
                return known
            }
        }
        set {
            guard let newValue else { return }
            state.withLock { insert(newValue, key: key, state: &$0) }
        }
    }

    package func removeAll() { state.withLock { $0 = State() } }

    private func insert(_ known: KnownTarget<Plan>, key: TargetKey, state: inout State) {
        if state.current.count >= half {
            state.last = state.current
            state.current = [:]
        }
        state.current[key] = known
    }
}
