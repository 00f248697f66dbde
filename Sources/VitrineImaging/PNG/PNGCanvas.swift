import VitrineCore

/// The picture an animation draws its frames on: RGBA with straight alpha, transparent at first.
struct PNGCanvas {
    private let width: Int
    private let height: Int
    private let storage: PixelStorage

    init(width: Int, height: Int) {
        self.width = width
        self.height = height
        // 64 bytes more, for reads behind the last row.
        storage = PixelStorage(zeroedByteCount: width * height * 4 + 64)
    }

    private func row(_ frame: PNGFrame, _ y: Int) -> UnsafeMutableRawBufferPointer {
        let start = ((frame.y + y) * width + frame.x) * 4
        return UnsafeMutableRawBufferPointer(rebasing: storage.bytes[start..<(start + frame.width * 4)])
    }

    /// Draws a frame's pixels, over what is there or in its place.
    func draw(_ plane: PixelPlane, _ frame: PNGFrame) {
        for y in 0..<min(frame.height, plane.height) {
            let start = y * plane.bytesPerRow
            let from = UnsafeRawBufferPointer(
                rebasing: plane.storage.bytes[start..<(start + plane.width * plane.channels)])
            let to = row(frame, y)
            for x in 0..<min(frame.width, plane.width) {
                let pixel = Self.pixel(from, x &* plane.channels, plane.channels)
                Self.draw(pixel, to, x &* 4, blends: frame.blends)
            }
        }
    }

    @inline(__always)
    private static func pixel(_ row: UnsafeRawBufferPointer, _ at: Int, _ channels: Int) -> SIMD4<UInt8> {
        switch channels {
        case 1: SIMD4(row[at], row[at], row[at], 255)
        case 2: SIMD4(row[at], row[at], row[at], row[at &+ 1])
        case 3: SIMD4(row[at], row[at &+ 1], row[at &+ 2], 255)
        default: SIMD4(row[at], row[at &+ 1], row[at &+ 2], row[at &+ 3])
        }
    }

    /// Composition with straight alpha: a = s + d · (1 − s), each colour weighted by its share of a.
    @inline(__always)
    private static func draw(_ pixel: SIMD4<UInt8>, _ row: UnsafeMutableRawBufferPointer, _ at: Int, blends: Bool) {
        if !blends || pixel[3] == 255 {
            for c in 0..<4 { row[at &+ c] = pixel[c] }
            return
        }
        guard pixel[3] > 0 else { return }
        let over = UInt32(pixel[3]) &* 255
        let under = (255 &- UInt32(pixel[3])) &* UInt32(row[at &+ 3])
        let sum = over &+ under
        for c in 0..<3 {
            let v = UInt32(pixel[c]) &* over &+ UInt32(row[at &+ c]) &* under
            row[at &+ c] = UInt8(truncatingIfNeeded: (v &+ sum / 2) / sum)
        }
        row[at &+ 3] = UInt8(truncatingIfNeeded: (sum &+ 127) / 255)
    }

    /// A frame's rectangle as it is.
    func copy(_ frame: PNGFrame) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(frame.width * frame.height * 4)
        for y in 0..<frame.height { bytes.append(contentsOf: row(frame, y)) }
        return bytes
    }

    /// Puts back what ``copy(_:)`` gave.
    func restore(_ bytes: [UInt8], _ frame: PNGFrame) {
        for y in 0..<frame.height {
            let start = y * frame.width * 4
            row(frame, y).copyBytes(from: bytes[start..<(start + frame.width * 4)])
        }
    }

    /// Makes a frame's rectangle transparent.
    func clear(_ frame: PNGFrame) {
        for y in 0..<frame.height { row(frame, y).initializeMemory(as: UInt8.self, repeating: 0) }
    }

    /// The canvas, or the premultiplied means of its blocks.
    func plane(factor: Int, _ cancellation: CancellationToken, _ name: String) throws(ImageError) -> PixelPlane {
        guard factor > 1 else { return PixelPlane(width: width, height: height, channels: 4, storage: storage) }
        var box = PNGBlockMeans(width: width, height: height, channels: 4, factor: factor, isScattered: false)
        let buffer = PixelStorage(zeroedByteCount: width * 4 + 64)
        let base = UnsafeRawPointer(storage.bytes.baseAddress!)
        for y in 0..<height {
            if y & 63 == 0 && cancellation.isCancelled { throw .cancelled(input: name) }
            let row = base + y * width * 4
            let target = buffer.bytes.baseAddress!
            box.add(Premultiplication.apply(row, target, width: width, channels: 4) ? UnsafeRawPointer(target) : row)
        }
        return box.finish()
    }
}
