/// A picture in at most 256 colours.
struct IndexedPixels {
    /// Red in the lowest byte, then green and blue; the highest byte means nothing.
    var palette: [UInt32]
    var transparentIndex: Int?
    /// One byte a pixel, rows without gaps.
    var indices: [UInt8]
}
