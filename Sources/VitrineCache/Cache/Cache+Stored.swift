package import VitrineCore

extension Cache {
    /// Fetches what is stored: the value of a key from memory or disk, also made from what is there in another format.
    /// The source is not asked.
    ///
    /// - Returns: The handle; a miss ends it with ``CacheError/notFound(key:)``.
    package func fetchStored(
        forKey key: CacheKey, format: FormatName = .original, priority: Priority = .normal
    ) -> FetchTask<Value> {
        guard let area = formats[format] else {
            return FetchTask(key: key, outcome: .failure(.formatNotFound(format)))
        }
        let fetch = FetchTask<Value>(key: key, priority: priority)
        fetch.follow(
            Task {
                let ticket = register.begin(area.slot(key))
                do throws(CacheError) {
                    let value = try await stored(key, in: area, configuration.levels, ticket, fetch.prioritySource)
                    fetch.finish(value.map { .success($0) } ?? .failure(.notFound(key: key)))
                } catch {
                    fetch.finish(.failure(error))
                }
            })
        return fetch
    }
}
