public import VitrineCore

/// What a target is to show, and where that comes from.
///
/// ```swift
/// binding.set(.url(url, in: Shared.images))
/// binding.set(ImageRequest(.file(path)))
/// ```
///
/// ## Topics
/// ### Caches
/// - ``url(_:id:in:format:options:)``
/// - ``urls(_:in:format:secondaryDepth:)``
/// - ``file(_:in:format:)``
/// - ``key(_:in:format:)``
/// - ``value(_:forKey:in:format:)``
/// - ``fetcher(_:in:format:)``
/// ### Others
/// - ``request(_:in:)``
/// - ``image(_:)``
/// - ``init(id:inMemory:load:)``
/// ### Looking
/// - ``inMemory(for:)``
public struct ImageContent<Value: Sendable>: Sendable {
    /// What content means for a target of a certain size.
    struct Prepared {
        /// Two that are equal show the same.
        let identity: ContentIdentity
        /// What is in memory, and whether nothing better will come. Never blocks.
        let atHand: () -> (value: Value, isFinal: Bool)?
        /// Begins to load; reports on the main actor, also before it returns.
        let start: (Priority, @escaping @MainActor @Sendable (ContentStep<Value>) -> Void) -> ContentLoad
    }

    let prepare: @MainActor @Sendable (TargetGeometry?) -> Prepared

    init(prepare: @escaping @MainActor @Sendable (TargetGeometry?) -> Prepared) { self.prepare = prepare }

    /// An image that is there.
    public static func image(_ value: Value) -> ImageContent {
        ImageContent { _ in
            Prepared(identity: .unique()) {
                (value, true)
            } start: { _, report in
                report(.done(.success(value)))
                return ContentLoad()
            }
        }
    }

    /// An image from anywhere.
    ///
    /// - Parameters:
    ///   - id: What it is known by: a target that shows it, or waits for it, is left alone. nil if that is not known.
    ///   - inMemory: The image if it is at hand. Must not block. Default: it never is.
    ///   - load: Brings it, in a task of its own that is cancelled when nobody wants it any more.
    public init(
        id: CacheKey?, inMemory: @escaping @Sendable (TargetGeometry?) -> Value? = { _ in nil },
        load: @escaping @Sendable (TargetGeometry?) async throws -> Value
    ) {
        self.init { box in
            Prepared(identity: id.map { ContentIdentity(owner: nil, key: $0, form: "\(box as Any)") } ?? .unique()) {
                inMemory(box).map { ($0, true) }
            } start: { priority, report in
                let task = Task(priority: priority >= .normal ? .userInitiated : .utility) {
                    let result: Result<Value, any Error>
                    do { result = .success(try await load(box)) } catch { result = .failure(error) }
                    report(.done(result))
                }
                return ContentLoad(cancel: { task.cancel() })
            }
        }
    }
}
