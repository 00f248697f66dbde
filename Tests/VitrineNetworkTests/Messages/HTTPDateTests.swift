import Testing
@_spi(HTTPCacheEngine) import VitrineNetwork

struct HTTPDateTests {
    private let now = Duration.seconds(1_700_000_000)

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("THU, 18 AUG 2050 02:01:18 gmt", 2_544_400_878), ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
        ("Thu Aug 18 02:01:18 2050", 2_544_400_878), ("Tue, 29 Feb 2000 23:59:60 GMT", 951_868_799),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Mon, 01 Jan 0001 00:00:00 GMT", -62_135_596_800),
        // More than 50 years ahead is a year of the last century.
        ("Saturday, 06-Nov-99 08:49:37 GMT", 941_878_177),
    ])
    func readsTheThreeForms(_ text: String, _ seconds: Int64) {
        #expect(HTTPDate.seconds(text, now: now) == seconds)
    }

    @Test(arguments: [
        "", "0", "-1", "foo", "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 02:01:18 AEST",
        "Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT", "Thu, 18  Aug  2050 02:01:18 GMT",
        "Thu, 18-Aug-2050 02:01:18 GMT", "Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT",
        "Thu, 18 Aug 2050 24:01:18 GMT", "Thu, 18 Aug 2050 02:60:18 GMT", "Thu, 18 Aug 2050 02:01:61 GMT",
        "Tue, 29 Feb 2023 00:00:00 GMT", "Thu, 00 Aug 2050 02:01:18 GMT", "Thu, 32 Aug 2050 02:01:18 GMT",
        "Thu, 18 Aug 0000 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 GMT ", " Thu, 18 Aug 2050 02:01:18 GMT",
        "Thursday, 18-Aug-2050 02:01:18 GMT", "Thursday, 18 Aug 2050 02:01:18 GMT", "Thu, 18-Aug-50 02:01:18 GMT",
        "Xyz, 18 Aug 2050 02:01:18 GMT", "Thu, 18 Abc 2050 02:01:18 GMT", "Thu, +8 Aug 2050 02:01:18 GMT",
        "Thursday Aug 18 02:01:18 2050", "Thu Aug 18 02:01:18 50", "Thu, 18 Aug 2050 02:01:18 GMT\u{0}",
        "Thu, 18 Aug 2050 02:01:18 +0000",
    ])
    func refusesAllElse(_ text: String) {
        #expect(HTTPDate.seconds(text, now: now) == nil)
    }

    @Test func writesWhatItReads() {
        for seconds in stride(from: Int64(-62_135_596_800), through: 253_402_300_799, by: 86_400_000 - 12_345) {
            #expect(HTTPDate.seconds(HTTPDate.text(seconds), now: now) == seconds)
        }
        #expect(HTTPDate.text(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.text(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate.text(.min) == "Mon, 01 Jan 0001 00:00:00 GMT")
    }

    @Test func survivesAnyClock() {
        for now in [Duration.seconds(Int64.max), .seconds(Int64.min), .zero] {
            #expect(HTTPDate.seconds("Sunday, 06-Nov-94 08:49:37 GMT", now: now) != nil)
        }
    }
}
