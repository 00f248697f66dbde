import VitrineCache
import VitrineCore
package import VitrineFleet

/// Purges, on this node and on all nodes of a fleet.
extension Renderer {
    /// Removes all results of a source with all options, and its bytes, so that it is fetched anew.
    ///
    /// Work under way stores nothing that was removed, and requests that follow do not wait for it.
    ///
    /// - Parameter address: The source as in a URL, not percent-encoded.
    /// - Returns: The number of results.
    /// - Throws: 400 for an address that is not valid, 500 `cache-failed` if the disk cannot be changed, 503
    ///   `purge-pending` if this node has removed its results and cannot tell the others.
    package func purge(source address: String) async throws(RequestError) -> Int {
        try await purge(PurgeTag.source(try sources.parsed(address).key))
    }

    /// Removes all results and bytes of the sources whose addresses begin so.
    ///
    /// - Parameter prefix: A scheme, a host and up to 6 directories with a slash at the end, for example
    ///   `https://example.org/pictures/`, `local:///a/`, or a path that the base URL completes.
    /// - Returns: The number of results.
    /// - Throws: 400 for another text, 500 `cache-failed` if the disk cannot be changed.
    package func purge(prefix: String) async throws(RequestError) -> Int {
        let name = "x"
        guard prefix.hasSuffix("/"), let beginning = try sources.parsed(prefix + name).prefix(before: name) else {
            throw RequestError(
                400, code: "invalid-prefix",
                reason: "A prefix is a scheme, a host and directories with a slash at the end.")
        }
        guard beginning.depth <= PurgeTag.directories else {
            throw RequestError(
                400, code: "invalid-prefix", reason: "A prefix has at most \(PurgeTag.directories) directories.")
        }
        return try await purge(PurgeTag.prefix(beginning.text))
    }

    /// Removes all results and bytes of the sources whose servers named a tag in `Surrogate-Key` or `Cache-Tag`.
    ///
    /// Of a source, its first 8 tags count.
    ///
    /// - Returns: The number of results.
    /// - Throws: 400 for an empty tag, 500 `cache-failed` if the disk cannot be changed.
    package func purge(tag: String) async throws(RequestError) -> Int {
        guard !tag.isEmpty, !tag.contains(where: { $0 == "," || $0 == " " }) else {
            throw RequestError(400, code: "invalid-tag", reason: "A tag has no spaces and no commas.")
        }
        return try await purge(PurgeTag.named(tag), isNamed: true)
    }

    private func purge(_ tag: String, isNamed: Bool = false) async throws(RequestError) -> Int {
        // First elsewhere, so that nothing old comes back from there.
        let elsewhere = await Self.result { () throws(RequestError) in try await remote?.purge(tag) }
        return try Self.outcome(of: try await purgeHere(tag, isNamed: isNamed), elsewhere)
    }

    private static func result(_ body: () async throws(RequestError) -> Bool?) async -> Result<Bool, RequestError> {
        do throws(RequestError) {
            return .success(try await body() ?? true)
        } catch {
            return .failure(error)
        }
    }

    /// - Parameter count: The results that were removed on this node.
    /// - Throws: 503 `purge-pending` if other nodes still show the purged results.
    private static func outcome(
        of count: Int, _ elsewhere: Result<Bool, RequestError>
    ) throws(RequestError) -> Int {
        guard try elsewhere.get() else {
            throw RequestError(
                503, code: "purge-pending",
                reason:
                    "This node has removed \(count) results. Other nodes cannot be reached, and show theirs until this "
                    + "node can tell them. Repeat the purge, or watch vitrine_tier_up.", retryAfter: 5)
        }
        return count
    }

    /// ``purge(_:isNamed:)`` on this node.
    func purgeHere(_ tag: String, isNamed: Bool = false) async throws(RequestError) -> Int {
        cache.failures.removeAll()
        await fence.purge(tag, isNamed: isNamed)
        do {
            // The bytes first: a process that ends between both must not make results of them again.
            if configuration.sourceDisk.bytes > 0 { try await originals.removeAll(tag: tag) }
            return try await results.removeAll(tag: tag, levels: cache.levels)
        } catch {
            throw RequestError(500, code: "cache-failed", reason: "the results could not be removed")
        }
    }

    /// Removes all results, and the bytes of all sources.
    ///
    /// - Returns: The number of results on disk, or 0 if they are kept in memory only.
    /// - Throws: 500 `cache-failed` if the disk cannot be changed.
    @discardableResult
    package func purgeAll() async throws(RequestError) -> Int {
        let elsewhere = await Self.result { () throws(RequestError) in try await remote?.purge(nil) }
        return try Self.outcome(of: try await purgeAllHere(), elsewhere)
    }

    /// ``purgeAll()`` on this node.
    func purgeAllHere() async throws(RequestError) -> Int {
        cache.failures.removeAll()
        await fence.purge(nil)
        do {
            try await originals.removeAll()
            let count = configuration.resultDisk.bytes > 0 ? try await results.count() : 0
            try await results.removeAll()
            return count
        } catch {
            throw RequestError(500, code: "cache-failed", reason: "the caches could not be emptied")
        }
    }

    /// Applies a purge of any node to the caches of this one.
    ///
    /// - Returns: Whether the disk could be changed.
    package func apply(_ invalidation: RemoteTier.Invalidation) async -> Bool {
        remote?.durable?.forgetPurges()
        do throws(RequestError) {
            switch invalidation {
            case .key(let key): _ = try await purgeHere("source " + key.group)
            case .group(let digest): _ = try await purgeHere("source " + digest)
            case .tag(let digest):
                _ = try await purgeHere("prefix " + digest)
                _ = try await purgeHere("named " + digest, isNamed: true)
            case .all: _ = try await purgeAllHere()
            }
            return true
        } catch {
            return false
        }
    }
}
