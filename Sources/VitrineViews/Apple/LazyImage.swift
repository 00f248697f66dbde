#if canImport(SwiftUI)
public import SwiftUI
public import VitrineImaging

/// An image in SwiftUI, loaded at the size it is given and cancelled when it goes.
///
/// ```swift
/// LazyImage(.url(url, in: Shared.images)) { error in
///     if error == nil { ProgressView() } else { Text("No picture") }
/// }
/// .frame(width: 100, height: 100)
/// ```
///
/// What is in memory is there at the first pass, without a flicker; what comes later fades in. While other content is
/// on its way what was shown stays. Content that has no identity, as an image or what is loaded without an `id`, is
/// looked at once in the life of the view: give the view an `id` of its own to change it.
///
/// Type-checked, and run against stand-ins for SwiftUI; not run on a device.
public struct LazyImage<Placeholder: View>: View {
    private let content: ImageContent<VitrineImaging.Image>?
    private let mode: ImageResizer.Mode
    private let transition: ImageTransition
    private let placeholder: ((any Error)?) -> Placeholder
    @State private var target = LazyImageTarget()
    @State private var shown: ShownImage?
    @Environment(\.displayScale) private var scale

    /// - Parameters:
    ///   - content: What to show; nil for the placeholder.
    ///   - mode: How it is brought to the size of the view, which cuts off what is too much. Default: it is covered.
    ///   - transition: How an image appears that was not there at once.
    ///   - placeholder: What is shown without an image: with the reason if there is none to be had, with nil before.
    public init(
        _ content: ImageContent<VitrineImaging.Image>?, mode: ImageResizer.Mode = .aspectFill,
        transition: ImageTransition = .standard, @ViewBuilder placeholder: @escaping ((any Error)?) -> Placeholder
    ) {
        self.content = content
        self.mode = mode
        self.transition = transition
        self.placeholder = placeholder
    }

    public var body: some View {
        GeometryReader { proxy in
            let pass = LazyImagePass(content, in: box(proxy.size), after: shown)
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

    private func box(_ size: CGSize) -> TargetGeometry? { TargetGeometry(size, Double(scale), mode) }

    /// The view's own where images are stretched to it; nil for the image's.
    private func ratio(_ size: CGSize) -> CGFloat? {
        mode == .fill && size.height > 0 ? size.width / size.height : nil
    }

    private func load(_ pass: LazyImagePass) {
        guard pass.id.box != nil else { return }
        target.targetGeometry = pass.id.box
        target.onShow = { image, transition in
            let next = ShownImage(identity: pass.id.identity, image: image?.makeCGImage(), error: nil)
            guard let seconds = transition.seconds else { return shown = next }
            withAnimation(.easeIn(duration: seconds)) { shown = next }
        }
        target.binding.options.transition = transition
        target.binding.set(
            content, onFailure: { shown = ShownImage(identity: pass.id.identity, image: nil, error: $0) })
    }
}

extension ImageResizer.Mode {
    /// Whether images cover the view they are shown in.
    fileprivate var fillsViews: Bool {
        switch self {
        case .fill, .aspectFill, .crop: true
        case .aspectFit, .limit, .none: false
        }
    }
}
#endif
