import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// Documents of IIIF, and the way to them.
extension ImageService {
    func document<Context: RequestContext>(
        _ target: Substring, request: Request, mountLength: Int, exchange: Exchange, context: Context
    ) async -> Response {
        guard let path = IIIFDocument.path(target) else {
            return failure(RequestError(404, code: "not-found", reason: "There is nothing at this path."), exchange)
        }
        do {
            let base = try base(of: request, mountLength: mountLength)
            switch path {
            case .image(let identifier):
                let version = target.hasPrefix("/iiif/2/") ? 2 : 3
                return redirect(to: "\(base)/iiif/\(version)/\(identifier)/info.json", exchange)
            case .document(let kind, let identifier):
                let document = IIIFDocument(
                    kind: Self.negotiated(kind, request), identifier: identifier, base: base + "/iiif")
                return try await answer(to: document, request, exchange, context: context)
            }
        } catch {
            return failure(ErrorAnswer.visible(error), exchange)
        }
    }

    private static func negotiated(_ kind: IIIFDocument.Kind, _ request: Request) -> IIIFDocument.Kind {
        guard case .information(let version) = kind else { return kind }
        return .information(IIIFDocument.version(version, accept: request.headers[.accept]))
    }

    /// The address of the mount.
    private func base(of request: Request, mountLength: Int) throws(RequestError) -> String {
        if let address = configuration.publicURL { return address }
        let scheme = request.head.scheme == "https" ? "https" : "http"
        guard let host = request.head.authority, IIIFDocument.isAuthority(host) else {
            throw RequestError(400, code: "invalid-host", reason: "The request names no host.")
        }
        let mount = (request.head.path ?? "").utf8.prefix(mountLength)
        return "\(scheme)://\(host)\(String(Substring(mount)))"
    }

    private func redirect(to address: String, _ exchange: Exchange) -> Response {
        var fields = commonFields(exchange)
        fields.append(HTTPField(name: .location, value: address))
        fields.append(HTTPField(name: .contentLength, value: "0"))
        if configuration.publicURL == nil { fields.append(HTTPField(name: .cacheControl, value: "no-store")) }
        observe(exchange, status: 303)
        return Response(status: .seeOther, headers: fields)
    }

    private func answer<Context: RequestContext>(
        to document: IIIFDocument, _ request: Request, _ exchange: Exchange, context: Context
    ) async throws -> Response {
        let information = RequestInformation(id: exchange.requestID)
        let backend = backend
        let answer = try await ClientDeparture.cancelling(Self.channel(of: context)) {
            try await backend.document(document, request: information)
        }
        var head = AnswerHead(
            for: answer.result, origin: answer.origin, url: nil,
            varying: configuration.publicURL == nil ? "Accept, Host" : "Accept", configuration: configuration,
            now: now()
        ).replacing(mediaType: document.mediaType(accept: request.headers[.accept]), allowedOrigin: "*")
        // A document with the host that a client named is for this client alone.
        if configuration.publicURL == nil { head = head.forOneClient() }
        return send(
            answer.result, whole: answer.result.bytes, head: head, origin: answer.origin, stages: answer.stages,
            exchange: exchange)
    }
}
