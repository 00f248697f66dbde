import Foundation
import TestSupport
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineViews

/// A cache in a directory of its own, and images that differ in their colour.
struct AdapterFixture: Sendable {
    let directory: TemporaryDirectory
    let cache: Cache<Image>

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration(root: directory.path)
        configuration.memoryPressure = MemoryPressure()
        cache = Cache(name: "adapters", configuration: configuration)
    }

    static func image(_ red: UInt8, size: PixelSize = PixelSize(400)) -> Image {
        Image(size: size, color: Color(red: red, green: 0, blue: 0))
    }

    /// Content of any size that is loaded when its gate opens; nil for a failure.
    func slow(_ key: CacheKey, _ red: UInt8?) -> (gate: Gate, content: ImageContent<Image>) {
        let gate = Gate()
        let content = ImageContent<Image>(id: key) { _ in
            await gate.wait()
            guard let red else { throw SourceFailure() }
            return Self.image(red)
        }
        return (gate, content)
    }
}

struct SourceFailure: Error, Equatable {}

/// Yields the main actor until a condition is true.
@MainActor
func wait(until isSo: () -> Bool) async {
    while !isSo() { await Task.yield() }
}
