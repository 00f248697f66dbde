import Testing
import VitrineNetwork

struct SourceURLTests {
    @Test func readsAddressesIntoOneNotation() throws {
        let url = try SourceURL("HTTPS://Example.ORG:8443/a/%20b?q=1#part")
        #expect(url.text == "https://example.org:8443/a/%20b?q=1")
        #expect(url.origin == "https://example.org:8443")
        #expect(url.target == "/a/%20b?q=1")
        #expect(url.port == 8443)
        #expect(url.credentials == nil)
        #expect(try SourceURL("http://h:80?x").text == "http://h/?x")
        #expect(try SourceURL("http://h.:").text == "http://h/")
        #expect(try SourceURL("http://[2001:DB8::1]:8080/").text == "http://[2001:db8::1]:8080/")
        #expect(try SourceURL("http://192.0.2.7/").host == .address(.v4(0xC000_0207)))
    }

    @Test func keepsCredentialsOutOfEverythingElse() throws {
        let url = try SourceURL("http://name:secret@h/p")
        #expect(url.credentials == "name:secret")
        #expect(!url.text.contains("secret"))
        #expect(url.origin == "http://h")
        let error = #expect(throws: NetworkError.self) { try SourceURL("http://name:secret@h:99999/p") }
        #expect(error?.url == "http://h:99999/p")
    }

    /// Hosts that other programs read as 127.0.0.1 or as something else than they look.
    @Test(arguments: [
        "http://127.1/", "http://0x7f.0.0.1/", "http://0x7f000001/", "http://2130706433/", "http://017700000001/",
        "http://127.0.0.01/", "http://127.0.0.1.1/", "http://256.0.0.1/", "http://1.2.3.0x4/", "http://0x/",
        "http://[::1%25lo]/", "http://[::1%lo]/", "http://[127.0.0.1]/", "http://[v1.a]/", "http://[::1/",
        "http://[::1]a/", "http://a b/", "http://a\\b/", "http://a%00b/", "http://%31%32%37.0.0.1/",
        "http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "http://%E2%91%A0.example/", "http://a%E3%80%82b/",
        "http://user@host@other/", "http://h:0/", "http://h:65536/", "http://h:080/", "http://h:-1/", "http://h:8a/",
        "http://", "http:///path", "http:path", "http:/h/", "http://a..b/", "http://.a/", "http://a,b/", "//h/", "h",
        "http://h/\u{7F}", "http://h/ä", "http://\u{212A}.example/",
    ])
    func refusesWhatOthersGuessAt(_ text: String) {
        #expect {
            try SourceURL(text)
        } throws: { error in
            if case NetworkError.invalidURL = error { true } else { false }
        }
    }

    @Test func refusesOtherSchemes() {
        #expect {
            try SourceURL("gopher://h/")
        } throws: { error in
            if case NetworkError.unsupportedScheme(_, "gopher") = error { true } else { false }
        }
    }

    /// Vectors: RFC 3492, section 7.1, and registered names.
    @Test(arguments: [
        ("http://b%C3%BCcher.example/", "xn--bcher-kva.example"),
        ("http://B%C3%9Ccher.example/", "xn--bcher-kva.example"),
        ("http://%E4%BE%8B%E3%81%88.%E3%83%86%E3%82%B9%E3%83%88/", "xn--r8jz45g.xn--zckzah"),
        ("http://%D0%BF%D1%80%D0%B8%D0%BC%D0%B5%D1%80/", "xn--e1afmkfd"),
        ("http://XN--bcher-KVA.example/", "xn--bcher-kva.example"),
    ])
    func encodesInternationalNames(_ text: String, _ host: String) throws {
        #expect(try SourceURL(text).host == .name(host))
    }

    /// RFC 3986, sections 5.4.1 and 5.4.2.
    @Test(arguments: [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
        ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        (";x", "http://a/b/c/;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../g", "http://a/g"), ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"), ("g/../h", "http://a/b/c/h"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("https://b/x", "https://b/x"), ("/ä b", "http://a/%C3%A4%20b"),
    ])
    func resolvesReferences(_ reference: String, _ expected: String) throws {
        #expect(try SourceURL("http://a/b/c/d;p?q").resolve(reference).text == expected)
    }
}
