import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import Synchronization
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// The gallery: pages below `/gallery/` that show the files of the local root, and their data.
///
/// - `/gallery/`: the page; `/gallery/assets/…`: its scripts
/// - `/gallery/list`: a folder as plain links
/// - `/gallery/api/…`: folders, details, covers and changes as JSON
/// - `/gallery/media/…`: images, as by the native grammar without signatures and by IIIF
/// - `/gallery/original/…`: files as they are, also in parts
final class Gallery: Sendable {
    private struct Current: Sendable {
        let service: ImageService<GalleryBackend>
        let renderer: Renderer
        let access: GalleryAccess
        let title: String
    }

    static let prefix = "/gallery"
    static let maximumPage = 1_000

    private let files: GalleryFiles
    private let listings: GalleryListings
    private let details: GalleryDetails
    private let watch: GalleryWatch
    private let executor: BlockingExecutor
    private let current: Mutex<Current>

    init(_ configuration: ServerConfiguration, _ images: ImageRoutes) throws {
        executor = BlockingExecutor(threads: 4, name: "vitrine-gallery")
        files = GalleryFiles(root: configuration.localRoot)
        listings = GalleryListings(files, executor)
        details = GalleryDetails(files, executor)
        watch = GalleryWatch(files)
        current = Mutex(try Self.current(configuration, images))
    }

    private static func current(_ configuration: ServerConfiguration, _ images: ImageRoutes) throws -> Current {
        let renderer = images.renderer
        let backend = GalleryBackend(backend: try ServerBackend(configuration.ofGallery, renderer))
        var http = try configuration.http()
        http.observe = images.service.configuration.observe
        http.fallback = nil
        // Its own pages ask in these grammars, whether others may or not.
        (http.hasNative, http.hasInformation, http.hasIIIF) = (true, true, true)
        // What others may not see, scripts of other hosts may not read.
        http.allowedOrigins = []
        let root = configuration.localRoot
        return Current(
            service: ImageService(backend, configuration: http), renderer: renderer,
            access: GalleryAccess(
                token: configuration.galleryToken,
                proxies: ClientLocator(trustedProxies: configuration.trustedProxies)),
            title: root.split(separator: "/").last.map(String.init) ?? "/")
    }

    /// Applies a configuration, after ``ImageRoutes/reload(_:)``.
    func reload(_ configuration: ServerConfiguration, _ images: ImageRoutes) throws {
        let new = try Self.current(configuration, images)
        current.withLock { $0 = new }
        details.forgetFailures()
    }

    /// Ends answers that would never end by themselves.
    func stop() { watch.stop() }

    /// Answers a request; nil for one that is not the gallery's.
    func respond(to request: Request, context: ServerRequestContext) async -> Response? {
        let path = request.uri.path
        if path == "/" || path == Self.prefix { return Self.redirect(to: Self.prefix + "/") }
        guard path.hasPrefix(Self.prefix + "/") else { return nil }
        var response: Response
        do throws(RequestError) {
            response = try await answer(request, path: String(path.dropFirst(Self.prefix.count + 1)), context: context)
        } catch {
            response = .error(error)
            if error.status == 405 { response.headers[.allow] = ImageMethods.allowed }
        }
        ServerPages.protect(&response.headers)
        return response
    }

    private static func redirect(to place: String) -> Response {
        Response(status: .seeOther, headers: [.location: place, .cacheControl: "no-store", .contentLength: "0"])
    }

    private func answer(
        _ request: Request, path: String, context: ServerRequestContext
    ) async throws(RequestError) -> Response {
        let current = current.withLock { $0 }
        if path == "token", request.method == .post { return try await signIn(request, current.access) }
        guard request.method == .get || request.method == .head else {
            throw RequestError(405, code: "method-not-allowed", reason: "The gallery has GET and HEAD only.")
        }
        // These say nothing about files, and the page needs them to ask for the token.
        if path.hasPrefix("assets/"), let response = ServerPages.response(String(path.dropFirst(7)), to: request) {
            return response
        }
        switch current.access.decision(for: request, peer: context.peer) {
        case .allowed: break
        case .tokenNeeded:
            if path == "list" {
                return ServerPages.html(GalleryList.door(isWrong: false), to: request, status: .unauthorized)
            }
            let page = path.isEmpty ? ServerPages.response("index.html", to: request, status: .unauthorized) : nil
            guard let page else {
                throw RequestError(401, code: "token-needed", reason: "The gallery needs its token.")
            }
            return page
        case .refused:
            throw RequestError(
                403, code: "other-machine", reason: "The gallery has no token, so that only this machine may open it.")
        }
        let parameters = Parameters(request)
        switch path {
        case "":
            guard let page = ServerPages.response("index.html", to: request) else { break }
            return page
        case "list": return try await list(request, parameters, current: current, context: context)
        case "api/folder": return try await folder(parameters, current: current, context: context)
        case "api/details": return try await details(parameters, current: current, context: context)
        case "api/cover":
            let folder = try GalleryFiles.names(of: parameters["path"] ?? "")
            let names = try await listings.cover(of: folder).map { SettingValue.text($0) }
            return ServerPages.json(SettingValue.table(["names": .list(names)]).json)
        case "api/changes": return try changes(parameters)
        default:
            if path.hasPrefix("original/") { return try await original(request, parameters) }
            if path.hasPrefix("media/") { return await media(request, current: current, context: context) }
        }
        throw RequestError(404, code: "not-found", reason: "There is nothing at this path.")
    }

    /// The percent-decoded values of a query. A plus sign is one.
    struct Parameters {
        private var values: [String: String] = [:]

        init(_ request: Request) {
            let target = request.head.path ?? ""
            guard let mark = target.firstIndex(of: "?") else { return }
            for pair in target[target.index(after: mark)...].split(separator: "&") {
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard let name = parts.first, let value = String(parts.dropFirst().first ?? "").removingPercentEncoding
                else { continue }
                values[String(name)] = value
            }
        }

        subscript(name: String) -> String? { values[name] }

        func integer(_ name: String, in range: ClosedRange<Int>, default other: Int) throws(RequestError) -> Int {
            guard let text = values[name] else { return other }
            guard let value = Int(text), range.contains(value) else {
                throw RequestError(
                    400, code: "invalid-parameter", reason: "“\(name)” is not a number of the right size.")
            }
            return value
        }
    }

    // MARK: Token

    private func signIn(_ request: Request, _ access: GalleryAccess) async throws(RequestError) -> Response {
        guard let body = try? await request.body.collect(upTo: 4_096) else {
            throw RequestError(413, code: "too-large", reason: "The body is larger than 4 KiB.")
        }
        let text = String(buffer: body)
        let value = text.hasPrefix("token=")
            ? text.dropFirst(6).replacing("+", with: " ").removingPercentEncoding : nil
        guard access.isToken(value?.trimmingCharacters(in: .whitespacesAndNewlines)), let value else {
            // A form of its own page, not a script.
            if request.headers[.accept]?.contains("text/html") == true {
                return ServerPages.html(GalleryList.door(isWrong: true), to: request, status: .unauthorized)
            }
            throw RequestError(401, code: "token-needed", reason: "This is not the token.")
        }
        let allowed = CharacterSet.alphanumerics.intersection(CharacterSet(charactersIn: "\u{21}"..."\u{7E}"))
        let token = value.trimmingCharacters(in: .whitespacesAndNewlines)
            .addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        var response = Self.redirect(to: Self.prefix + "/")
        let isSecure = request.head.scheme == "https" ? "; Secure" : ""
        response.headers[.setCookie] =
            "\(GalleryAccess.cookieName)=\(token); Path=/gallery; HttpOnly; SameSite=Strict; "
            + "Max-Age=31536000\(isSecure)"
        return response
    }

    // MARK: Data

    private static func query(_ parameters: Parameters) throws(RequestError) -> GalleryQuery {
        var query = GalleryQuery()
        query.folder = try GalleryFiles.names(of: parameters["path"] ?? "")
        if let order = parameters["sort"] {
            guard let order = GalleryQuery.Order(rawValue: order) else {
                throw RequestError(400, code: "invalid-parameter", reason: "“sort” is name, date or size.")
            }
            query.order = order
        }
        query.isDescending = parameters["descending"] == "1"
        query.words = (parameters["q"] ?? "").prefix(200).split(whereSeparator: \.isWhitespace).map(String.init)
        let times = -1 << 40...1 << 40
        if parameters["after"] != nil { query.earliest = Int64(try parameters.integer("after", in: times, default: 0)) }
        if parameters["before"] != nil { query.latest = Int64(try parameters.integer("before", in: times, default: 0)) }
        return query
    }

    /// The kept listing that a request names, or that of its folder.
    private func listing(
        _ parameters: Parameters, _ context: ServerRequestContext
    ) async throws(RequestError) -> GalleryListing {
        if let kept = parameters["listing"].flatMap({ listings.listing($0) }) { return kept }
        let query = try Self.query(parameters)
        return try await Self.untilDeparture(context) { [listings] in try await listings.listing(of: query) }
    }

    private func list(
        _ request: Request, _ parameters: Parameters, current: Current, context: ServerRequestContext
    ) async throws(RequestError) -> Response {
        do throws(RequestError) {
            let offset = try parameters.integer("offset", in: 0...10_000_000, default: 0)
            let listing = try await listing(parameters, context)
            let page = GalleryList(listing: listing, title: current.title, offset: offset)
            return ServerPages.html(page.html, to: request)
        } catch {
            let status = HTTPResponse.Status(code: error.status)
            return ServerPages.html(GalleryList.failure(error), to: request, status: status)
        }
    }

    private func folder(
        _ parameters: Parameters, current: Current, context: ServerRequestContext
    ) async throws(RequestError) -> Response {
        let offset = try parameters.integer("offset", in: 0...10_000_000, default: 0)
        let limit = try parameters.integer("limit", in: 1...Self.maximumPage, default: 200)
        let listing = try await listing(parameters, context)
        let entries = listing.entries.dropFirst(offset).prefix(limit)
        var text = #"{"listing":\#(JSONText.quoted(listing.number)),"total":\#(listing.entries.count)"#
        text += #","offset":\#(offset)"#
        text += #","title":\#(JSONText.quoted(current.title)),"truncated":\#(listing.isTruncated)"#
        if let name = parameters["find"], let index = listing.entries.firstIndex(where: { $0.name == name }) {
            text += ",\"found\":\(index)"
        }
        if offset == 0 {
            text += ",\"kinds\":\(listing.counts)"
            text += ",\"folders\":[" + listing.folders.map { JSONText.quoted($0) }.joined(separator: ",") + "]"
        }
        text += ",\"items\":["
        var isFirst = true
        for entry in entries {
            let stamp = entry.stamp
            let version = String(stamp.seconds, radix: 36) + String(stamp.nanoseconds, radix: 36)
            text += isFirst ? "[" : ",["
            text += JSONText.quoted(entry.name)
            text += ",\(stamp.bytes),\(stamp.seconds),\(entry.kind.number),\"\(version)\"]"
            isFirst = false
        }
        return ServerPages.json(text + "]}\n")
    }

    private static func untilDeparture<Value: Sendable>(
        _ context: ServerRequestContext, _ body: @escaping @Sendable () async throws -> Value
    ) async throws(RequestError) -> Value {
        do {
            return try await ClientDeparture.cancelling(context.channel, body)
        } catch {
            throw ErrorAnswer.visible(error)
        }
    }

    private func details(
        _ parameters: Parameters, current: Current, context: ServerRequestContext
    ) async throws(RequestError) -> Response {
        guard let listing = parameters["listing"].flatMap({ listings.listing($0) }) else {
            throw RequestError(
                410, code: "listing-gone", reason: "The listing is no longer kept; ask for the folder again.")
        }
        let offset = try parameters.integer("offset", in: 0...10_000_000, default: 0)
        let limit = try parameters.integer("limit", in: 1...Self.maximumPage, default: 100)
        let entries = listing.entries.dropFirst(offset).prefix(limit)
        let details = details
        let renderer = parameters["placeholders"] == "1" ? current.renderer : nil
        let known = try await Self.untilDeparture(context) {
            await details.details(of: entries, in: listing.query.folder, placeholdersBy: renderer)
        }
        let texts = known.map { details in
            guard let details else { return "null" }
            let hash = details.hash.map { JSONText.quoted($0) } ?? "null"
            let duration = JSONText.number(Double(details.duration))
            let failure = details.failure.map { JSONText.quoted($0) } ?? "null"
            return "[\(details.width),\(details.height),\(hash),\(details.pages),\(duration),\(failure)]"
        }
        return ServerPages.json("{\"offset\":\(offset),\"details\":[" + texts.joined(separator: ",") + "]}\n")
    }

    private func changes(_ parameters: Parameters) throws(RequestError) -> Response {
        let signals = try watch.signals(of: try GalleryFiles.names(of: parameters["path"] ?? ""))
        let headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store"]
        return Response(
            status: .ok, headers: headers,
            body: ResponseBody { writer in
                try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                for await signal in signals {
                    switch signal {
                    case .changed:
                        // One message for the many events of a copied folder.
                        try await Task.sleep(for: .milliseconds(250))
                        try await writer.write(ByteBuffer(string: "event: changed\ndata: {}\n\n"))
                    case .alive: try await writer.write(ByteBuffer(string: ":\n\n"))
                    }
                }
                try await writer.finish(nil)
            })
    }

    // MARK: Files

    private func media(_ request: Request, current: Current, context: ServerRequestContext) async -> Response {
        let mount = Self.prefix.utf8.count + "/media".utf8.count
        var response = await current.service.respond(to: request, mountLength: mount, context: context)
        // Behind a token, only the client itself may keep them.
        if let control = response.headers[.cacheControl] {
            response.headers[.cacheControl] = control.replacing("public", with: "private")
        }
        // Those of IIIF are for everyone elsewhere.
        response.headers[.accessControlAllowOrigin] = nil
        ServerPages.confine(&response.headers)
        return response
    }

    private func original(_ request: Request, _ parameters: Parameters) async throws(RequestError) -> Response {
        let mount = Self.prefix.count + "/original/".count
        let target = (request.head.path ?? "").prefix { $0 != "?" }
        guard let path = String(target.dropFirst(mount)).removingPercentEncoding else {
            throw .badSource("the path is not percent-encoded correctly")
        }
        let names = try GalleryFiles.names(of: path)
        let files = files
        guard let name = names.last, let kind = GalleryFiles.Kind(name: FileName.bytes(of: name)) else {
            throw .sourceNotFound
        }
        let opened = await executor.run { () -> Result<(GalleryOpenFile, String, String?), RequestError> in
            do throws(RequestError) {
                let file = GalleryOpenFile(try files.openFile(names))
                let content = (try? file.content()) ?? nil
                // The names of presentations are those of keys, too.
                guard content != nil || kind != .container else { throw .notAnImage }
                let type = content?.mediaType ?? "application/octet-stream"
                let head = GalleryFiles.beginning(of: file.descriptor, count: 4)
                return .success((file, type, SourceHeader.contentEncoding(of: head, mediaType: type)))
            } catch {
                return .failure(error)
            }
        }
        let (file, type, encoding) = try opened.get()
        let stamp = file.stamp
        let tag = "\"\(stamp.file)-\(stamp.bytes)-\(stamp.seconds)-\(stamp.nanoseconds)\""
        var headers: HTTPFields = [
            .contentType: type, .cacheControl: "private, no-cache", .eTag: tag, .acceptRanges: "bytes",
            .lastModified: HTTPDate.text(stamp.seconds),
        ]
        ServerPages.confine(&headers)
        if parameters["download"] == "1" {
            headers[.contentDisposition] = "attachment; filename*=UTF-8''" + Self.escaped(name)
        } else {
            headers[.contentEncoding] = encoding
        }
        let fields = RequestFields(request.headers)
        if Precondition.isNotModified(fields, quotedTag: tag, lastModified: stamp.seconds, now: Int64(time(nil))) {
            return Response(status: .notModified, headers: headers)
        }
        var part = 0..<Int(stamp.bytes)
        var status = HTTPResponse.Status.ok
        if fields.range != nil, request.method == .get,
            let range = Precondition.range(
                fields, quotedTag: tag, lastModified: stamp.seconds, count: Int(stamp.bytes))
        {
            switch range {
            case .unsatisfiable:
                headers[.contentRange] = "bytes */\(stamp.bytes)"
                headers[.contentLength] = "0"
                return Response(status: .rangeNotSatisfiable, headers: headers)
            case .part(let wanted):
                part = wanted
                status = .partialContent
                headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(stamp.bytes)"
            }
        }
        headers[.contentLength] = String(part.count)
        guard request.method == .get else { return Response(status: status, headers: headers) }
        return Response(status: status, headers: headers, body: Self.body(file, part: part, executor: executor))
    }

    private static func escaped(_ name: String) -> String {
        let allowed = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")
        return String(decoding: FileName.bytes(of: name), as: UTF8.self)
            .addingPercentEncoding(withAllowedCharacters: allowed) ?? "original"
    }

    private static func body(
        _ file: GalleryOpenFile, part: Range<Int>, executor: BlockingExecutor
    ) -> ResponseBody {
        ResponseBody(contentLength: part.count) { writer in
            var offset = part.lowerBound
            while offset < part.upperBound {
                let (start, count) = (offset, min(256 << 10, part.upperBound - offset))
                let bytes = await executor.run { GalleryFiles.read(file.descriptor, at: Int64(start), count: count) }
                // A file that became shorter cannot be sent to its end.
                guard bytes.count == count else { throw ChannelError.outputClosed }
                try await writer.write(ByteBuffer(bytes: bytes))
                offset += count
            }
            try await writer.finish(nil)
        }
    }
}

/// Answers the requests of the gallery, and passes all others to the images.
struct GalleryResponder: HTTPResponder {
    let gallery: Gallery
    let images: ImageResponder<ServerRequestContext>

    func respond(to request: Request, context: ServerRequestContext) async -> Response {
        if let response = await gallery.respond(to: request, context: context) { return response }
        return await images.respond(to: request, context: context)
    }
}
