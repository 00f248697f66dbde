import Foundation
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineDownloads
import VitrineImaging
import VitrineModels
import VitrineNetwork
import VitrinePipeline
import VitrineWebPages

extension FuzzTargets {
    // MARK: Downloads

    static var downloads: [FuzzTarget] { [record, agentMessage, agentQuestion, agentArguments, disposition] }

    private static let status = """
        {"id":"a","url":"https://example.com/a.zip","state":"running","path":"/tmp/a.zip","received":12,"total":34,\
        "speed":1.5,"restarts":0,"retries":0,"priority":0,"added":700000000,"failure":{"code":4,"message":"no"}}
        """
    private static let request = """
        {"url":"https://example.com/a.zip","mirrors":["https://example.org/a.zip"],"directory":"/tmp","name":"a.zip",\
        "existing":"number","headers":[["A","b"]],"priority":0,"expectedSize":34,"maximumRate":1000,"attempts":5,\
        "connections":4,"checksum":"md5:d41d8cd98f00b204e9800998ecf8427e"}
        """

    private static let record = FuzzTarget(
        text: "download-record",
        [
            """
            {"id":"a","request":\(request),"status":\(status),"position":1.5,"source":1,"revision":7,\
            "placing":{"path":"/nowhere","device":1,"inode":2,"length":3}}
            """
        ]
    ) { text in
        let record = try JSONDecoder().decode(DownloadRecord.self, from: Data(text.utf8))
        _ = (record.url, record.partPath)
        use(record.status)
    }

    private static func use(_ status: DownloadStatus) {
        _ = (status.fraction, status.timeLeft, status.state.isOver)
    }

    private static let agentMessage = FuzzTarget(
        text: "agent-message",
        [
            #"{"hello":{"version":1}}"#, "{\"status\":{\"_0\":\(status)}}",
            "{\"snapshot\":{\"_0\":[\(status),\(status)]}}",
            #"{"removed":{"id":"a"}}"#, "{\"reply\":{\"number\":1,\"_1\":{\"download\":{\"_0\":\(status)}}}}",
            #"{"reply":{"number":1,"_1":{"info":{"_0":{"process":1,"downloads":2,"unsettled":3}}}}}"#,
        ]
    ) { text in
        switch try JSONDecoder().decode(AgentMessage.self, from: Data(text.utf8)) {
        case .snapshot(let statuses): statuses.forEach { use($0.wrappedValue) }
        case .status(let status), .reply(_, .download(let status)): use(status.wrappedValue)
        default: break
        }
    }

    private static let agentQuestion = FuzzTarget(
        text: "agent-question",
        [
            #"{"number":1,"call":{"list":{}}}"#, "{\"number\":2,\"call\":{\"start\":{\"_0\":\(request),\"id\":\"a\"}}}",
            #"{"number":3,"call":{"perform":{"_0":{"setMaximumRate":{"_0":1000}},"id":"a"}}}"#,
            #"{"number":4,"call":{"set":{"_0":{"count":{"_0":3,"perHost":2}}}}}"#,
        ]
    ) { text in
        _ = try JSONDecoder().decode(AgentRequest.self, from: Data(text.utf8))
    }

    private static let agentArguments = FuzzTarget(
        text: "agent-arguments",
        ["--journal /a --identifier b --directory /c --idle 30000", "--idle never", "--idle 9223372036854775807"]
    ) { text in
        guard let arguments = AgentArguments(text.split(separator: " ").map(String.init)) else {
            throw FuzzRefusal()
        }
        _ = arguments.words
    }

    private static let disposition = FuzzTarget(
        text: "content-disposition",
        [
            "attachment; filename=\"a\\\"b.tar.gz\"", "inline; filename*=UTF-8''%e2%82%ac%20b.jpg; filename=c",
            "attachment; filename*=iso-8859-1'en'%A3; x=y;;", "attachment; filename=../../\u{202E}a. ",
        ]
    ) { text in
        let name = ContentDisposition.fileName(text)
        let safe = DownloadName.safe(name ?? text)
        _ = DownloadName.numbered(safe ?? "a", 7)
        if let url = URL(string: text) { _ = DownloadName.name(for: url) }
        _ = Checksum(text)
        if name == nil { throw FuzzRefusal() }
    }

    // MARK: Small texts

    static var texts: [FuzzTarget] {
        [color, byteCount, fileURI, fileName, userDirectories, memoryEvents, browserReply, cacheValues, schemaVersion]
    }

    private static let color = FuzzTarget(
        text: "css-color",
        [
            "#1a2b3c4d", "rgb(1, 2%, 3.5)", "hsl(120deg 50% 25% / 0.5)", "hsla(-1e300turn, 1e9%, 0%, 2)",
            "rebeccapurple", "#\u{FF11}ab",
        ]
    ) { text in
        guard let color = PixelColor(css: text) else { throw FuzzRefusal() }
        guard PixelColor(css: color.cssString) == color else { fatalDifference(text) }
    }

    private static func fatalDifference(_ text: String) -> Never {
        preconditionFailure("\(text) is read otherwise than it is written")
    }

    private static let byteCount = FuzzTarget(
        text: "byte-count", ["10 MB", "1.5GiB", "64k", " 4096 ", "9.2233720368 EB", "0.0000009 KiB", "8EiB"]
    ) { text in
        guard let count = ByteCount(text) else { throw FuzzRefusal() }
        _ = (count.formatted(), count.formatted(.binary), count + count, count * 3)
    }

    private static let fileURI = FuzzTarget(
        text: "file-uri",
        ["file:///a/b%20c.png", "file://localhost/%C3%BC", "FILE:///../x", "file:/y?z#w", "a/./b/../../c"]
    ) { text in
        _ = WebAddress.path(ofFile: text)
        _ = FileURI.text(of: text, in: "/a/b")
        if FileURI.path(of: text) == nil { throw FuzzRefusal() }
    }

    private static let fileName = FuzzTarget(
        text: "file-name",
        ["a%2Fb%3A", "%", "%2E%2E", "https://example.com/a.b/c.jpeg?d#e", "x%00", "a.tar.gz", "g.h/i"]
    ) { text in
        _ = (FileName.name(for: text), FileName.pathExtension(of: text), FileName.compact(text))
        _ = (GroupPath(text).description, PercentEncoding.encodeForbidden(text))
        if FileName.unescaped(text) == nil { throw FuzzRefusal() }
    }

    private static let userDirectories = FuzzTarget(
        text: "user-directories",
        ["# a\nXDG_DOCUMENTS_DIR=\"$HOME/Docu\\\"ments\"\n", " XDG_DOCUMENTS_DIR=\"/a/b\"\nX=\"\\"]
    ) { text in
        if UserDirectories.path(of: "XDG_DOCUMENTS_DIR", in: Array(text.utf8), home: "/home/a") == nil {
            throw FuzzRefusal()
        }
    }

    private static let memoryEvents = FuzzTarget(
        text: "memory-events", ["low 0\nhigh 3\nmax 18446744073709551615\noom 1\noom_kill 2\n"]
    ) { text in
        _ = GroupMemoryEvents(Array(text.utf8)).level(since: GroupMemoryEvents([]))
    }

    private static let browserReply = FuzzTarget(
        text: "browser-reply",
        [
            #"{"id":3,"result":{"targetId":"a","sessionId":"b","cssContentSize":{"x":0,"width":1280.5,"height":4e3}}}"#,
            #"{"method":"Page.lifecycleEvent","params":{"name":"load","loaderId":"c"}}"#,
            #"{"id":4,"error":{"code":-32000,"message":"no"}}"#, #"{"id":5,"result":{"data":"iVBORw0KGgo="}}"#,
        ]
    ) { text in
        let reply = try JSONDecoder().decode(BrowserReply.self, from: Data(text.utf8))
        if let data = reply.result?.data { _ = Data(base64Encoded: data) }
    }

    /// Values of caches as they lie on disk; the first byte says of which type.
    private static let cacheValues = FuzzTarget(
        "cache-values",
        seeds: {
            [
                [0, UInt8(ascii: "i"), 1, 2, 3, 4, 5, 6, 7, 8], [1, UInt8(ascii: "d"), 0, 0, 0, 0, 0, 0, 0xF0, 0x7F],
                [2, UInt8(ascii: "b"), 1, 0, 0, 0, 0, 0, 0, 0], [3, UInt8(ascii: "t"), 0, 0, 0, 0, 0, 0, 0xE0, 0x43],
                [4] + Array("text".utf8), [5] + ((try? CacheableList(["a", "bc"]).cacheBytes()) ?? []),
                [6] + Array(#"{"a":[1,"inf"]}"#.utf8), [7] + [UInt8](repeating: 3, count: 16),
            ]
        }
    ) { bytes in
        let rest = Array(bytes.dropFirst())
        switch (bytes.first ?? 0) % 9 {
        case 0: _ = try Int8(cacheBytes: rest).cacheCost
        case 1: _ = try (Double(cacheBytes: rest), Float(cacheBytes: rest), UInt16(cacheBytes: rest))
        case 2: _ = try Bool(cacheBytes: rest)
        case 3: _ = try Date(cacheBytes: rest).cacheBytes()
        case 4: _ = try String(cacheBytes: rest).cacheCost
        case 5: _ = try CacheableList<String>(cacheBytes: rest).cacheCost
        case 6: _ = try CodableBox<[String: [Double]]>(cacheBytes: rest).cacheCost
        case 7: _ = try UUID(cacheBytes: rest)
        default: _ = try CacheableList<CacheableList<Int>>(cacheBytes: rest).cacheBytes()
        }
    }

    private static let schemaVersion = FuzzTarget(text: "schema-version", ["1.2.3", "10", "1.2-beta.4", ".."]) { text in
        let version = SchemaVersion(text)
        _ = (version.description, version < "2.0")
    }
}
