/// The viewport of a page's layout, in CSS pixels.
package struct BrowserViewport: Sendable, Hashable {
    /// The longest side of a picture that Chromium draws in one piece.
    package static let longest = 16_384

    package var width: Int
    package var height: Int
    /// Pixels a CSS pixel, from 1.
    package var scale: Double
    /// Whether all of the page is drawn.
    package var isFullPage: Bool

    package init(width: Int, height: Int, scale: Double, isFullPage: Bool) {
        self.width = width
        self.height = height
        self.scale = scale
        self.isFullPage = isFullPage
    }

    /// Whether a page looks the same for both but for its resolution.
    func isLaidOut(like other: BrowserViewport) -> Bool {
        width == other.width && height == other.height && isFullPage == other.isFullPage
    }
}
