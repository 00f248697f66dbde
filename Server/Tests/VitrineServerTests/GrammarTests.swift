import Testing
import VitrineServer

@Suite struct GrammarTests {
    @Test func defaults() { #expect(ProcessingOptions().format == nil) }
}
