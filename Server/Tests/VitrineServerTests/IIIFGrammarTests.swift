import Testing
import VitrineImaging

import VitrineServer

/// Paths of the IIIF Image API, and the parts and sizes that they stand for.
@Suite struct IIIFGrammarTests {
    private static let whole = PixelSize(width: 4_000, height: 3_000)

    private static func parameters(_ path: String, version: Int = 3) throws(RequestError) -> IIIFParameters {
        let url = try IIIFGrammar(longestSide: 8_192).parse("/\(version)/a/\(path)")
        guard let parameters = url.options.sourceRules?.iiif else {
            throw RequestError(500, code: "no-parameters", reason: "The URL has no parameters.")
        }
        return parameters
    }

    private static func status(_ path: String, version: Int = 3, of size: PixelSize = whole) -> Int {
        do throws(RequestError) {
            _ = try parameters(path, version: version).part(of: size)
            return 200
        } catch {
            return error.status
        }
    }

    private static func text(_ path: String, version: Int = 3, of size: PixelSize = whole) throws -> String {
        let part = try parameters(path, version: version).part(of: size)
        return "\(part.x),\(part.y) \(part.region.width)x\(part.region.height) \(part.size.width)x\(part.size.height)"
    }

    @Test(arguments: [
        ("full/max", "0,0 4000x3000 4000x3000"), ("square/max", "500,0 3000x3000 3000x3000"),
        ("10,20,300,200/max", "10,20 300x200 300x200"), ("3900,2950,300,200/max", "3900,2950 100x50 100x50"),
        ("pct:50,50,25,25/max", "2000,1500 1000x750 1000x750"), ("pct:0,0,200,200/max", "0,0 4000x3000 4000x3000"),
        ("pct:12.5,0,0.1,100/max", "500,0 4x3000 4x3000"), ("full/400,", "0,0 4000x3000 400x300"),
        ("full/,300", "0,0 4000x3000 400x300"), ("full/pct:25", "0,0 4000x3000 1000x750"),
        ("full/100,100", "0,0 4000x3000 100x100"), ("full/!100,100", "0,0 4000x3000 100x75"),
        ("0,0,100,50/!400,400", "0,0 100x50 100x50"), ("0,0,100,50/^!400,400", "0,0 100x50 400x200"),
        ("0,0,100,50/^400,", "0,0 100x50 400x200"), ("0,0,100,50/^max", "0,0 100x50 8192x4096"),
        ("0,0,100,50/%5Epct:200", "0,0 100x50 200x100"), ("0,0,4000,1/100,", "0,0 4000x1 100x1"),
    ]) func partsAndSizesAreThoseOfTheSpecification(path: String, expected: String) throws {
        #expect(try Self.text(path + "/0/default.jpg") == expected)
    }

    @Test(arguments: [
        // Outside, empty or no numbers.
        "4000,0,10,10/max", "0,3000,10,10/max", "0,0,0,10/max", "0,0,10,0/max", "-1,0,10,10/max", "1e3,0,10,10/max",
        "nan,0,10,10/max", "1e309,0,10,10/max", "0,0,10/max", "0,0,10,10,10/max", "0.5,0,10,10/max", "/max",
        "99999999999999999999,0,1,1/max", "pct:nan,0,10,10/max", "pct:1e2,0,10,10/max", "pct:100,0,10,10/max",
        "pct:0,0,0,10/max", "pct:-1,0,10,10/max", "pct:inf,0,1,1/max", "pct:0,0,0.00001,0.00001/max", "Full/max",
        "squares/max", "pct:/max", ",,,/max",
        // Sizes of nothing, above the region, above the limit, and junk.
        "full/0,", "full/,0", "full/0,0", "full/pct:0", "full/pct:101", "full/pct:nan", "full/pct:1e1", "full/4001,",
        "full/,3001", "full/4001,3000", "full/^8193,", "full/^!99999,99999", "full/^999999999,", "full/^pct:1000",
        "full/,", "full/!,", "full/!100,", "full/!,100", "full/full", "full/^full", "full/100", "full/-100,",
        "full/100.5,", "full/+100,", "full/", "full/^", "full/!", "full/^^100,", "full/99999999999999999999,",
        "full/pct:99999999999999999999999999", "full/^pct:999999999999999999",
    ]) func partsAndSizesThatDoNotExistAreRefused(path: String) {
        #expect(Self.status(path + "/0/default.jpg") == 400)
    }

    @Test(arguments: [
        ("0/default.jpg", 200), ("90/gray.png", 200), ("!180.0/bitonal.webp", 200), ("360/color.gif", 200),
        ("359.999/default.jpg", 501), ("45/default.jpg", 501), ("!22.5/default.jpg", 501), ("361/default.jpg", 400),
        ("-90/default.jpg", 400), ("nan/default.jpg", 400), ("1e2/default.jpg", 400), ("/default.jpg", 400),
        ("!/default.jpg", 400), ("0/default", 400), ("0/default.", 400), ("0/.jpg", 400), ("0/default.exe", 400),
        ("0/Default.jpg", 400), ("0/default.jpg.png", 400), ("0/native.jpg", 400), ("0/default.JPG", 400),
    ]) func rotationsQualitiesAndFormatsAreChecked(end: String, expected: Int) {
        #expect(Self.status("full/100,/" + end) == expected)
    }

    /// Version 2 enlarges without a mark and knows `full`, version 3 the reverse.
    @Test func versionsDifferInEnlarging() throws {
        #expect(try Self.text("full/full/0/default.jpg", version: 2) == "0,0 4000x3000 4000x3000")
        #expect(try Self.text("full/5000,/0/default.jpg", version: 2) == "0,0 4000x3000 5000x3750")
        #expect(Self.status("full/^400,/0/default.jpg", version: 2) == 400)
        #expect(Self.status("full/9000,/0/default.jpg", version: 2) == 400)
    }

    @Test(arguments: [
        ("full/max/0/default.jpg", "full/max/0/default.jpg"),
        ("0,0,4000,3000/4000,/360/color.jpg", "full/max/0/default.jpg"),
        ("pct:0,0,50,50/pct:50/!90.0/gray.png", "0,0,2000,1500/1000,750/!90/gray.png"),
        ("0,0,100,50/^400,/0/default.webp", "0,0,100,50/^400,200/0/default.webp"),
    ]) func canonicalPathsAreThoseOfTheSpecification(path: String, expected: String) throws {
        #expect(try Self.parameters(path).canonicalPath(for: Self.whole) == expected)
        // A canonical path is its own.
        #expect(try Self.parameters(expected).canonicalPath(for: Self.whole) == expected)
    }

    @Test func canonicalPathsOfVersionTwoDiffer() throws {
        #expect(try Self.parameters("full/max/0/default.jpg", version: 2).canonicalPath(for: Self.whole)
            == "full/full/0/default.jpg")
        #expect(try Self.parameters("full/400,300/0/color.jpg", version: 2).canonicalPath(for: Self.whole)
            == "full/400,/0/default.jpg")
        #expect(try Self.parameters("full/400,400/0/color.jpg", version: 2).canonicalPath(for: Self.whole)
            == "full/400,400/0/default.jpg")
    }

    // MARK: Identifiers

    private static let end = "full/max/0/default.jpg"

    private static func source(_ identifier: String, _ grammar: IIIFGrammar = IIIFGrammar()) -> String {
        do throws(RequestError) {
            let url = try grammar.parse("/3/\(identifier)/\(end)")
            return url.source + (url.options.page == 1 ? "" : " \(url.options.page)")
        } catch {
            return String(error.status)
        }
    }

    @Test(arguments: [
        ("lake.jpg", "local:///lake.jpg"), ("album%2Flake.jpg", "local:///album/lake.jpg"),
        // As a proxy may pass it on.
        ("album/lake.jpg", "local:///album/lake.jpg"), ("%6Cake.jpg", "local:///lake.jpg"),
        ("a%20b%23%3F%25.jpg", "local:///a%20b%23%3F%25.jpg"), ("%C3%A9.jpg", "local:///%C3%A9.jpg"),
        ("%2Fetc%2Fpasswd", "local:///etc/passwd"), ("book.pdf;12", "local:///book.pdf 12"),
        ("book%3B12.pdf", "local:///book%3B12.pdf"), ("a;0", "local:///a%3B0"), ("a;b", "local:///a%3Bb"),
        ("..", "404"), ("%2E%2E%2Fa", "404"), ("a%2F..%2Fb", "404"), ("a/../b", "404"), (".", "404"), ("%2F", "404"),
        ("", "404"), ("a%00", "404"), ("a%0A", "404"), ("%FF", "404"), ("%C0%AE%C0%AE", "404"), ("%", "404"),
        ("http%3A%2F%2F127.0.0.1%2Fa", "404"), ("file%3A%2F%2F%2Fetc%2Fpasswd", "404"),
    ]) func identifiersAreLocalPaths(identifier: String, expected: String) {
        #expect(Self.source(identifier) == expected)
    }

    @Test func identifiersFollowTheConfiguration() {
        let base = IIIFGrammar(hasLocalRoot: false, hasBaseURL: true)
        #expect(Self.source("a%2Fb%3Fc", base) == "a/b%3Fc")
        #expect(Self.source("..%2Fa", base) == "404")
        // No scheme can be given in the place of a path.
        #expect(Self.source("data%3Aimage%2Fpng;base64,AAAA", base) == "data%3Aimage/png%3Bbase64%2CAAAA")
        let addresses = IIIFGrammar(hasLocalRoot: false, allowsAddresses: true)
        #expect(Self.source("https%3A%2F%2Fexample.org%2Fa.jpg", addresses) == "https://example.org/a.jpg")
        #expect(Self.source("a.jpg", addresses) == "404")
    }
}
