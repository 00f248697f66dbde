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

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func datesAreReadInAllForms(text: String) {
        #expect(HTTPTime.seconds(text, now: 1_800_000_000) == 784_111_777)
    }

    @Test(arguments: [
        "", "now", "784111777", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Xxx, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT EXTRA", "Sun",
        "Sun, 06 Nov 199a 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
    ])
    func otherDatesAreIgnored(text: String) {
        #expect(HTTPTime.seconds(text, now: 1_800_000_000) == nil)
    }

    @Test func datesAreWrittenAndReadBack() {
        #expect(HTTPTime.text(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPTime.text(951_827_696) == "Tue, 29 Feb 2000 12:34:56 GMT")
        #expect(HTTPTime.text(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPTime.text(.min) == "Thu, 01 Jan 1970 00:00:00 GMT")
        for seconds in stride(from: Int64(0), to: 4_102_444_800, by: 7_654_321) {
            #expect(HTTPTime.seconds(HTTPTime.text(seconds), now: seconds) == seconds)
        }
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
