extension Image {
    /// A new picture of the same size whose pixels are `body` of these, row by row.
    @inline(__always)
    func mapPixels(to alpha: Alpha, _ body: (UInt32) -> UInt32) -> Image {
        let width = width, height = height, stride = bytesPerRow
        return Image(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for y in 0..<height {
                    let from = source.baseAddress! + y &* stride
                    let to = target.baseAddress! + y &* width &* 4
                    var x = 0
                    while x < width &* 4 {
                        PixelMath.store(body(PixelMath.load(from + x)), to + x)
                        x &+= 4
                    }
                }
            }
        }
    }

    /// A new picture whose pixel (x, y) is the one `source` names: for moves that keep every pixel's value.
    @inline(__always)
    func moved(to size: PixelSize, _ source: (_ x: Int, _ y: Int) -> (x: Int, y: Int)) -> Image {
        let stride = bytesPerRow
        return Image(width: size.width, height: size.height, alpha: alpha) { target in
            withUnsafeBytes { bytes in
                let from = bytes.baseAddress!, to = target.baseAddress!
                // Tiles, so that a quarter turn touches few cache lines at a time.
                let tile = 32
                for top in Swift.stride(from: 0, to: size.height, by: tile) {
                    for left in Swift.stride(from: 0, to: size.width, by: tile) {
                        for y in top..<min(size.height, top &+ tile) {
                            for x in left..<min(size.width, left &+ tile) {
                                let p = source(x, y)
                                let pixel = PixelMath.load(from + (p.y &* stride &+ p.x &* 4))
                                PixelMath.store(pixel, to + (y &* size.width &+ x) &* 4)
                            }
                        }
                    }
                }
            }
        }
    }

    /// The part inside a rectangle that must lie within the picture.
    func cropped(x: Int, y: Int, width: Int, height: Int) -> Image {
        if x == 0, y == 0, width == self.width, height == self.height { return self }
        return Image(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for row in 0..<height {
                    let from = source.baseAddress! + ((y + row) * bytesPerRow + x * 4)
                    (target.baseAddress! + row * width * 4).copyMemory(from: from, byteCount: width * 4)
                }
            }
        }
    }
}
