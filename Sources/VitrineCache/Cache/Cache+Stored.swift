package import VitrineCore

extension Cache {
    /// Fetches what is stored: the value of a key from memory or disk, also made from what is there in another format.
    /// The source is not asked.
    ///
    /// - Returns: The handle; a miss ends it with ``CacheError/notFound(key:)``.
    package func fetchStored(
        forKey key: CacheKey, format: FormatName = .original, priority: Priority = .normal
    ) -> Fetch<Value> {
        let delivery = configuration.delivery
        guard let area = formats[format] else {
            return Fetch(key: key, outcome: .failure(.formatNotFound(format)), delivery: delivery)
        }
        let fetch = Fetch<Value>(key: key, priority: priority, delivery: delivery)
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
