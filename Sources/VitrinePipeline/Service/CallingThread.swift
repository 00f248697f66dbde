import VitrineCache

/// Facts about the calling thread.
enum CallingThread {
    /// Whether it may block: it is neither the main thread nor, as far as can be told, one of Swift's cooperative pool.
    static var mayBlock: Bool { !CallbackQueue.isMainActor && withUnsafeCurrentTask { $0 == nil } }
}
