import Testing
import VitrineCommand

@Suite struct WrappedTextTests {
    private let text = "libavif, libheif in vitrine-worker"

    @Test func textIsBesideItsLabelWhereThereIsRoom() {
        #expect(
            WrappedText.entry("  avif", text, at: 10, columns: 80) == ["  avif    libavif, libheif in vitrine-worker"])
        #expect(
            WrappedText.entry("  avif", text, at: 10, columns: 36)
                == ["  avif    libavif, libheif in", "          vitrine-worker"])
    }

    @Test func longLabelsHaveLinesOfTheirOwn() {
        #expect(
            WrappedText.entry("  a long label", text, at: 10, columns: 60)
                == ["  a long label", "          libavif, libheif in vitrine-worker"])
    }

    @Test func textIsBelowItsLabelInNarrowTerminals() {
        #expect(
            WrappedText.entry("avif     .avif", text, at: 46, columns: 20)
                == ["avif .avif", "    libavif, libheif", "    in", "    vitrine-worker"])
        #expect(WrappedText.entry("  ", "sandbox: on", at: 20, columns: 20) == ["      sandbox: on"])
    }

    @Test func longWordsAreNotBroken() {
        #expect(WrappedText.lines("a /very/long/path b", columns: 6, indent: 2) == ["  a", "  /very/long/path", "  b"])
    }
}
