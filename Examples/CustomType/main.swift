// A custom type for caches, formats and stores: two functions and a cost.
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-type-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

/// Colours, each stored as three bytes.
struct Palette: CacheableValue, Equatable {
    var colors: [[UInt8]]

    /// The error for bytes that are not a palette.
    struct Malformed: Error {}

    init(_ colors: [[UInt8]]) { self.colors = colors }

    init(cacheBytes: [UInt8]) throws {
        guard cacheBytes.count.isMultiple(of: 3) else { throw Malformed() }
        colors = stride(from: 0, to: cacheBytes.count, by: 3).map { Array(cacheBytes[$0..<$0 + 3]) }
    }

    func cacheBytes() -> [UInt8] { colors.flatMap(\.self) }
    var cacheCost: Int { colors.count * 3 }
}

let configuration = CacheConfiguration(root: directory)
let cache = ValueCache<Palette>(name: "palettes", configuration: configuration)
// A format works for any type. This one is the first colour.
cache.register(CacheFormat("accent") { palette in Palette(Array(palette.colors.prefix(1))) })

let sunset = Palette([[250, 120, 40], [90, 20, 60], [20, 10, 40]])
try await cache.set(sunset, forKey: "sunset")
try await cache.flush()
let again = ValueCache<Palette>(name: "palettes", configuration: configuration)
print("comes back equal:", try await again.value(forKey: "sunset") == sunset)
print("accent:", try await cache.value(forKey: "sunset", format: "accent") { sunset }.colors)

// Damaged bytes are a miss and are removed. Other entries stay.
let bytes = ValueCache<Data>(name: "palettes", configuration: configuration)
try await bytes.set(Data([1, 2]), forKey: "broken")
try await bytes.flush()
print("a palette:", try await again.value(forKey: "broken") != nil)
print("left:", try await again.count())

// Codable types need no code.
struct Reader: Codable { var name: String, page: Int }
let readers = ValueCache<CodableBox<Reader>>(name: "readers", configuration: configuration)
readers["anna"] = CodableBox(Reader(name: "Anna", page: 42))
print("reader:", readers["anna"]?.value.page ?? 0)
// Finish pending writes before the directory is removed.
try await cache.flush()
