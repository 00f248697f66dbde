import Foundation
import TestSupport
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineViews

/// A cache in a directory of its own, and images that tell which they are by their colour.
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

    /// Content that comes when its gate is opened, at any size; nil to fail.
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

/// Lets the main actor do other things until something is so.
@MainActor
func wait(until isSo: () -> Bool) async {
    while !isSo() { await Task.yield() }
}
