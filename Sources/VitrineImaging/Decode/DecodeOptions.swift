/// How a picture is to be read, beside its size.
public struct DecodeOptions: Sendable, Hashable {
    /// When the small picture a camera stored in the file may stand in for the real one.
    public enum EmbeddedPreview: Sendable, Hashable {
        /// Never: previews can be soft, cropped differently, or older than an edit. The default.
        case never
        /// When it is at least as large as the result in both directions and has the same shape (within 2 %).
        case whenLargeEnough
    }

    /// Frame of an animation or page of a document, from 0.
    public var page = 0
    /// Whether the camera's preview may be used. Default ``EmbeddedPreview/never``.
    public var embeddedPreview = EmbeddedPreview.never
    /// Whether a truncated input gives the part that is there. Default false: it throws
    /// ``ImageError/truncated(input:)``.
    public var allowPartial = false

    public init(
        page: Int = 0, embeddedPreview: EmbeddedPreview = .never, allowPartial: Bool = false
    ) {
        self.page = page
        self.embeddedPreview = embeddedPreview
        self.allowPartial = allowPartial
    }
}
