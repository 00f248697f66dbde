import Testing
import VitrineCache

@Suite struct DepthTests {
    @Test func deeperIsLater() {
        #expect(Depth.allCases.sorted() == [.memory, .disk, .source])
    }
}
