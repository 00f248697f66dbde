import Testing
import VitrineNetwork

struct HTTPHeadersTests {
    private let headers: HTTPHeaders = [
        "Vary": "Accept", "ETag": "\"a\"", "vary": "Origin", "VARY": "Cookie",
    ]

    @Test func findsFieldsInAnyCase() {
        #expect(headers["eTaG"] == "\"a\"")
        #expect(headers.all("Vary") == ["Accept", "Origin", "Cookie"])
        #expect(headers.combined("vary") == "Accept, Origin, Cookie")
        #expect(headers.contains("ETAG"))
        #expect(headers["Age"] == nil)
        #expect(headers.combined("Age") == nil)
    }

    @Test func setReplacesAllFieldsOfTheNameInPlaceOfTheFirst() {
        var headers = headers
        headers["Vary"] = "*"
        #expect(headers.map(\.name) == ["Vary", "ETag"])
        #expect(headers.all("vary") == ["*"])
        headers["Age"] = "1"
        #expect(headers.map(\.name) == ["Vary", "ETag", "Age"])
    }

    @Test func removesAndAppends() {
        var headers = headers
        headers["vary"] = nil
        headers.append("Age", "1")
        headers.append("age", "2")
        #expect(headers == ["etag": "\"a\"", "AGE": "1", "age": "2"])
        #expect(headers != ["etag": "\"A\"", "AGE": "1", "age": "2"])
    }
}
