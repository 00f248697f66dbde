extension Image {
    /// The same picture with its alpha held in another way; the very same picture if nothing changes.
    ///
    /// Converting to ``Alpha/opaque`` drops alpha: colours are as if they had been opaque all along (those of
    /// invisible premultiplied pixels are black). Premultiplying and back loses at most the precision 8 bits have.
    public func converted(to alpha: Alpha) -> Image {
        if alpha == self.alpha { return self }
        let row = width * Image.bytesPerPixel
        return Image(width: width, height: height, alpha: alpha) { pixels in
            guard let target = pixels.bindMemory(to: UInt8.self).baseAddress else { return }
            storage.withUnsafeBytes { source in
                guard let source = source.bindMemory(to: UInt8.self).baseAddress else { return }
                for y in 0..<height {
                    let line = target + y * row
                    line.update(from: source + y * bytesPerRow, count: row)
                    if self.alpha == .premultiplied { AlphaMath.unpremultiply(line, count: width) }
                    if self.alpha == .straight && alpha == .premultiplied { AlphaMath.premultiply(line, count: width) }
                    if alpha == .opaque { for x in 0..<width { line[4 &* x &+ 3] = 255 } }
                }
            }
        }
    }
}
