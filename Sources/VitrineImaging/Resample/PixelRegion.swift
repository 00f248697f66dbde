/// A rectangle of a ``PixelPlane`` in samples, fractions included, inside the plane's extent.
package struct PixelRegion: Sendable, Hashable {
    package var x: Double
    package var y: Double
    package var width: Double
    package var height: Double

    package init(x: Double, y: Double, width: Double, height: Double) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }
}
