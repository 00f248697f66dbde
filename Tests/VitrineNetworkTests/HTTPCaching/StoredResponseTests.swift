import Foundation
import TestSupport
import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

/// The bytes of stored responses.
struct StoredResponseTests {
    private func sample(_ headers: HTTPHeaders = ["ETag": "\"ü\"", "X": "", "Vary": "Foo, Bar"]) throws
        -> StoredResponse
    {
        var site = Site()
        var all: HTTPHeaders = ["Cache-Control": "max-age=60"]
        all.append(contentsOf: headers)
        site.receive(all, to: site.request("GET", ["Foo": "1"]), delay: .milliseconds(123), bodyLength: .max)
        return try #require(site.stored.first)
    }

    @Test func comesBackFromItsBytes() throws {
        for response in [try sample(), try sample([:]), try sample().invalidated()] {
            var response = response
            #expect(try StoredResponse(bytes: response.bytes()) == response)
            response.bodyLength = nil
            #expect(try StoredResponse(bytes: response.bytes()) == response)
        }
        // A few bytes more than its texts.
        #expect(try sample().bytes().count < 100)
    }

    @Test func throwsForDamagedBytes() throws {
        let bytes = try sample().bytes()
        for length in bytes.indices {
            #expect(throws: StoredResponseError.self) { try StoredResponse(bytes: Array(bytes[..<length])) }
        }
        #expect(throws: StoredResponseError.damaged) { try StoredResponse(bytes: bytes + [0]) }
        #expect(throws: StoredResponseError.unknownVersion(9)) { try StoredResponse(bytes: [9] + bytes.dropFirst()) }
        // Whatever they say now, it is a response or an error.
        for index in bytes.indices {
            for value in [UInt8(0), 1, 0x7F, 0x80, 0xFF, bytes[index] ^ 1] {
                var damaged = bytes
                damaged[index] = value
                guard let response = try? StoredResponse(bytes: damaged) else { continue }
                let site = Site(.images)
                _ = site.cache.decide(site.request(), stored: [response], now: site.now)
                _ = site.cache.head(of: response, for: site.request("GET", ["Range": "bytes=0-1"]), now: site.now)
                #expect(try StoredResponse(bytes: response.bytes()) == response)
            }
        }
    }

    @Test func survivesRandomBytes() {
        var generator = SeededGenerator(9111)
        for _ in 0..<5000 {
            let count = Int.random(in: 0..<64, using: &generator)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            _ = try? StoredResponse(bytes: [2, 0] + bytes)
            _ = try? StoredResponse(bytes: bytes)
        }
    }

    @Test func asksForNoMoreMemoryThanThereAreBytes() {
        let counts: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]
        #expect(throws: StoredResponseError.damaged) { try StoredResponse(bytes: [2, 0, 0xC8, 1, 0, 0] + counts) }
        #expect(throws: StoredResponseError.damaged) {
            try StoredResponse(bytes: [2, 0, 0xC8, 1, 0, 0, 1] + counts + [0x41, 0x41])
        }
    }

    /// 10,000 fields, of each kind that is looked at.
    @Test func copesWithVeryManyFields() throws {
        let names = [
            "X", "Cache-Control", "Vary", "Connection", "Age", "Expires", "ETag", "Content-Location", "Location",
        ]
        for name in names {
            var headers: HTTPHeaders = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
            for index in 0..<10_000 {
                headers.append(name, name == "X" ? "\(index)" : "x-\(index % 50), max-age=\(index)")
            }
            var site = Site()
            site.receive(headers)
            site.receive(headers, status: 304, revalidating: site.stored.isEmpty ? nil : 0)
            _ = site.decide(headers)
            if let stored = site.stored.first {
                #expect(try StoredResponse(bytes: stored.bytes()) == stored)
                _ = site.cache.head(of: stored, for: site.request("GET", headers), now: site.now)
            }
            site.receive(headers, to: site.request("POST"))
        }
    }
}
