#if canImport(SwiftUI)
import CoreGraphics
import VitrineImaging

/// What a ``LazyImage`` fills, and its binding.
@MainActor
final class LazyImageTarget: ImageTarget {
    var targetGeometry: TargetGeometry?
    /// Told what to show.
    var onShow: ((Image?, ImageTransition) -> Void)?
    private(set) lazy var binding = ImageBinding(self)

    func show(_ image: Image?, transition: ImageTransition) { onShow?(image, transition) }
}

/// What a ``LazyImage`` shows.
struct ShownImage {
    /// What of; nil for content without an identity.
    let identity: ContentIdentity?
    let image: CGImage?
    /// Why there is none.
    let error: (any Error)?
}

/// What one pass over a ``LazyImage`` finds: at the first pass, what memory has.
@MainActor
struct LazyImagePass {
    /// What a new load is begun for.
    struct ID: Equatable {
        let identity: ContentIdentity?
        let hasContent: Bool
        let box: TargetGeometry?
    }

    let id: ID
    let image: CGImage?
    let error: (any Error)?

    init(_ content: ImageContent<Image>?, in box: TargetGeometry?, after shown: ShownImage?) {
        let prepared = content?.prepare(box)
        // Content without an identity looks different at each pass.
        let identity = prepared.flatMap { $0.identity.isUnique ? nil : $0.identity }
        id = ID(identity: identity, hasContent: content != nil, box: box)
        guard let shown, shown.identity == identity else {
            image = prepared?.atHand()?.value.makeCGImage() ?? (content == nil ? nil : shown?.image)
            error = nil
            return
        }
        (image, error) = (shown.image, shown.error)
    }
}
#endif
