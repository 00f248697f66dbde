// A stand-in for Core Graphics with 8-bit RGBA only. Points and rectangles come from Foundation.
@_exported import Foundation

public typealias CFString = NSString

public final class CGColorSpace {
    nonisolated(unsafe) public static let sRGB: CFString = "kCGColorSpaceSRGB"
    public init?(name: CFString) {}
}

public enum CGImageAlphaInfo: UInt32, Sendable {
    case none, premultipliedLast, premultipliedFirst, last, first, noneSkipLast, noneSkipFirst, alphaOnly
}

public struct CGBitmapInfo: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public enum CGColorRenderingIntent: Int32, Sendable { case defaultIntent }
public enum CGBlendMode: Int32, Sendable { case normal, copy = 17 }

public typealias CGDataProviderReleaseDataCallback =
    @convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer, Int) -> Void

public final class CGDataProvider {
    let (info, data, size): (UnsafeMutableRawPointer?, UnsafeRawPointer, Int)
    let release: CGDataProviderReleaseDataCallback

    public init?(
        dataInfo info: UnsafeMutableRawPointer?, data: UnsafeRawPointer, size: Int,
        releaseData: CGDataProviderReleaseDataCallback
    ) {
        (self.info, self.data, self.size, release) = (info, data, size, releaseData)
    }

    deinit { release(info, data, size) }
}

public final class CGImage {
    public let (width, height, bytesPerRow): (Int, Int, Int)
    public let alphaInfo: CGImageAlphaInfo
    let provider: CGDataProvider

    public init?(
        width: Int, height: Int, bitsPerComponent: Int, bitsPerPixel: Int, bytesPerRow: Int, space: CGColorSpace,
        bitmapInfo: CGBitmapInfo, provider: CGDataProvider, decode: UnsafePointer<CGFloat>?, shouldInterpolate: Bool,
        intent: CGColorRenderingIntent
    ) {
        guard bitsPerComponent == 8, bitsPerPixel == 32, let info = CGImageAlphaInfo(rawValue: bitmapInfo.rawValue),
            bytesPerRow >= 4 * width, provider.size >= bytesPerRow * (height - 1) + 4 * width
        else { return nil }
        (self.width, self.height, self.bytesPerRow, alphaInfo) = (width, height, bytesPerRow, info)
        self.provider = provider
    }

    /// For tests: the address of the pixels.
    public var stubPixels: UnsafeRawPointer { provider.data }
}

public final class CGContext {
    let (data, bytesPerRow): (UnsafeMutableRawPointer, Int)

    public init?(
        data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
        space: CGColorSpace, bitmapInfo: UInt32
    ) {
        guard let data else { return nil }
        (self.data, self.bytesPerRow) = (data, bytesPerRow)
    }

    public func setBlendMode(_ mode: CGBlendMode) {}

    public func draw(_ image: CGImage, in rect: CGRect) {
        for row in 0..<image.height {
            (data + row * bytesPerRow).copyMemory(
                from: image.stubPixels + row * image.bytesPerRow, byteCount: 4 * image.width)
        }
    }
}
