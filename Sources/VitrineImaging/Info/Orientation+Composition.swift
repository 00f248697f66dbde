extension Orientation {
    /// Mirrored left to right first, then turned clockwise by quarters: how every orientation can be said.
    private static let parts: [(mirrored: Bool, quarters: Int)] = [
        (false, 0), (true, 0), (false, 2), (true, 2), (true, 3), (false, 1), (true, 1), (false, 3),
    ]

    private var parts: (mirrored: Bool, quarters: Int) { Orientation.parts[rawValue - 1] }

    private init(mirrored: Bool, quarters: Int) {
        let quarters = quarters & 3
        let index = Orientation.parts.firstIndex { $0.mirrored == mirrored && $0.quarters == quarters } ?? 0
        self = Orientation(rawValue: index + 1) ?? .up
    }

    /// This turning followed by quarters of a turn, clockwise.
    package func turned(clockwiseQuarters quarters: Int) -> Orientation {
        Orientation(mirrored: parts.mirrored, quarters: parts.quarters &+ quarters)
    }

    /// This turning followed by exchanging left and right.
    package func mirroredLeftRight() -> Orientation {
        Orientation(mirrored: !parts.mirrored, quarters: 0 &- parts.quarters)
    }

    /// This turning followed by exchanging top and bottom.
    package func mirroredTopBottom() -> Orientation {
        mirroredLeftRight().turned(clockwiseQuarters: 2)
    }
}
