/// How a body is divided into pieces that come over several connections, and how much of each is there.
package struct PieceTable: Sendable, Hashable {
    /// The length of the body.
    package let total: Int
    /// Of each piece, how many bytes are there, from its beginning.
    package private(set) var lengths: [Int]
    /// How many bytes are there of all pieces.
    package private(set) var length: Int

    private static let largestCount = 256
    /// Smaller pieces cost more requests than they save time.
    private static let smallestPiece = 1 << 20

    /// - Parameters:
    ///   - total: The length of the body.
    ///   - connections: How many are to load it. Each has several pieces, so that a slow one has few in the end.
    /// - Returns: nil if it is not worth it.
    package init?(dividing total: Int, among connections: Int) {
        let count = min(total / Self.smallestPiece, max(0, min(connections, Self.largestCount)) * 4, Self.largestCount)
        guard connections > 1, count > 1 else { return nil }
        self.init(total: total, lengths: [Int](repeating: 0, count: count))
    }

    /// - Returns: nil for lengths that no pieces of such a body have.
    package init?(total: Int, lengths: [Int]) {
        guard (1...Self.largestCount).contains(lengths.count), lengths.count <= total,
            total <= Int.max / Self.largestCount
        else { return nil }
        (self.total, self.lengths, self.length) = (total, lengths, 0)
        for piece in lengths.indices {
            guard (0...range(of: piece).count).contains(lengths[piece]) else { return nil }
            length += lengths[piece]
        }
    }

    package var count: Int { lengths.count }

    package var isComplete: Bool { length == total }

    /// Where a piece lies in the body.
    func range(of piece: Int) -> Range<Int> {
        (total * piece / lengths.count)..<(total * (piece + 1) / lengths.count)
    }

    /// What is missing of a piece; empty if nothing is.
    package func missing(of piece: Int) -> Range<Int> {
        let range = range(of: piece)
        return (range.lowerBound + lengths[piece])..<range.upperBound
    }

    mutating func add(_ count: Int, to piece: Int) {
        lengths[piece] += count
        length += count
    }
}
