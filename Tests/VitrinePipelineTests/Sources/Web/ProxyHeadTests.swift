import Foundation
import TestSupport
import Testing
import VitrinePipeline
import VitrineWebPages

/// What the proxy of web pages takes from browsers and servers.
@Suite struct ProxyHeadTests {
    private static func head(_ text: String) throws(ProxyHeadError) -> ProxyRequestHead {
        try ProxyRequestHead(parsing: Array(text.replacing("\n", with: "\r\n").utf8))
    }

    @Test func readsWhatBrowsersSend() throws {
        let tunnel = try Self.head("CONNECT example.org:443 HTTP/1.1\nHost: example.org:443\nProxy-Connection: keep-alive")
        #expect(tunnel.isTunnel && tunnel.site.host.text == "example.org" && tunnel.site.port == 443)
        #expect(tunnel.fields.isEmpty && tunnel.bodySize == 0)
        let request = try Self.head(
            "POST http://[2001:db8::1]:8080/a?b=\\|^ HTTP/1.1\nHost: other\nContent-Length: 12\nA: b\nConnection: close")
        #expect(!request.isTunnel && request.site.origin == "http://[2001:db8::1]:8080" && request.bodySize == 12)
        #expect(String(decoding: request.target, as: UTF8.self) == "/a?b=\\|^")
        #expect(request.fields.map { String(decoding: $0, as: UTF8.self) } == ["Content-Length: 12", "A: b"])
        #expect(try Self.head("GET http://example.org HTTP/1.1").target == Array("/".utf8))
        #expect(try Self.head("GET http://example.org?a HTTP/1.1").target == Array("/?a".utf8))
    }

    @Test(arguments: [
        "", "GET / HTTP/1.1", "GET http://h/", "GET  http://h/ HTTP/1.1", "GET http://h/ HTTP/1.0",
        "get http://h/ HTTP/1.1", "GET https://h/ HTTP/1.1", "GET http:///x HTTP/1.1", "GET http://h/#x HTTP/1.1",
        "GET http://a@h/ HTTP/1.1", "GET http://h\\@o/ HTTP/1.1", "GET http://0x7f.1/ HTTP/1.1",
        "CONNECT h HTTP/1.1", "CONNECT h: HTTP/1.1", "CONNECT h:1/x HTTP/1.1", "CONNECT a@h:1 HTTP/1.1",
        "CONNECT h:65536 HTTP/1.1", "CONNECT h:443 HTTP/1.1\nContent-Length: 1",
        "GET http://h/ HTTP/1.1\n folded", "GET http://h/ HTTP/1.1\nname", "GET http://h/ HTTP/1.1\na : b",
        "GET http://h/ HTTP/1.1\na: b\u{0}", "POST http://h/ HTTP/1.1\nTransfer-Encoding: chunked",
        "POST http://h/ HTTP/1.1\nContent-Length: 1\nContent-Length: 1", "POST http://h/ HTTP/1.1\nContent-Length: +1",
        "POST http://h/ HTTP/1.1\nContent-Length: 99999999999999999999", "POST http://h/ HTTP/1.1\nContent-Length: 1, 1",
    ])
    func refusesEverythingElse(_ text: String) {
        #expect(throws: ProxyHeadError.self) { try Self.head(text) }
    }

    @Test func refusesLineEndsThatAreNone() {
        for text in ["GET http://h/ HTTP/1.1\nA: b", "GET http://h/ HTTP/1.1\r\nA: b\rC: d", "GET http://h/ HTTP/1.1\r\n\r\n"] {
            #expect(throws: ProxyHeadError.self, "\(text)") { try ProxyRequestHead(parsing: Array(text.utf8)) }
        }
        let many = "GET http://h/ HTTP/1.1" + String(repeating: "\nA: b", count: 1_000)
        #expect(throws: ProxyHeadError.self) { try Self.head(many) }
    }

    @Test func answersEndTheConnection() throws {
        let text = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: x\r\nA: b\r\n\r\nbody"
        #expect(ProxyResponseHead.end(in: Array(text.utf8)) == text.utf8.count - 4)
        #expect(ProxyResponseHead.end(in: Array("HTTP/1.1 200 OK\nA: b\n\nbody".utf8)) == 22)
        #expect(ProxyResponseHead.end(in: Array("HTTP/1.1 200 OK\r\nA: b\r\n\r".utf8)) == nil)
        let head = Array(text.utf8.dropLast(4))
        let new = try ProxyResponseHead.rewritten(head)
        #expect(!new.isInterim)
        #expect(String(decoding: new.bytes, as: UTF8.self) == "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n")
        #expect(try ProxyResponseHead.rewritten(Array("HTTP/1.1 103 Hints\r\n\r\n".utf8)).isInterim)
        for line in ["", "HTTP/2 200 x", "ICY 200 OK", "HTTP/1.1 20x", "HTTP/1.1 101 Switching", "HTTP/1.1 099 x"] {
            #expect(throws: ProxyHeadError.self, "\(line)") {
                try ProxyResponseHead.rewritten(Array((line + "\r\n\r\n").utf8))
            }
        }
    }

    @Test func noBytesTrapTheReaders() {
        var random = SeededGenerator(7)
        let samples = [
            "CONNECT example.org:443 HTTP/1.1\r\nA: b", "POST http://a.b:1/c?d HTTP/1.1\r\nContent-Length: 5\r\nA: b",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nA: b\r\n\r\n",
        ].map { Array($0.utf8) }
        for _ in 0..<20_000 {
            var bytes = samples[Int.random(in: 0..<3, using: &random)]
            for _ in 0..<Int.random(in: 0..<6, using: &random) {
                let place = Int.random(in: 0...bytes.count, using: &random)
                if place < bytes.count, Bool.random(using: &random) { bytes.remove(at: place) }
                else { bytes.insert(UInt8.random(in: 0...255, using: &random), at: place) }
            }
            _ = try? ProxyRequestHead(parsing: bytes)
            if let end = ProxyResponseHead.end(in: bytes) { _ = try? ProxyResponseHead.rewritten(Array(bytes[..<end])) }
        }
    }
}
