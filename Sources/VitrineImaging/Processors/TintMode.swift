/// How ``ImageProcessor/tint(_:opacity:mode:)`` colours a picture.
public enum TintMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// Every pixel takes the colour and keeps its alpha: the picture is a stencil, as a template image is to UIKit.
    case template
    /// Every channel is multiplied by the colour's: white becomes the colour, black stays black.
    case multiply
}
