// Bytes and text under keys: memory answers immediately, disk asynchronously, and a missing value is computed once.
import Foundation
import Synchronization
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-set-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

let cache = ValueCache<Data>(name: "funny-games", configuration: CacheConfiguration(root: directory))
try await cache.set(Data("a film".utf8), forKey: "funny-games.mp4")
print("at once:", cache["funny-games.mp4"].map { String(decoding: $0, as: UTF8.self) } ?? "nothing")

// Values that memory evicts are still on disk.
try await cache.flush()
cache.clearMemory()
print("in memory:", cache["funny-games.mp4"] != nil, "- deepest needed:", await cache.depth(of: "funny-games.mp4"))
let film = try await cache.value(forKey: "funny-games.mp4")
print("from disk:", film.map { String(decoding: $0, as: UTF8.self) } ?? "nothing")

// A subscript changes memory only.
cache["draft"] = Data("a thought".utf8)
print("in both:", await cache.containsInBoth("funny-games.mp4"), "- the draft:", await cache.containsInBoth("draft"))

// A value is computed on the first request, once for all concurrent requests.
let texts = ValueCache<String>(name: "notes", configuration: CacheConfiguration(root: directory))
let made = Mutex(0)
try await withThrowingTaskGroup(of: String.self) { group in
    for _ in 0..<100 {
        group.addTask {
            try await texts.value(forKey: "report") {
                made.withLock { $0 += 1 }
                return "it rains"
            }
        }
    }
    try await group.waitForAll()
}
print("asked 100 times, made:", made.withLock { $0 })

await cache.remove("funny-games.mp4")
print("removed:", try await cache.value(forKey: "funny-games.mp4") == nil)
// Finish pending writes before the directory is removed.
try await texts.flush()
