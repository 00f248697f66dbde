// A custom format: icons of 64 pixels with round corners, created once and cached beside the originals.
import Foundation
import Synchronization
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-format-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }
let samples = CommandLine.arguments.dropFirst().first ?? "Samples"

let cache = ValueCache<PixelImage>(name: "pictures", configuration: CacheConfiguration(root: directory))
let made = Mutex(0)
var icon = CacheFormat<PixelImage>("icon", diskCapacity: .megabytes(10)) { image in
    made.withLock { $0 += 1 }
    return try ImageResizer.crop(width: 64, height: 64).resize(image).processed(by: [.roundCorners(16)])
}
// PNG, because the corners are transparent.
icon.encode = { try $0.encoded(as: .png) }
cache.register(icon)

let picture = try await cache.value(fromFile: samples + "/lake.jpg", format: "icon")
print("icon:", picture.size, "- in memory:", cache[CacheKey(samples + "/lake.jpg"), "icon"] != nil)
_ = try await cache.value(fromFile: samples + "/lake.jpg", format: "icon")
try await cache.flush()
cache.clearMemory()
_ = try await cache.value(fromFile: samples + "/lake.jpg", format: "icon")
print("asked 3 times, made:", made.withLock { $0 })
print("transparent corner:", picture[0, 0].alpha == 0, "- opaque middle:", picture[32, 32].alpha == 255)

// The original is a format, too. It is unchanged.
print("original:", try await cache.value(fromFile: samples + "/lake.jpg").size)
// Finish pending writes before the directory is removed.
try await cache.flush()
