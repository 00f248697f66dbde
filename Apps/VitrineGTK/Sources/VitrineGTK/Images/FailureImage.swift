public import VitrineImaging

extension PixelImage {
    /// The placeholder for an image that failed to load: a grey frame with a diagonal stroke, 48 pixels wide.
    public static let failure = PixelImage(width: 48, height: 48, alpha: .straight) { pixels in
        for y in 0..<48 {
            for x in 0..<48 {
                let pixel = (y * 48 + x) * 4
                pixels[pixel] = 0x90
                pixels[pixel + 1] = 0x90
                pixels[pixel + 2] = 0x94
                pixels[pixel + 3] = UInt8((255 * cover(Double(x) + 0.5, Double(y) + 0.5)).rounded())
            }
        }
    }

    /// Returns the coverage of the pixel around a point, from 0 to 1.
    private static func cover(_ x: Double, _ y: Double) -> Double {
        // The distance from a frame of 36 by 28, with a corner radius of 5 and a thickness of 3.
        let (dx, dy) = (abs(x - 24) - 18 + 5, abs(y - 24) - 14 + 5)
        let outside = (max(dx, 0) * max(dx, 0) + max(dy, 0) * max(dy, 0)).squareRoot() + min(max(dx, dy), 0) - 5
        let frame = 1.5 - abs(outside + 1.5)
        // The stroke from the lower left to the upper right, within the frame.
        let stroke = min(1.5 - abs((x - 24) * 14 + (y - 24) * 18) / 22.8, -outside)
        return min(1, max(0, max(frame, stroke) + 0.5))
    }
}
