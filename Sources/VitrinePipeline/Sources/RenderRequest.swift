import VitrineCore
import VitrineImaging

/// One thumbnail as a ``ImageSource`` is asked for it: in pixels, with scales of displays applied already.
public struct RenderRequest: Sendable {
    /// The box, in pixels.
    public var size: PixelSize
    /// How the picture is brought to ``size``. Default `aspectFit`.
    public var mode: ImageResizer.Mode
    /// Whether the picture may grow. Pages and other drawings have the size of 1 pixel a point. Default true.
    public var allowsUpscaling: Bool
    /// Bounds on the input and on the work.
    public var limits: ImageLimits
    /// Cancelled when no request needs the result any more.
    public var cancellation: CancellationToken

    public init(
        size: PixelSize, mode: ImageResizer.Mode = .aspectFit, allowsUpscaling: Bool = true,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) {
        self.size = size
        self.mode = mode
        self.allowsUpscaling = allowsUpscaling
        self.limits = limits
        self.cancellation = cancellation
    }

    /// ``size``, ``mode`` and ``allowsUpscaling`` as a rule for pictures.
    public var resizer: ImageResizer {
        var resizer = ImageResizer(size: size, mode: mode, allowsUpscaling: allowsUpscaling)
        resizer.maximumSide = limits.maximumOutputSide
        return resizer
    }

    /// One request whose picture has enough pixels for each of `requests`, and the whole of the content; nil for none.
    ///
    /// It is cancelled with the first of them: callers who may lose interest one by one give all the same token.
    package static func covering(_ requests: [RenderRequest]) -> RenderRequest? {
        guard var common = requests.first else { return nil }
        var fits = true
        for request in requests {
            common.size.width = max(common.size.width, request.size.width)
            common.size.height = max(common.size.height, request.size.height)
            switch request.mode {
            case .aspectFit: break
            // A side without limit needs every pixel, and so does no rule at all.
            case .limit where !request.size.isEmpty: break
            case .limit, .none: return common.asStored
            case .fill, .aspectFill, .crop: fits = false
            }
        }
        // Whether a picture would grow is told by its own size; made larger, it would not be known any more.
        common.allowsUpscaling = requests.allSatisfy { $0.allowsUpscaling && $0.mode != .limit }
        common.mode = fits ? .aspectFit : .aspectFill
        return common
    }

    private var asStored: RenderRequest {
        var request = self
        request.mode = .none
        return request
    }
}
