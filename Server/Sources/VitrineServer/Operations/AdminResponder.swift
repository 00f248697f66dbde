import Foundation
import HTTPTypes
import Hummingbird
package import HummingbirdCore
package import Logging
package import NIOCore

/// The results that a purge removes.
package enum PurgeRequest: Sendable, Equatable {
    /// Every result of a source, by its address.
    case source(String)
    /// Every result of the sources whose addresses begin so.
    case prefix(String)
    case tag(String)
    case all

    /// Reads `{"source":…}`, `{"prefix":…}`, `{"tag":…}` or `{"all":true}`.
    init(_ body: ByteBuffer) throws(RequestError) {
        let values = (try? SettingValue.json(Data(body.readableBytesView))) ?? [:]
        switch values.first {
        case ("source", .text(let text))? where values.count == 1 && !text.isEmpty: self = .source(text)
        case ("prefix", .text(let text))? where values.count == 1 && !text.isEmpty: self = .prefix(text)
        case ("tag", .text(let text))? where values.count == 1 && !text.isEmpty: self = .tag(text)
        case ("all", .boolean(true))? where values.count == 1: self = .all
        default:
            throw RequestError(
                400, code: "bad-purge",
                reason:
                    "The body must be one of {\"source\":TEXT}, {\"prefix\":TEXT}, {\"tag\":TEXT} and {\"all\":true}.")
        }
    }
}

/// Answers the admin listener: metrics, health, configuration, requests under way, and purges.
package struct AdminResponder: Sendable {
    package var metrics: ServerMetrics
    package var drain: DrainState
    package var inFlight: RequestsInFlight
    package var redactor: @Sendable () -> Redactor
    package var configuration: @Sendable () -> ServerConfiguration
    /// Removes results and returns their number; nil if the server keeps none.
    package var purge: (@Sendable (PurgeRequest) async throws -> Int)?
    package var logger: Logger
    /// Further facts for `/debug`.
    package var facts: @Sendable () async -> [String: SettingValue]
    let page: OperatorPage

    package func respond(
        to request: Request, writer: consuming ResponseWriter, channel: any Channel
    ) async throws {
        var response: Response
        do throws(RequestError) {
            response = try await answer(request, channel)
        } catch {
            response = .error(error)
        }
        ServerPages.protect(&response.headers)
        if request.method == .head { response = response.createHeadResponse() }
        try await writer.write(response: response.head, body: response.body)
    }

    private func answer(_ request: Request, _ channel: any Channel) async throws(RequestError) -> Response {
        let path = request.uri.path
        // Else a page of another host, whose name leads here, could read what only the operator may see.
        let peer = ClientAddress(channel.remoteAddress ?? channel.parent?.remoteAddress)
        guard LocalHost.isOperators(request, hosts: configuration().adminHosts, peer: peer) else {
            throw RequestError(
                421, code: "wrong-host",
                reason: "Ask for an address or for localhost, or name this host in admin-hosts.")
        }
        if path == "/purge" {
            guard request.method == .post else { return Self.notAllowed("POST") }
            return try await purge(request)
        }
        if let response = try await page.respond(to: request, channel: channel) { return response }
        let answer: Response
        switch path {
        case "/metrics": answer = .text(.ok, metrics.registry.text(), type: PrometheusRegistry.contentType)
        case "/health": answer = .text(.ok, "ok\n")
        case "/ready": answer = drain.isDraining ? .text(.serviceUnavailable, "draining\n") : .text(.ok, "ready\n")
        case "/config": answer = .text(.ok, configuration().json + "\n", type: "application/json")
        case "/debug": answer = .text(.ok, await debug() + "\n", type: "application/json")
        default: throw RequestError(404, code: "not-found", reason: "There is no such path.")
        }
        return request.method == .get || request.method == .head ? answer : Self.notAllowed("GET, HEAD")
    }

    private static func outcome(of body: () async throws -> Int) async -> Result<Int, any Error> {
        do {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }

    private static func notAllowed(_ methods: String) -> Response {
        var response = Response.error(RequestError(405, code: "method", reason: "The method is not allowed here."))
        response.headers[.allow] = methods
        return response
    }

    private func debug() async -> String {
        let now = monotonicNanoseconds()
        let redactor = redactor()
        var facts = await facts()
        facts["draining"] = .boolean(drain.isDraining)
        facts["in_flight"] = .list(
            inFlight.entries.prefix(1000).map { entry in
                .table([
                    "id": .text(entry.id), "method": .text(entry.method),
                    "path": .text(redactor(String(entry.path.prefix(2048)))), "client": .text(entry.client),
                    "seconds": .number(Double((now - entry.started) / 1_000_000) / 1000),
                ])
            })
        let notable = inFlight.notable
        for (name, answers) in [("slowest", notable.slowest), ("errors", notable.errors.reversed())] {
            facts[name] = .list(
                answers.map { answer in
                    .table([
                        "path": .text(redactor(String(answer.path.prefix(2048)))), "status": .integer(answer.status),
                        "seconds": .number((answer.seconds * 10_000).rounded() / 10_000),
                        "time": .integer(Int(answer.time)),
                    ])
                })
        }
        return SettingValue.table(facts).json
    }

    private func purge(_ request: Request) async throws(RequestError) -> Response {
        guard let purge else { throw RequestError(501, code: "no-cache", reason: "This server keeps no results.") }
        // A page of another host in a browser on this machine can send neither without asking first, which is answered
        // 405.
        guard LocalHost.isSameOrigin(request, hosts: configuration().adminHosts),
            request.headers[.contentType]?.hasPrefix("application/json") == true
        else { throw RequestError(415, code: "media-type", reason: "The body must be application/json.") }
        guard let body = try? await request.body.collect(upTo: 65_536) else {
            throw RequestError(413, code: "too-large", reason: "The body is larger than 64 KiB.")
        }
        let what = try PurgeRequest(body)
        switch await Self.outcome(of: { try await purge(what) }) {
        case .success(let count): return .text(.ok, "{\"purged\":\(count)}\n", type: "application/json")
        case .failure(let error as RequestError) where error.status < 500 || error.code == "purge-pending": throw error
        case .failure(let error):
            logger.error("A purge failed", metadata: ["error": "\(error)"])
            throw RequestError(500, code: "internal", reason: "The results cannot be removed; the log says why.")
        }
    }
}
