import Testing
import VitrinePipeline

@Suite struct FileURITests {
    /// What `Gio.File.new_for_path(path).get_uri()` of GLib 2.74.6 gives for paths below `/home/user`.
    @Test(arguments: [
        ("//a/b", "file:////a/b"), ("///a//b", "file:///a/b"), ("/a/./b/../c", "file:///a/c"),
        ("a b/ü.jpg", "file:///home/user/a%20b/%C3%BC.jpg"), ("/a/b/", "file:///a/b"), ("/", "file:///"),
        ("/..", "file:///"), ("/a/.. ", "file:///a/..%20"), ("/a/b/..", "file:///a"),
        ("./x", "file:///home/user/x"), ("~x", "file:///home/user/~x"),
        ("/日本/é~;#?%&=.png", "file:///%E6%97%A5%E6%9C%AC/%C3%A9~%3B%23%3F%25&=.png"),
        ("/home/jens/photos/me.png", "file:///home/jens/photos/me.png"),
    ])
    func addressesAreThoseOfGLib(_ path: String, _ uri: String) {
        #expect(FileURI.text(of: path, in: "/home/user") == uri)
    }

    @Test func exactlyTheBytesGLibKeepsStandForThemselves() {
        let kept = "!$&'()*+,-.0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
        for code in UInt8(1)..<128 where code != UInt8(ascii: "/") {
            let character = String(Unicode.Scalar(code))
            let uri = FileURI.text(of: "/a\(character)b")
            #expect((uri == "file:///a\(character)b") == kept.contains(character), "\(code)")
            #expect(FileURI.path(of: uri) == "/a\(character)b", "\(code)")
        }
    }

    @Test func addressesOfOtherPlacesHaveNoPath() {
        #expect(FileURI.path(of: "file:///a%20b/%C3%BC") == "/a b/ü")
        #expect(FileURI.path(of: "FILE://localhost/a") == "/a")
        for uri in [
            "", "file:", "file://", "file:/a", "file://host/a", "http://a/b", "file:///a%2", "file:///a%zz",
            "file:///a%00b", "/a",
        ] {
            #expect(FileURI.path(of: uri) == nil, "\(uri)")
        }
    }

    @Test func bytesThatAreNoUTF8StayTheFilesOwn() {
        for (uri, path) in [("file:///a%FF", "/a\u{10FEFF}"), ("file:///caf%E9/%C3%A9", "/caf\u{10FEE9}/é")] {
            #expect(FileURI.path(of: uri) == path)
            #expect(FileURI.text(of: path) == uri)
        }
    }

    @Test func aMarkBehindASlashIsPartOfItsName() {
        #expect(FileURI.text(of: "/a/./\u{301}b/..") == "file:///a")
    }
}
