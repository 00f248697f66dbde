#if canImport(UIKit) || canImport(AppKit) || canImport(SwiftUI)
import CoreGraphics
import VitrineImaging

extension TargetGeometry {
    /// A place of a size in points; nil without one.
    init?(_ size: CGSize, _ scale: Double, _ mode: ImageResizer.Mode, allowsUpscaling: Bool = true) {
        self.init(
            width: Double(size.width), height: Double(size.height), scale: scale, mode: mode,
            allowsUpscaling: allowsUpscaling)
    }
}
#endif
