import Testing
import VitrineCore

struct CacheableValueTests {
    @Test func textAndBytesComeBack() throws {
        #expect(try String(cacheBytes: "é日".cacheBytes()) == "é日")
        #expect("é日".cacheCost == 5)
        #expect([UInt8](cacheBytes: [1, 2, 3]).cacheBytes() == [1, 2, 3])
        #expect([1, 2, 3].cacheCost == 3)
    }

    @Test func illFormedTextIsRefused() {
        #expect(throws: CacheableValueError.notUTF8) { try String(cacheBytes: [0x61, 0xFF]) }
    }
}
