/// One of the better and better pictures made from a file that is still arriving.
public struct ProgressiveImage: Sendable {
    /// What the picture was made from.
    public enum Stage: Int, Sendable, Hashable, Comparable {
        /// The small picture a camera stored in front of the real one.
        case embeddedPreview
        /// The scans or rows that have arrived.
        case partial
        /// The whole file; the last picture of every sequence that does not throw.
        case complete

        public static func < (a: Stage, b: Stage) -> Bool { a.rawValue < b.rawValue }
    }

    public var image: Image
    public var stage: Stage
    /// Bytes that had arrived when the picture was made.
    public var byteCount: Int
}
