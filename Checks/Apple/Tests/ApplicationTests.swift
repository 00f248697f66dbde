import AppleFoundation
import Foundation
import TestSupport
import Testing
import UIKit
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineImaging
import VitrineViews

/// System notifications, and drag and drop.
@MainActor
struct ApplicationTests {
    // MARK: Memory and background

    @Test func aMemoryWarningEmptiesMemoryAndNotTheDisk() async throws {
        let (directory, pressure, center) = (try TemporaryDirectory(), MemoryPressure(), NotificationCenter())
        var configuration = CacheConfiguration(root: directory.path)
        configuration.memoryPressure = pressure
        let cache = ValueCache<String>(name: "texts", configuration: configuration)
        try await cache.set("one", forKey: "a")
        try await cache.flush()
        let events = ApplicationEvents(pressure: pressure, center: center)
        center.post(name: UIApplication.didReceiveMemoryWarningNotification, object: nil)
        #expect(cache["a"] == nil)
        let found = try await cache.value(forKey: "a")
        #expect(found == "one")
        withExtendedLifetime((events, directory)) {}
    }

    @Test(arguments: [true, false])
    func backgroundTimeFinishesPendingWork(_ emptiesMemory: Bool) async {
        let (pressure, center, flushed, warnings) = (MemoryPressure(), NotificationCenter(), Gate(), Counter())
        let subscription = pressure.subscribe { _ in warnings.add(1) }
        let events = ApplicationEvents(
            pressure: pressure, emptiesMemoryInBackground: emptiesMemory, center: center
        ) { flushed.open() }
        center.post(name: UIApplication.didEnterBackgroundNotification, object: nil)
        #expect(warnings.value == (emptiesMemory ? 1 : 0))
        await flushed.wait()
        withExtendedLifetime((events, subscription)) {}
    }

    @Test func deallocatedObserversReceiveNothing() {
        let (pressure, center, warnings) = (MemoryPressure(), NotificationCenter(), Counter())
        let subscription = pressure.subscribe { _ in warnings.add(1) }
        var events: ApplicationEvents? = ApplicationEvents(pressure: pressure, center: center)
        withExtendedLifetime(events) {
            center.post(name: UIApplication.didReceiveMemoryWarningNotification, object: nil)
        }
        events = nil
        center.post(name: UIApplication.didReceiveMemoryWarningNotification, object: nil)
        #expect(warnings.value == 1)
        withExtendedLifetime(subscription) {}
    }

    // MARK: Drag and drop

    private func data(_ provider: NSItemProvider, _ type: String) async throws -> Data {
        try await withCheckedThrowingContinuation { continuation in
            provider.loadDataRepresentation(forTypeIdentifier: type) { data, error in
                continuation.resume(with: error.map { .failure($0) } ?? .success(data ?? Data()))
            }
        }
    }

    @Test func aPictureIsLoadedWhenItIsTaken() async throws {
        let loads = Counter()
        let picture = LazyValue<VitrineImaging.PixelImage>(key: "a") { () async throws(CacheError) in
            loads.add(1)
            return AdapterFixture.image(7)
        }
        let provider = picture.itemProvider(named: "lake")
        #expect(provider.suggestedName == "lake" && loads.value == 0)
        #expect(provider.registeredTypeIdentifiers == ["public.png", "public.jpeg"])
        let png = try await data(provider, "public.png")
        #expect(try ImageDecoder().decode(.bytes([UInt8](png), name: "dragged"))[0, 0].red == 7)
        #expect(try await data(provider, "public.jpeg").starts(with: [0xFF, 0xD8]))
        #expect(loads.value == 1)
    }

    @Test func aFailureReachesTheReceiver() async {
        let text = LazyValue<String>(key: "a") { () async throws(CacheError) in throw .notFound(key: "a") }
        await #expect(throws: CacheError.self) {
            try await data(text.itemProvider(ofType: "public.utf8-plain-text"), "public.utf8-plain-text")
        }
    }

    @Test func valuesGiveTheirBytes() async throws {
        let text = LazyValue<String>(key: "a") { () async throws(CacheError) in "one" }
        let type = "public.utf8-plain-text"
        #expect(try await data(text.itemProvider(ofType: type), type) == Data("one".utf8))
    }
}
