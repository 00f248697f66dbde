// The parts of this module that the adapters use.
public import VitrineCore

public struct PixelSize: Hashable, Sendable {
    public var width: Int, height: Int
    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }
    package static func pixels(_ points: Double, scale: Double) -> Double { points * scale }
}

public enum Orientation: Int, Sendable {
    case up = 1, upMirrored, down, downMirrored, leftMirrored, right, rightMirrored, left
}

public enum OutputFormat: Sendable { case png, jpeg(quality: Double) }

public struct ImageResizer: Hashable, Sendable {
    public enum Gravity: Hashable, Sendable { case center }
    public enum Mode: Hashable, Sendable { case stretch, fit, fill, crop(Gravity), limit, none }
    public var mode: Mode { .none }
    public init(size: PixelSize, mode: Mode, allowsUpscaling: Bool) {}
}

public final class PixelStorage: @unchecked Sendable {
    package let bytes: UnsafeMutableRawBufferPointer
    public let count: Int
    init(_ bytes: UnsafeMutableRawBufferPointer) { (self.bytes, count) = (bytes, bytes.count) }
}

public struct AnimationTiming: Sendable {
    public let durations: [Double]
    public let loopCount: Int
    public var frameCount: Int { durations.count }
}

public final class AnimatedImage: Sendable {
    public let timing = AnimationTiming(durations: [], loopCount: 0)
    public func image(at frame: Int) async throws -> PixelImage { fatalError("a declaration") }
}

public struct PixelImage: Sendable, CacheableValue {
    public var sharedPixels: PixelStorage { storage }
    public enum Alpha: UInt8, Sendable { case opaque, straight, premultiplied }
    public static let bytesPerPixel = 4
    public static let cacheQuality = 0.95
    public let width: Int, height: Int, bytesPerRow: Int
    public let alpha: Alpha
    package let storage: PixelStorage

    public init<E: Error>(
        width: Int, height: Int, alpha: Alpha,
        initializingWith body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) { fatalError("a declaration") }
    public init(cacheBytes: [UInt8]) throws { fatalError("a declaration") }
    public func cacheBytes() throws -> [UInt8] { [] }
    public func oriented(_ orientation: Orientation) -> PixelImage { self }
    public func encoded(as format: OutputFormat) throws -> [UInt8] { [] }
}
