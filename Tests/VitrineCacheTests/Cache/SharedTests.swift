import TestSupport
import Testing
import VitrineCache
import VitrineCore

@Suite(.serialized) struct SharedTests {
    @Test func readyMadeCachesHaveNamesOfTheirOwn() {
        #expect(SharedCaches.data.name == "shared-data")
        #expect(SharedCaches.strings.name == "shared-strings")
        #expect(SharedCaches.json.name == "shared-json")
        #expect(Set([SharedCaches.data.directory, SharedCaches.strings.directory, SharedCaches.json.directory]).count == 3)
        #expect(SharedCaches.strings.directory == CacheConfiguration.defaultRoot + "/shared-strings")
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
        let fixture = try CacheFixture<JSONValue>()
        let usual = SharedCaches.json
        defer { SharedCaches.json = usual }
        SharedCaches.json = fixture.cache
        #expect(SharedCaches.json === fixture.cache)
    }
}
