import Testing
import VitrineCore

struct CacheableValueTests {
    @Test func textComesBack() throws {
        #expect(try String(cacheBytes: "é日".cacheBytes()) == "é日")
        #expect("é日".cacheCost == 5)
    }

    @Test func illFormedTextIsRefused() {
        #expect(throws: CacheableValueError.notUTF8) { try String(cacheBytes: [0x61, 0xFF]) }
    }
}
