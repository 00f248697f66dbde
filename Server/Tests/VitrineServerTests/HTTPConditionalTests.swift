import HTTPTypes
import Testing
import VitrineServer

@Suite struct HTTPConditionalTests {
    @Test(arguments: [
        "\"abc\"", "W/\"abc\"", "*", " * ", "\"x\", \"abc\"", "\"x\",W/\"abc\" ", ", \"abc\"", "\"a,b\", \"abc\"",
        "\"abc\",\"x", "\"\", \"abc\"",
    ])
    func listsThatNameTheTagMatch(list: String) {
        #expect(EntityTagList.contains("\"abc\"", in: list))
    }

    @Test(arguments: [
        "", "abc", "\"abcd\"", "\"ab\"", "'abc'", "**", "*, \"abc\"", "x\"abc\"", "\"x\" \"abc\"", "W/abc", "w/\"abc\"",
        "\"abc", "\"ABC\"", "W/", "\"",
    ])
    func otherListsDoNotMatch(list: String) {
        #expect(!EntityTagList.contains("\"abc\"", in: list))
    }

    @Test(arguments: [
        ("bytes=0-0", ByteRange.part(0..<1)), ("bytes=0-99", .part(0..<100)), ("bytes=10-", .part(10..<100)),
        ("bytes=-10", .part(90..<100)), ("bytes=-1000", .part(0..<100)),
        ("bytes=5-99999999999999999999", .part(5..<100)),
        ("Bytes=1-1 ", .part(1..<2)), ("bytes=100-", .unsatisfiable), ("bytes=100-200", .unsatisfiable),
        ("bytes=-0", .unsatisfiable), ("bytes=99999999999999999999-", .unsatisfiable),
    ])
    func singleRangesAreRead(text: String, range: ByteRange) {
        #expect(ByteRange(text, count: 100) == range)
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=-", "bytes=5-4", "bytes=0-1,5-6", "bytes=a-b", "bytes=1-2-3", "bytes=--1",
        "items=0-1",
        "bytes 0-1", "bytes=0x1-", "bytes=1.5-2",
    ])
    func otherRangesStandForTheWhole(text: String) {
        #expect(ByteRange(text, count: 100) == nil)
    }

    @Test func emptyResultHasNoRange() {
        #expect(ByteRange("bytes=0-", count: 0) == .unsatisfiable)
        #expect(ByteRange("bytes=-1", count: 0) == .unsatisfiable)
    }

    @Test func tagPrecedesDate() {
        let old: HTTPFields = [.ifNoneMatch: "\"other\"", .ifModifiedSince: "Sun, 06 Nov 2094 08:49:37 GMT"]
        #expect(!Precondition.isNotModified(RequestFields(old), quotedTag: "\"abc\"", lastModified: 5, now: 10))
        let date: HTTPFields = [.ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT"]
        func isUnmodified(_ lastModified: Int64?) -> Bool {
            Precondition.isNotModified(RequestFields(date), quotedTag: "\"abc\"", lastModified: lastModified, now: 10)
        }
        #expect(isUnmodified(784_111_777))
        #expect(!isUnmodified(784_111_778))
        #expect(!isUnmodified(nil))
    }

    @Test func weakTagsAndOtherDatesDoNotAllowARange() {
        func range(_ condition: String) -> ByteRange? {
            let fields = RequestFields([.range: "bytes=0-1", .ifRange: condition])
            return Precondition.range(fields, quotedTag: "\"abc\"", lastModified: 784_111_777, count: 10)
        }
        #expect(range("\"abc\"") == .part(0..<2))
        #expect(range("Sun, 06 Nov 1994 08:49:37 GMT") == .part(0..<2))
        #expect(range("W/\"abc\"") == nil)
        #expect(range("\"other\"") == nil)
        #expect(range("Sun, 06 Nov 1994 08:49:38 GMT") == nil)
    }
}
