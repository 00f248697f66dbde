import Testing
import VitrineCache

@Suite struct DepthTests {
    @Test func deeperIsLater() {
        #expect(CacheLevel.allCases.sorted() == [.memory, .disk, .source])
    }
}
