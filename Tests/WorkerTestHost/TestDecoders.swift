import Synchronization
import VitrineImaging

/// Gives one pixel and never gives back 16 MB that it has touched.
struct LeakingDecoder: ImageDecoding {
    private static let leakedBytes = 16 << 20
    /// Whoever keeps no address lets the compiler leave the memory out.
    private static let latest = Atomic<UInt>(0)

    let formats: Set<ImageFormat> = [.png]
    let needsIsolation = false

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        let leaked = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.leakedBytes)
        leaked.initialize(repeating: 1, count: Self.leakedBytes)
        Self.latest.store(UInt(bitPattern: leaked), ordering: .relaxed)
        return .onePixel
    }
}

/// Gives one pixel, after which the worker's patience is at an end.
struct FinalDecoder: ImageDecoding {
    private static let decoded = Atomic<Bool>(false)
    static var hasDecoded: Bool { decoded.load(ordering: .relaxed) }

    let formats: Set<ImageFormat> = [.png]
    let needsIsolation = false

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        Self.decoded.store(true, ordering: .relaxed)
        return .onePixel
    }
}

extension DecodedImage {
    fileprivate static var onePixel: DecodedImage {
        let plane = PixelPlane(width: 1, height: 1, channels: 1, storage: PixelStorage(zeroedByteCount: 1))
        return DecodedImage(planes: [plane], model: .gray)
    }
}
