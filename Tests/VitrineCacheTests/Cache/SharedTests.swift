import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct SharedTests {
    @Test func readyMadeCachesHaveNamesOfTheirOwn() {
        #expect(Shared.data.name == "shared-data")
        #expect(Shared.strings.name == "shared-strings")
        #expect(Shared.json.name == "shared-json")
        #expect(Set([Shared.data.directory, Shared.strings.directory, Shared.json.directory]).count == 3)
        #expect(Shared.strings.directory == CacheConfiguration.defaultRoot + "/shared-strings")
        // Used by now: it is too late to choose another root (R44).
        #expect(!CacheConfiguration.setDefaultRoot("/elsewhere"))
    }
}
