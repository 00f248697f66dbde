import HTTPTypes
import NIOCore
import VitrineImaging
import VitrineNetwork

/// The header fields of an image, made once for a result and used for each request of it.
final class AnswerHead: Sendable {
    /// The number of the result.
    let resultNumber: UInt64
    /// The last second in which the fields are right.
    let validUntil: Int64
    /// The entity tag with its quotes.
    let quotedTag: String
    /// The fields of the whole image.
    let fields: HTTPFields
    /// The fields that do not describe the body, for 304.
    let withoutBody: HTTPFields

    /// - Parameters:
    ///   - url: Nil for an answer that is no image.
    ///   - varying: The value of `Vary`.
    init(
        for result: ImageResult, origin: ImageAnswer.Origin, url: ImageURL?, varying: String?,
        configuration: ImageHTTPConfiguration, now: Int64
    ) {
        resultNumber = result.number
        quotedTag = "\"" + result.metadata.entityTag + "\""
        let (cacheControl, isConstant) = Self.cacheControl(
            for: result, origin: origin, expires: url?.options.expires, configuration.cacheControl, now: now)
        validUntil = isConstant ? .max : now
        var common = HTTPFields()
        common.reserveCapacity(16)
        common.append(HTTPField(name: .eTag, value: quotedTag))
        common.append(HTTPField(name: .cacheControl, value: cacheControl))
        if let varying { common.append(HTTPField(name: .vary, value: varying)) }
        if let date = result.metadata.lastModified {
            common.append(HTTPField(name: .lastModified, value: HTTPDate.text(date)))
        }
        if let name = configuration.cacheStatusName {
            common.append(HTTPField(name: .cacheStatus, value: Self.cacheStatus(name, origin)))
        }
        if url?.grammar == .iiif {
            let version = url?.options.sourceRules?.iiif?.version ?? .three
            common += IIIFDocument.imageFields(version, canonicalPath: result.metadata.canonicalPath)
        } else if configuration.allowedOrigins.contains("*") {
            common.append(HTTPField(name: .accessControlAllowOrigin, value: "*"))
        }
        if let hints = configuration.clientHints, url != nil {
            common.append(HTTPField(name: .acceptCH, value: hints.names.joined(separator: ", ")))
        }
        withoutBody = common
        let mediaType = Self.safeMediaType(of: result)
        common.append(HTTPField(name: .contentType, value: mediaType))
        if let coding = result.metadata.contentEncoding {
            common.append(HTTPField(name: .contentEncoding, value: coding))
        }
        common.append(HTTPField(name: .contentLength, value: String(result.count)))
        common.append(HTTPField(name: .acceptRanges, value: "bytes"))
        common.append(HTTPField(name: .xContentTypeOptions, value: "nosniff"))
        // Whatever the bytes turn out to be, they run no scripts in the server's origin.
        common.append(
            HTTPField(name: .contentSecurityPolicy, value: "sandbox; default-src 'none'; style-src 'unsafe-inline'"))
        if let url, let disposition = ContentDisposition.value(for: url.options, mediaType: mediaType) {
            common.append(HTTPField(name: .contentDisposition, value: disposition))
        }
        fields = common
    }

    private init(
        resultNumber: UInt64, validUntil: Int64, quotedTag: String, fields: HTTPFields, withoutBody: HTTPFields
    ) {
        (self.resultNumber, self.validUntil, self.quotedTag) = (resultNumber, validUntil, quotedTag)
        (self.fields, self.withoutBody) = (fields, withoutBody)
    }

    /// The same, and no cache that others use keeps it.
    func forOneClient() -> AnswerHead {
        var (fields, withoutBody) = (fields, withoutBody)
        let control = (fields[.cacheControl] ?? "").replacing("public", with: "private")
        (fields[.cacheControl], withoutBody[.cacheControl]) = (control, control)
        return AnswerHead(
            resultNumber: resultNumber, validUntil: validUntil, quotedTag: quotedTag, fields: fields,
            withoutBody: withoutBody)
    }

    /// The same with another type, and for scripts of an origin.
    func replacing(mediaType: String, allowedOrigin: String) -> AnswerHead {
        var (fields, withoutBody) = (fields, withoutBody)
        fields[.contentType] = mediaType
        fields[.accessControlAllowOrigin] = allowedOrigin
        withoutBody[.accessControlAllowOrigin] = allowedOrigin
        return AnswerHead(
            resultNumber: resultNumber, validUntil: validUntil, quotedTag: quotedTag, fields: fields,
            withoutBody: withoutBody)
    }

    /// Types that are no image, sound, video or PDF are sent as bytes, and JSON only where the server made it.
    private static func safeMediaType(of result: ImageResult) -> String {
        let type = result.metadata.mediaType.lowercased()
        let isMedia = ["image/", "video/", "audio/"].contains(where: type.hasPrefix) || type == "application/pdf"
        return isMedia || type == "application/json" && !result.metadata.isSource
            ? result.metadata.mediaType : "application/octet-stream"
    }

    /// RFC 9211.
    private static func cacheStatus(_ name: String, _ origin: ImageAnswer.Origin) -> String {
        switch origin {
        case .memory: "\(name); hit; detail=memory"
        case .disk: "\(name); hit; detail=disk"
        case .stale: "\(name); hit; detail=stale"
        case .shared: "\(name); hit; detail=shared"
        case .store: "\(name); hit; detail=store"
        case .made: "\(name); fwd=uri-miss; stored"
        case .coalesced: "\(name); fwd=uri-miss; collapsed; stored"
        }
    }

    /// Returns the value and whether it will be the same in the next second.
    private static func cacheControl(
        for result: ImageResult, origin: ImageAnswer.Origin, expires: Int?,
        _ control: ImageHTTPConfiguration.CacheControl, now: Int64
    ) -> (String, isConstant: Bool) {
        var age = Int64(control.maximumAge)
        var isConstant = true
        var scope = "public"
        if control.followsSource {
            switch SourceDirectives(result.metadata.sourceCacheControl) {
            case .forbidden: return ("no-store", true)
            case .revalidated: return ("no-cache", true)
            case .personal: scope = "private"
            case .open: break
            }
            if let end = result.metadata.expires {
                age = max(0, end - now)
                isConstant = age == 0
            }
        }
        if origin == .stale || result.metadata.isProvisional { age = min(age, Int64(control.staleAge)) }
        if let expires, Int64(expires) - now < age {
            age = max(0, Int64(expires) - now)
            isConstant = false
        }
        let isImmutable = control.isImmutable && age == Int64(control.maximumAge)
        return ("\(scope), max-age=\(age)" + (isImmutable ? ", immutable" : ""), isConstant)
    }

    /// The directive of the source that restricts most.
    private enum SourceDirectives {
        case open, personal, revalidated, forbidden

        init(_ text: String?) {
            self = .open
            guard let text else { return }
            let names = text.lowercased().split(separator: ",").map { directive in
                directive.prefix { $0 != "=" }.filter { $0 != " " && $0 != "\t" }
            }
            if names.contains("private") { self = .personal }
            if names.contains("no-cache") { self = .revalidated }
            if names.contains("no-store") { self = .forbidden }
        }
    }
}

/// The name under which clients save an image (RFC 6266).
enum ContentDisposition {
    /// Returns nil if the URL asks for nothing.
    static func value(for options: ProcessingOptions, mediaType: String) -> String? {
        guard options.fileName != nil || options.isAttachment else { return nil }
        let type = options.isAttachment ? "attachment" : "inline"
        let base = safe(options.fileName ?? "image")
        let name = fileExtension(of: mediaType).map { base + "." + $0 } ?? base
        let isPlain = name.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != 0x25 }
        var ascii = ""
        for scalar in name.unicodeScalars {
            ascii.unicodeScalars.append((0x20...0x7E).contains(scalar.value) && scalar != "%" ? scalar : "_")
        }
        let quoted = "\(type); filename=\"\(ascii)\""
        return isPlain ? quoted : quoted + "; filename*=UTF-8''" + percentEncoded(name)
    }

    /// Without directories, quotes and control characters.
    private static func safe(_ name: String) -> String {
        var result = ""
        for scalar in name.unicodeScalars.prefix(200) {
            let isUnsafe = scalar.value < 0x20 || scalar.value == 0x7F || "/\\\"".unicodeScalars.contains(scalar)
            result.unicodeScalars.append(isUnsafe ? "_" : scalar)
        }
        return result.isEmpty || result.allSatisfy({ $0 == "." }) ? "image" : result
    }

    /// RFC 8187, section 3.2.1.
    private static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        let plain = Array("!#$&+-.^_`|~".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: bytes.append(byte)
            case _ where plain.contains(byte): bytes.append(byte)
            default: bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func fileExtension(of mediaType: String) -> String? {
        switch mediaType.lowercased() {
        case "image/jpeg": "jpg"
        case "image/svg+xml": "svg"
        case "image/vnd.microsoft.icon", "image/x-icon": "ico"
        case "application/pdf": "pdf"
        case "video/mp4": "mp4"
        case let type where type.hasPrefix("image/"):
            String(type.dropFirst(6).prefix { $0.isASCII && ($0.isLetter || $0.isNumber) })
        default: nil
        }
    }
}

/// `Server-Timing`, in milliseconds.
enum ServerTiming {
    static func value(_ stages: [ImageAnswer.Stage], total: Duration) -> String {
        (stages + [ImageAnswer.Stage("total", total)])
            .map { "\($0.name);dur=\(milliseconds($0.duration))" }.joined(separator: ", ")
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let microseconds = max(0, seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
        let fraction = String(microseconds % 1000)
        return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
    }
}
