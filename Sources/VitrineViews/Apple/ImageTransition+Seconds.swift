#if canImport(UIKit) || canImport(AppKit) || canImport(SwiftUI)
extension ImageTransition {
    /// How long it takes; nil if nothing is to be seen of it.
    var seconds: Double? {
        guard case .crossFade(let duration) = self, duration > .zero else { return nil }
        return duration / .seconds(1)
    }
}
#endif
