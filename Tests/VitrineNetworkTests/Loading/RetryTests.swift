import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

/// Repetitions have an end, and nothing a server says makes a wait longer than is allowed.
struct RetryTests {
    private static let farAway = [
        "61", "3600", "999999999", "9223372036854775807", "9223372036854775808", "18446744073709551616",
        "99999999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT",
    ]

    @Test(arguments: farAway) func longWaitsFailAtOnce(_ value: String) async throws {
        let clock = ManualClock()
        let http = ScriptedLoader { (request, count) throws(NetworkError) in
            count == 1 ? answer(request, 503, ["Retry-After": value]) : answer(request)
        }
        let loader = NetworkLoader(http, clock: clock, wallClock: .following(clock, from: .seconds(60)))
        let url = try #require(URL(string: "http://h/"))
        let error = await failure { _ = try await loader.load(HTTPRequest(url: url)) }
        #expect(error?.code == -402)
        // The site is left alone for no longer than the ceiling.
        let second = Task { try await loader.load(HTTPRequest(url: url)).head.status }
        await clock.waitForSleepers()
        clock.advance(by: .seconds(60))
        #expect(try await second.value == 200)
    }

    @Test(arguments: farAway) func delaysHaveACeiling(_ value: String) throws {
        let delay = try #require(RetryAfter.delay(value, now: .zero))
        #expect(delay > .seconds(60) && delay <= .seconds(86_400))
    }

    @Test func whatIsNoDelayIsNone() {
        for value in ["", "-5", "+5", "1.5", "soon", "5 ", "0x10", "Fri, 99 Foo 9999 99:99:99 GMT"] {
            #expect(RetryAfter.delay(value, now: .zero) == nil, "\(value)")
        }
        #expect(RetryAfter.delay("0", now: .zero) == .zero)
        #expect(RetryAfter.delay("Thu, 01 Jan 1970 00:00:00 GMT", now: .seconds(5)) == .zero)
        #expect(RetryAfter.delay("Mon, 01 Jan 0001 00:00:00 GMT", now: .seconds(Int64.max)) == .zero)
    }

    @Test func waitsGrowToTheirLimitWhateverIsSet() {
        var policy = RetryPolicy()
        policy.jitter = { 1 }
        let waits = (1...70).map { policy.delay(before: $0) }
        #expect(Array(waits[..<3]) == [.milliseconds(500), .seconds(1), .seconds(2)])
        #expect(zip(waits, waits.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(waits.last == .seconds(30))
        policy.base = .seconds(Int64.max)
        policy.maximumDelay = .seconds(Int64.max)
        for repetition in [Int.min, -1, 0, 1, 2, 63, 64, 65, Int.max] {
            for jitter in [Double.nan, -1, 0, 0.5, 1, .infinity] {
                policy.jitter = { jitter }
                #expect(policy.delay(before: repetition) >= .zero)
            }
        }
    }

    @Test func refusedConnectionsAndUnknownNamesEndWithTheirCause() async throws {
        let reserved = try ReservedPort()
        let refused = try #require(URL(string: "http://127.0.0.1:\(reserved.number)/"))
        var configuration = NetworkLoader.Configuration()
        configuration.retries.limit = 3
        configuration.retries.jitter = { 0 }
        let loader = NetworkLoader(makeLoader(), configuration)
        for target in [refused, try #require(URL(string: "http://no-such-host.invalid/"))] {
            let progress = TransferProgress()
            let error = await failure { _ = try await loader.load(patient(target), progress: progress) }
            #expect(progress.current.retries == 3)
            switch error {
            case .notConnected(_, let reason): #expect(reason.contains("refused"), "\(reason)")
            case .nameNotResolved(_, "no-such-host.invalid"): #expect(target != refused)
            default: Issue.record("\(String(describing: error))")
            }
        }
        withExtendedLifetime(reserved) {}
    }

    // MARK: Time in all

    @Test func whatTookTooLongIsNotBegunAgain() async throws {
        let server = try LoopbackServer { _ in [.hang] }
        var configuration = NetworkLoader.Configuration()
        configuration.retries.jitter = { 0 }
        let loader = NetworkLoader(makeLoader(), configuration)
        var request = patient(server.url("/")), calls = 0
        request.totalTimeout = .milliseconds(50)
        // On a busy machine a call may end before the server has read its request.
        while server.requests.isEmpty {
            let error = await failure { [request] in _ = try await loader.load(request) }
            guard case .tookTooLong = error else { Issue.record("\(String(describing: error))"); return }
            calls += 1
        }
        #expect(server.requests.count <= calls)
    }

    @Test func theBodyOfARedirectIsNotWaitedFor() async throws {
        let server = try LoopbackServer { request in
            guard request.target == "/" else { return [.reply(body: [7])] }
            return [.text("HTTP/1.1 302 F\r\nLocation: /there\r\nContent-Length: 1000\r\n\r\nx"), .hang]
        }
        let response = try await NetworkLoader(makeLoader()).load(patient(server.url("/")))
        #expect(try await response.body.collect() == [7])
    }

    // MARK: Fields

    @Test(arguments: [
        "Host", "host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Trailer", "Keep-Alive",
        "Proxy-Connection", "Expect", "HTTP2-Settings",
    ])
    func fieldsOfTheTransportAreRefused(_ name: String) async throws {
        let server = try LoopbackServer { _ in [.reply()] }
        let request = HTTPRequest(url: server.url("/"), headers: [name: "1"])
        for body in [nil, [UInt8(1)]] {
            var request = request
            request.body = body
            request.method = body == nil ? "GET" : "PUT"
            let error = await failure { [request] in _ = try await NetworkLoader(makeLoader()).load(request) }
            guard case .invalidRequest(_, let reason) = error else {
                Issue.record("\(name): \(String(describing: error))")
                continue
            }
            #expect(reason.lowercased().contains(name.lowercased()))
        }
        #expect(server.requests.isEmpty)
    }

    @Test func aRangeIsSaidOnce() async throws {
        let server = try LoopbackServer { _ in [.reply()] }
        for name in ["Range", "If-Range"] {
            var request = HTTPRequest(url: server.url("/"), headers: [name: "bytes=0-1"])
            request.range = .toEnd(from: 5)
            let error = await failure { [request] in _ = try await NetworkLoader(makeLoader()).load(request) }
            #expect(error?.code == -411)
        }
        #expect(server.requests.isEmpty)
    }
}
