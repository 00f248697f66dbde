/// Which way ``ImageProcessor/flip(_:)`` mirrors.
public enum FlipAxis: String, Sendable, Hashable, Codable, CaseIterable {
    /// Left and right change places.
    case horizontal
    /// Top and bottom change places.
    case vertical
}
