import VitrineCore

/// The weights used last: the two chroma planes of a picture share theirs, and the pictures of one camera all of them.
///
/// At most ``capacity`` axes of at most ``maximumWeights`` weights each, which is less than a megabyte. Safe to use from
/// any thread.
final class ResampleWeightsCache: Sendable {
    /// Axes kept: luma and chroma, across and down, of two kinds of pictures.
    static let capacity = 8
    /// Weights of an axis that is kept; the more there are, the longer the picture takes that they are for.
    static let maximumWeights = 32_768

    static let shared = ResampleWeightsCache()

    /// The one used last comes last.
    private let entries = Locked<[(axis: ResampleWeights.Axis, weights: ResampleWeights)]>([])

    /// The weights of an axis, computed unless they are here.
    func weights(_ axis: ResampleWeights.Axis) -> ResampleWeights {
        let known = entries.withLock { entries -> ResampleWeights? in
            guard let i = entries.lastIndex(where: { $0.axis == axis }) else { return nil }
            if i != entries.count - 1 { entries.append(entries.remove(at: i)) }
            return entries[entries.count - 1].weights
        }
        if let known { return known }
        let new = ResampleWeights(axis)
        guard new.weights.count <= ResampleWeightsCache.maximumWeights else { return new }
        entries.withLock { entries in
            if entries.count == ResampleWeightsCache.capacity { entries.removeFirst() }
            entries.append((axis, new))
        }
        return new
    }
}
