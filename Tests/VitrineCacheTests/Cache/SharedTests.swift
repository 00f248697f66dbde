import TestSupport
import Testing
import VitrineCache
import VitrineCore

@Suite(.serialized) struct SharedTests {
    @Test func readyMadeCachesHaveNamesOfTheirOwn() {
        #expect(Shared.data.name == "shared-data")
        #expect(Shared.strings.name == "shared-strings")
        #expect(Shared.json.name == "shared-json")
        #expect(Set([Shared.data.directory, Shared.strings.directory, Shared.json.directory]).count == 3)
        #expect(Shared.strings.directory == CacheConfiguration.defaultRoot + "/shared-strings")
        // Used by now: it is too late to choose another root.
        #expect(!CacheConfiguration.setDefaultRoot("/elsewhere"))
    }

    @Test func replaceableValuesAreMadeOnceAndReplacedBeforeAndAfterUse() {
        let made = Counter()
        let place = Replaceable { () -> String in
            made.add(1)
            return "default"
        }
        #expect(place.value == "default" && place.value == "default" && made.value == 1)
        place.value = "mine"
        #expect(place.value == "mine")
        let early = Replaceable { () -> String in
            made.add(1)
            return "default"
        }
        early.value = "mine"
        #expect(early.value == "mine" && made.value == 1)
    }

    @Test func readyMadeCachesCanBeReplaced() throws {
        let fixture = try CacheFixture<JSON>()
        let usual = Shared.json
        defer { Shared.json = usual }
        Shared.json = fixture.cache
        #expect(Shared.json === fixture.cache)
    }
}
