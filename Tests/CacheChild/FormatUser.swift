import Foundation
import VitrineCache
import VitrineCore

/// `formats DIRECTORY COUNT`: stores and reads a value in some formats of one cache, then in COUNT more, and reports the
/// numbers of descriptors and threads of the process before and after.
enum FormatUser {
    static func run(_ arguments: inout ChildArguments) async {
        let directory = arguments.text(), count = arguments.number()
        let cache = ValueCache<String>(name: "formats", configuration: CacheConfiguration(root: directory))
        do {
            // What is opened or started once, for any number of formats.
            try await use(cache, 0..<20)
            report("descriptors-before", entries(of: "fd"))
            report("threads-before", entries(of: "task"))
            try await use(cache, 20..<20 + count)
            report("descriptors-after", entries(of: "fd"))
            report("threads-after", entries(of: "task"))
            report("formats", await cache.storedFormats.count)
            var found = 0
            cache.clearMemory()
            for number in 0..<20 + count {
                if try await cache.value(forKey: "lake", format: name(number)) == "lake \(number)" { found += 1 }
            }
            report("found", found)
        } catch {
            report("error", "\(error)")
        }
    }

    private static func name(_ number: Int) -> FormatName { FormatName("auto-\(300 + number)x200-fill") }

    private static func use(_ cache: ValueCache<String>, _ numbers: Range<Int>) async throws {
        for number in numbers {
            cache.register(CacheFormat(name(number)) { "\($0) \(number)" })
            try await cache.set("lake", forKey: "lake", format: name(number))
            try await cache.flush()
            cache.clearMemory()
            _ = try await cache.value(forKey: "lake", format: name(number))
        }
    }

    private static func entries(of folder: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/\(folder)"))?.count ?? 0
    }
}
