import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import VitrineImaging

/// The page for operators on the admin listener: `/admin`, its scripts, signatures and previews.
struct OperatorPage: Sendable {
    let responder: any HTTPResponder<ServerRequestContext>
    let configuration: @Sendable () -> ServerConfiguration
    let logger: Logger

    /// Answers a request; nil for one that is not this page's.
    func respond(to request: Request, channel: any Channel) async throws(RequestError) -> Response? {
        let path = request.uri.path
        guard path == "/" || path == "/admin" || path.hasPrefix("/admin/") else { return nil }
        guard request.method == .get || request.method == .head else {
            throw RequestError(405, code: "method", reason: "The method is not allowed here.")
        }
        switch path {
        case "/":
            return Response(status: .seeOther, headers: [.location: "/admin", .contentLength: "0"])
        case "/admin", "/admin/": return ServerPages.response("admin.html", to: request)
        case "/admin/sign":
            let signed = try signed(Gallery.Parameters(request)["path"] ?? "")
            return ServerPages.json(SettingValue.table(["path": .text(signed)]).json + "\n")
        case "/admin/preview":
            return try await preview(
                try signed(Gallery.Parameters(request)["path"] ?? ""), request: request, channel: channel)
        default:
            guard path.hasPrefix("/admin/assets/") else { return nil }
            return ServerPages.response(String(path.dropFirst("/admin/assets/".count)), to: request)
        }
    }

    /// - Parameter path: The path behind the signature, with or without its slash.
    private func signed(_ path: String) throws(RequestError) -> String {
        let path = path.hasPrefix("/") ? path : "/" + path
        guard path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), path.utf8.count > 1 else {
            throw RequestError(400, code: "malformed-path", reason: "The path is not percent-encoded.")
        }
        let configuration = configuration()
        guard let key = configuration.keys.first, let salt = configuration.salts.first else {
            return "/insecure" + path
        }
        return "/" + URLSigner(key: key, salt: salt, size: configuration.signatureSize).sign(path) + path
    }

    private func preview(
        _ path: String, request: Request, channel: any Channel
    ) async throws(RequestError) -> Response {
        var head = request.head
        head.path = path
        let inner = Request(head: head, body: RequestBody(buffer: ByteBuffer()))
        let context = ServerRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        do {
            var response = try await responder.respond(to: inner, context: context)
            response.headers[.cacheControl] = "no-store"
            ServerPages.protect(&response.headers)
            ServerPages.confine(&response.headers)
            return response
        } catch {
            throw ErrorAnswer.visible(error)
        }
    }
}

/// The slowest answers and the last errors, for the operator.
struct NotableAnswers: Sendable {
    struct Answer: Sendable {
        let path: String
        let status: Int
        let seconds: Double
        /// Seconds since 1970.
        let time: Int64
    }

    private static let lifetime: Int64 = 600
    private static let count = 40

    private(set) var slowest: [Answer] = []
    private(set) var errors: [Answer] = []

    /// Whether an answer would be noted as slow, so that others cost nothing.
    func isSlow(_ seconds: Double) -> Bool {
        seconds > 0.01 && (slowest.count < Self.count || seconds > slowest[slowest.count - 1].seconds)
    }

    mutating func note(_ answer: Answer) {
        // Clients that left are no errors.
        if answer.status >= 400, answer.status != 499 {
            errors.append(answer)
            if errors.count > Self.count { errors.removeFirst() }
        }
        guard isSlow(answer.seconds) else { return }
        slowest.removeAll { $0.time < answer.time - Self.lifetime }
        let place = slowest.firstIndex { $0.seconds < answer.seconds } ?? slowest.count
        slowest.insert(answer, at: place)
        if slowest.count > Self.count { slowest.removeLast() }
    }
}
