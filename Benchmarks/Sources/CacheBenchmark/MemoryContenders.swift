import Foundation
import Synchronization
import VitrineCache
import VitrineCore

/// What the caches hold.
final class Payload: Sendable {
    let number: Int
    init(_ number: Int) { self.number = number }
}

/// Something to look values up in, by the number of the key.
protocol MemoryContender: Sendable {
    /// Looks up all of these and returns how many were there.
    ///
    /// - Parameter user: 0 or 1: each has keys of its own, as two threads that make their keys have.
    func hits(_ order: ArraySlice<Int32>, user: Int) -> Int
    func set(_ index: Int, _ value: Payload, cost: Int)
}

/// The texts, and the same with storage of their own.
private func twice(_ texts: [String]) -> [[String]] {
    [texts, texts.map { String(decoding: Array($0.utf8), as: UTF8.self) }]
}

/// Ours.
struct VitrineContender: MemoryContender {
    let cache: MemoryCache<CacheKey, Payload>
    let keys: [[CacheKey]]

    init(_ texts: [String], capacity: Int) {
        keys = twice(texts).map { $0.map { CacheKey($0) } }
        cache = MemoryCache(capacity: ByteCount(capacity), trimsOn: nil, cost: { _ in 1 })
    }

    func hits(_ order: ArraySlice<Int32>, user: Int) -> Int {
        let keys = keys[user]
        var hits = 0
        for index in order where cache[keys[Int(index)]] != nil { hits &+= 1 }
        return hits
    }

    func set(_ index: Int, _ value: Payload, cost: Int) { cache.set(value, forKey: keys[0][index], cost: cost) }
}

/// The least anyone could do: a hash table behind a lock, without limit or policy.
final class DictionaryContender: MemoryContender {
    let table = Mutex<[CacheKey: Payload]>([:])
    let keys: [[CacheKey]]

    init(_ texts: [String]) { keys = twice(texts).map { $0.map { CacheKey($0) } } }

    func hits(_ order: ArraySlice<Int32>, user: Int) -> Int {
        let keys = keys[user]
        var hits = 0
        for index in order {
            let key = keys[Int(index)]
            if table.withLock({ $0[key] }) != nil { hits &+= 1 }
        }
        return hits
    }

    func set(_ index: Int, _ value: Payload, cost: Int) { table.withLock { $0[keys[0][index]] = value } }
}

/// NSCache as a caller with text keys uses it: the text is bridged at each call.
final class BridgedNSCacheContender: MemoryContender, @unchecked Sendable {  // NSCache locks itself.
    let cache = NSCache<NSString, Payload>()
    let keys: [[String]]

    init(_ texts: [String], capacity: Int) {
        keys = twice(texts)
        cache.totalCostLimit = capacity
    }

    func hits(_ order: ArraySlice<Int32>, user: Int) -> Int {
        let keys = keys[user]
        var hits = 0
        for index in order where cache.object(forKey: keys[Int(index)] as NSString) != nil { hits &+= 1 }
        return hits
    }

    func set(_ index: Int, _ value: Payload, cost: Int) {
        cache.setObject(value, forKey: keys[0][index] as NSString, cost: cost)
    }
}

/// NSCache with the customary wrapper class for its keys.
final class WrappedNSCacheContender: MemoryContender, @unchecked Sendable {  // NSCache locks itself.
    final class Wrapper: NSObject {
        let text: String
        init(_ text: String) { self.text = text }
        override var hash: Int { text.hashValue }
        override func isEqual(_ other: Any?) -> Bool { (other as? Wrapper)?.text == text }
    }

    let cache = NSCache<Wrapper, Payload>()
    let keys: [[String]]

    init(_ texts: [String], capacity: Int) {
        keys = twice(texts)
        cache.totalCostLimit = capacity
    }

    func hits(_ order: ArraySlice<Int32>, user: Int) -> Int {
        let keys = keys[user]
        var hits = 0
        for index in order where cache.object(forKey: Wrapper(keys[Int(index)])) != nil { hits &+= 1 }
        return hits
    }

    func set(_ index: Int, _ value: Payload, cost: Int) {
        cache.setObject(value, forKey: Wrapper(keys[0][index]), cost: cost)
    }
}
