import Foundation
import VitrineCore
import VitrineStores

/// `remove-values DIRECTORY KEYS`: stores values in a group, in no order, and some outside, and opens the store anew.
/// Then it removes the group, and reports how many calls for reading and writing that took.
enum GroupRemover {
    static func run(_ directory: String, _ count: Int) {
        do {
            try fill(directory, count)
            let store = try KeyValueStore(directory: directory)
            StoreChild.report("before \(try store.blocking.sum(of: "large").count)")
            let reads = calls("syscr"), writes = calls("syscw")
            try store.removeGroup("large").waitUntilCommitted()
            StoreChild.report("reads \(calls("syscr") - reads)")
            StoreChild.report("writes \(calls("syscw") - writes)")
            StoreChild.report("after \(try store.blocking.sum(of: "large").count)")
            StoreChild.report("others \(try store.blocking.sum(of: "small").count)")
        } catch {
            StoreChild.report("error \(error)")
        }
    }

    private static func fill(_ directory: String, _ count: Int) throws {
        let store = try KeyValueStore(directory: directory)
        let value = String(repeating: "x", count: 100)
        for number in 0..<count {
            // Each number once, as the factor is a prime.
            store.set(value, forKey: "key\(number * 7_919 % count)", in: "large.inner")
        }
        for number in 0..<3000 { store.set(value, forKey: "key\(number)", in: "small") }
        try store.blocking.flush()
    }

    /// A number out of what the system counts for this process.
    private static func calls(_ name: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/io", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.split(separator: " ").last ?? "") } ?? 0
    }
}
