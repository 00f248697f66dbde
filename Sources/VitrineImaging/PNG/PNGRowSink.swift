/// What becomes of decoded rows: a plane of every pixel, or of means.
protocol PNGRowSink: ~Copyable {
    /// Adds the next row of samples; 16 bytes behind it are readable.
    mutating func add(_ source: UnsafeRawPointer)
    /// Adds `count` pixels of row `y` at `x`, `x + step` and so on.
    mutating func add(_ source: UnsafeRawPointer, y: Int, x: Int, step: Int, count: Int)
    /// The plane, with zeros where nothing came.
    mutating func finish() -> PixelPlane
}
