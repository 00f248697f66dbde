extension Image {
    /// Appends red, green and blue of all pixels, row by row.
    package func appendColors(to bytes: inout [UInt8]) {
        let count = 3 * size.pixelCount
        let row = bytesPerRow
        withUnsafeBytes { pixels in
            bytes.append(contentsOf: [UInt8](unsafeUninitializedCapacity: count) { target, initialized in
                for y in 0..<height {
                    for x in 0..<width {
                        let (from, to) = (y &* row &+ 4 &* x, 3 &* (y &* width &+ x))
                        target[to] = pixels[from]
                        target[to &+ 1] = pixels[from &+ 1]
                        target[to &+ 2] = pixels[from &+ 2]
                    }
                }
                initialized = count
            })
        }
    }

    /// An opaque image of red, green and blue of all pixels, row by row.
    ///
    /// - Precondition: There are bytes for all pixels; further ones do not count.
    package init(size: PixelSize, colors: ArraySlice<UInt8>) {
        precondition(colors.count >= 3 * size.pixelCount, "the colors must fill the image")
        self.init(width: size.width, height: size.height, alpha: .opaque) { target in
            colors.withUnsafeBytes { source in
                for pixel in 0..<size.pixelCount {
                    target[4 &* pixel] = source[3 &* pixel]
                    target[4 &* pixel &+ 1] = source[3 &* pixel &+ 1]
                    target[4 &* pixel &+ 2] = source[3 &* pixel &+ 2]
                    target[4 &* pixel &+ 3] = 255
                }
            }
        }
    }
}
