#if canImport(SwiftUI)
public import SwiftUI
public import VitrineImaging
public import VitrinePipeline

/// A SwiftUI view that loads an image at the size of the view, and cancels the request when it disappears.
///
/// ```swift
/// LazyImage(ImageRequest(url)) { error in
///     if error == nil { ProgressView() } else { Text("No image") }
/// }
/// .frame(width: 100, height: 100)
/// ```
///
/// An image in memory is there at the first pass. An image that is loaded fades in, and the previous image stays until
/// then. A source of your own without `knownIdentity` is loaded once in the life of the view: give the view another
/// `id` to change it.
///
/// Type-checked, and run against stand-ins for SwiftUI; not run on a device.
public struct LazyImage<Placeholder: View>: View {
    private let content: BindingContent?
    private let mode: ImageResizer.Mode
    private let transition: ImageTransition
    private let placeholder: ((any Error)?) -> Placeholder
    @State private var target = LazyImageTarget()
    @State private var shown: ShownImage?
    @Environment(\.displayScale) private var scale
    @Environment(\.accessibilityReduceMotion) private var reducesMotion

    /// Creates a view for the image of a request.
    ///
    /// - Parameters:
    ///   - request: The request; nil for the placeholder.
    ///   - pipeline: The pipeline that loads the image. Default: the shared one.
    ///   - mode: How the image is resized to the view, which clips it. Default: it covers the view.
    ///   - transition: The transition to an image that was not in memory.
    ///   - placeholder: The view without an image. Its argument is the error of the request; nil while it is loaded.
    public init(
        _ request: ImageRequest?, in pipeline: ImagePipeline = .shared, mode: ImageResizer.Mode = .fill,
        transition: ImageTransition = .standard, @ViewBuilder placeholder: @escaping ((any Error)?) -> Placeholder
    ) {
        content = request.map { BindingContent(requests: [$0], pipeline: pipeline) }
        self.mode = mode
        self.transition = transition
        self.placeholder = placeholder
    }

    public var body: some View {
        GeometryReader { proxy in
            let pass = LazyImagePass(content, in: geometry(proxy.size), after: shown)
            ZStack {
                if let image = pass.image {
                    SwiftUI.Image(decorative: image, scale: scale).resizable()
                        .aspectRatio(ratio(proxy.size), contentMode: mode.fillsViews ? .fill : .fit)
                        .transition(.opacity)
                } else {
                    placeholder(pass.error)
                }
            }
            .frame(width: proxy.size.width, height: proxy.size.height)
            .clipped()
            .task(id: pass.id) { load(pass) }
            .onDisappear { target.binding.cancel() }
        }
    }

    private func geometry(_ size: CGSize) -> TargetGeometry? { TargetGeometry(size, scale: Double(scale), mode: mode) }

    /// The ratio of the view for images that are stretched to it; nil for that of the image.
    private func ratio(_ size: CGSize) -> CGFloat? {
        mode == .stretch && size.height > 0 ? size.width / size.height : nil
    }

    private func load(_ pass: LazyImagePass) {
        guard pass.id.geometry != nil else { return }
        target.targetGeometry = pass.id.geometry
        target.prefersReducedMotion = reducesMotion
        target.onShow = { image, transition in
            let next = ShownImage(identity: pass.id.identity, image: image?.makeCGImage(), error: nil)
            guard let seconds = transition.seconds else { return shown = next }
            withAnimation(.easeIn(duration: seconds)) { shown = next }
        }
        target.binding.options.transition = transition
        target.binding.set(
            alternatives: content?.requests ?? [], in: content?.pipeline ?? .shared,
            onFailure: { shown = ShownImage(identity: pass.id.identity, image: nil, error: $0) })
    }
}

extension ImageResizer.Mode {
    /// Whether images cover the view.
    fileprivate var fillsViews: Bool {
        switch self {
        case .stretch, .fill, .crop: true
        case .fit, .limit, .none: false
        }
    }
}

/// The target of a ``LazyImage``, and its binding.
@MainActor
private final class LazyImageTarget: ImageTarget {
    var targetGeometry: TargetGeometry?
    var prefersReducedMotion = false
    /// Receives the images to show.
    var onShow: ((VitrineImaging.PixelImage?, ImageTransition) -> Void)?
    private(set) lazy var binding = ImageBinding(self)

    func show(_ image: VitrineImaging.PixelImage?, transition: ImageTransition) { onShow?(image, transition) }
}

/// The image that a ``LazyImage`` shows.
private struct ShownImage {
    /// nil for content without a known identity.
    let identity: ContentIdentity?
    let image: CGImage?
    /// Why there is no image.
    let error: (any Error)?
}

/// The result of one pass over a ``LazyImage``: at the first pass, the image in memory.
@MainActor
private struct LazyImagePass {
    /// A new load begins when this changes.
    struct ID: Equatable {
        let identity: ContentIdentity?
        let hasContent: Bool
        let geometry: TargetGeometry?
    }

    let id: ID
    let image: CGImage?
    let error: (any Error)?

    init(_ content: BindingContent?, in geometry: TargetGeometry?, after shown: ShownImage?) {
        let sized = content?.sized(for: geometry)
        let identity = sized?.identity
        id = ID(identity: identity, hasContent: content != nil, geometry: geometry)
        guard let shown, shown.identity == identity else {
            image = sized?.inMemory()?.image.makeCGImage() ?? (content == nil ? nil : shown?.image)
            error = nil
            return
        }
        (image, error) = (shown.image, shown.error)
    }
}
#endif
