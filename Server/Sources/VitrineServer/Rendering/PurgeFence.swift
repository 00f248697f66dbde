import Foundation
import Synchronization
package import VitrineCore
import VitrineFleet
import VitrineNetwork

/// The tags by which results and the bytes of sources are purged.
///
/// An entry has the tag of its source, one for the host and for each of the first directories of the source's path, and
/// those that the source's server names in `Surrogate-Key` or `Cache-Tag`. A cache allows 16 tags for an entry.
enum PurgeTag {
    /// The directories below the host, or below the root of local sources, that can be purged.
    static let directories = 6
    /// The tags of the source's server that count.
    static let named = 8

    static func prefix(_ text: String) -> String { "prefix " + RemoteKey.digest(of: text) }
    static func named(_ text: String) -> String { "named " + RemoteKey.digest(of: text) }

    /// Its digest is that of the group of the source's results in the tier.
    static func source(_ key: CacheKey) -> String { "source " + RemoteKey.digest(of: key.description) }

    /// The digest in a tag, by which nodes tell each other of purges.
    static func digest(in tag: String) -> String { String(tag.split(separator: " ").last ?? "") }

    /// The tags that a response names: `Surrogate-Key` with spaces and `Cache-Tag` with commas between them.
    static func named(in headers: HTTPHeaders) -> [String] {
        var words = headers.all("Surrogate-Key").flatMap { $0.split(separator: " ").map(String.init) }
        words += headers.all("Cache-Tag").flatMap {
            $0.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        var tags: [String] = []
        for word in words where !word.isEmpty && tags.count < named {
            let tag = named(word)
            if !tags.contains(tag) { tags.append(tag) }
        }
        return tags
    }
}

extension SourceTable.Source {
    /// The tags of all that is made from it, without those that its server names.
    static func tags(_ place: Place, _ key: CacheKey) -> [String] {
        [PurgeTag.source(key)] + prefixes(of: place).prefix(PurgeTag.directories + 1).map(PurgeTag.prefix)
    }

    /// The beginnings of its address that end with a slash, the shortest first: `https://example.org/`,
    /// `https://example.org/a/`. None for `data:`.
    private static func prefixes(of place: Place) -> [String] {
        var prefix: String
        let names: [String]
        switch place {
        case .inline: return []
        case .local(let parts): (prefix, names) = ("local:///", parts)
        case .bucket(let bucket, let key):
            prefix = "s3://\(bucket)/"
            names = key.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        case .web(let url):
            guard let scheme = url.scheme?.lowercased(), let host = url.host(percentEncoded: true)?.lowercased() else {
                return []
            }
            let isUsual = url.port == nil || url.port == (scheme == "http" ? 80 : 443)
            prefix = "\(scheme)://\(host)\(isUsual ? "" : ":\(url.port ?? 0)")/"
            names = url.path(percentEncoded: true).split(separator: "/", omittingEmptySubsequences: false).dropFirst()
                // “%7E” and “~” are the same directory.
                .map { name in
                    guard name.utf8.contains(0x25) else { return String(name) }
                    return (name.removingPercentEncoding ?? String(name)).replacing("/", with: "%2F")
                }
        }
        var prefixes = [prefix]
        for name in names.dropLast() {
            prefix += name + "/"
            prefixes.append(prefix)
        }
        return prefixes
    }

    /// The beginning before a last name, and its number of directories; nil if the address does not end so.
    func prefix(before name: String) -> (text: String, depth: Int)? {
        if case .web(let url) = place, !url.absoluteString.hasSuffix(url.path(percentEncoded: true))
            || !url.path(percentEncoded: true).hasSuffix("/" + name)
        {
            return nil
        }
        let prefixes = Self.prefixes(of: place)
        return prefixes.last.map { ($0, prefixes.count - 1) }
    }
}

/// Keeps work that began before a purge from storing removed results, and from being shared by requests after it.
///
/// Positions are numbers of purges. Work notes the position at its beginning, and stores by ``store(_:since:_:)``.
package final class PurgeFence: Sendable {
    private struct State {
        /// The number of the last purge.
        var last = 0
        /// The last purge of each tag, of those after `floor`.
        var purges: [String: Int] = [:]
        /// Purges up to this number count as purges of everything.
        var floor = 0
        /// The last purge of a tag that is known only when a source is loaded.
        var lastNamed = 0
        var nextStore = 0
        var stores: Set<Int> = []
        var purgesThatWait: [(stores: Set<Int>, ready: AsyncPromise<Void>)] = []
        /// The loads under way of each key: how many of each epoch.
        var loads: [CacheKey: [Int: Int]] = [:]
        var loadsThatWait: [CacheKey: [AsyncPromise<Void>]] = [:]
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: The tags whose purges are remembered. Older purges count as purges of everything.
    package init(limit: Int = 4096) { self.limit = limit }

    /// The number of the last purge.
    package var position: Int { state.withLock { $0.last } }

    /// The number of the last purge that may concern work with these tags. Requests of different epochs share no work.
    package func epoch(of tags: [String]) -> Int {
        state.withLock { state in
            tags.reduce(max(state.floor, state.lastNamed)) { max($0, state.purges[$1] ?? 0) }
        }
    }

    /// Stores the result of work that began at a position, unless one of its tags was purged since.
    package func store(_ tags: [String], since position: Int, _ body: @Sendable () async -> Void) async {
        let id: Int? = state.withLock { state in
            guard state.floor <= position, !tags.contains(where: { state.purges[$0] ?? 0 > position }) else {
                return nil
            }
            state.nextStore += 1
            state.stores.insert(state.nextStore)
            return state.nextStore
        }
        guard let id else { return }
        await body()
        let ready = state.withLock { state in
            state.stores.remove(id)
            for index in state.purgesThatWait.indices { state.purgesThatWait[index].stores.remove(id) }
            let ready = state.purgesThatWait.filter(\.stores.isEmpty).map(\.ready)
            state.purgesThatWait.removeAll(where: \.stores.isEmpty)
            return ready
        }
        for purge in ready { purge.fulfill(()) }
    }

    /// Begins a purge. Returns when stores that began before have ended, so that their entries can be removed.
    ///
    /// - Parameters:
    ///   - tag: The tag; nil for everything.
    ///   - isNamed: Whether sources get the tag from their servers.
    package func purge(_ tag: String?, isNamed: Bool = false) async {
        let ready = AsyncPromise<Void>()
        let mustWait = state.withLock { state in
            state.last += 1
            if let tag {
                state.purges[tag] = state.last
                if isNamed { state.lastNamed = state.last }
            } else {
                state.floor = state.last
                state.purges = [:]
            }
            if state.purges.count > limit {
                let floor = state.last - limit / 2
                state.floor = max(state.floor, floor)
                state.purges = state.purges.filter { $0.value > floor }
            }
            if !state.stores.isEmpty { state.purgesThatWait.append((state.stores, ready)) }
            return !state.stores.isEmpty
        }
        if mustWait { await ready.value() }
    }

    /// Waits until every load of the key that began before a purge has ended, so that the next one is not answered
    /// with its bytes. ``endLoad(_:epoch:)`` must follow.
    package func beginLoad(_ key: CacheKey, epoch: Int) async {
        while true {
            let ended = AsyncPromise<Void>()
            let hasBegun = state.withLock { state in
                if state.loads[key]?.keys.contains(where: { $0 < epoch }) == true {
                    state.loadsThatWait[key, default: []].append(ended)
                    return false
                }
                state.loads[key, default: [:]][epoch, default: 0] += 1
                return true
            }
            if hasBegun { return }
            await ended.value()
        }
    }

    /// Ends the load of ``beginLoad(_:epoch:)``.
    package func endLoad(_ key: CacheKey, epoch: Int) {
        let waiters = state.withLock { state -> [AsyncPromise<Void>] in
            guard let count = state.loads[key]?[epoch] else { return [] }
            state.loads[key]?[epoch] = count > 1 ? count - 1 : nil
            if state.loads[key]?.isEmpty == true { state.loads[key] = nil }
            return state.loadsThatWait.removeValue(forKey: key) ?? []
        }
        for waiter in waiters { waiter.fulfill(()) }
    }
}
