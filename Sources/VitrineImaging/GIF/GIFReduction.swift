/// Means of square blocks of a GIF's canvas.
enum GIFReduction {
    /// Every `factor` times `factor` pixels become one, at the edges those that are there.
    ///
    /// Pixels of a GIF are opaque or empty and empty ones are black here, so plain sums are sums of premultiplied
    /// colours: the result is premultiplied.
    static func plane(_ canvas: GIFCanvas, factor: Int, keepingAlpha: Bool) -> PixelPlane {
        var plane = PixelPlane(width: canvas.width, height: canvas.height, channels: 4, storage: canvas.storage)
        if factor > 1 {
            var reducer = BoxReducer(width: canvas.width, height: canvas.height, channels: 4, factor: factor)
            let rows = canvas.storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
            reducer.add(rows: UnsafePointer(rows), count: canvas.height, bytesPerRow: canvas.width * 4)
            plane = reducer.finish()
        }
        return keepingAlpha ? plane : withoutAlpha(plane)
    }

    private static func withoutAlpha(_ plane: PixelPlane) -> PixelPlane {
        let count = plane.width * plane.height
        let storage = PixelStorage(uninitializedByteCount: count * 3)
        let source = plane.storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        for i in 0..<count {
            target[3 &* i] = source[4 &* i]
            target[3 &* i &+ 1] = source[4 &* i &+ 1]
            target[3 &* i &+ 2] = source[4 &* i &+ 2]
        }
        return PixelPlane(
            width: plane.width, height: plane.height, channels: 3, extentWidth: plane.extentWidth,
            extentHeight: plane.extentHeight, storage: storage)
    }
}
