#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

@Suite struct EmbeddedPreviewTests {
    /// A photo as cameras store it: a grey picture, whose Exif block carries a preview in four colours.
    private struct Photo {
        static let size = PixelSize(width: 96, height: 64)
        static let previewSize = PixelSize(width: 48, height: 32)
        let bytes: [UInt8]
        let preview: [UInt8]

        /// - Parameters:
        ///   - orientation: What the file says of its pixels.
        ///   - inner: What the preview's own header says of them.
        init(_ orientation: Int = 1, inner: Int = 1, previewSize: PixelSize = Photo.previewSize) throws {
            var colors = PixelImage(size: previewSize, color: .black)
            let quadrants: [[UInt8]] = [[220, 30, 30], [30, 200, 30], [30, 30, 220], [230, 230, 230]]
            let stride = colors.bytesPerRow
            colors.withUnsafeMutableBytes { pixels in
                for y in 0..<previewSize.height {
                    for x in 0..<previewSize.width {
                        let quadrant = y / (previewSize.height / 2) * 2 + x / (previewSize.width / 2)
                        for channel in 0..<3 { pixels[y * stride + x * 4 + channel] = quadrants[quadrant][channel] }
                    }
                }
            }
            let encoder = LibJPEGEncoder()
            var options = EncodeOptions()
            options.metadata = ImageMetadata(exif: Photo.exif(inner, preview: []))
            preview = try encoder.encode(colors, quality: 1, options: options)
            options.metadata = ImageMetadata(exif: Photo.exif(orientation, preview: preview))
            let gray = PixelImage(size: Photo.size, color: PixelColor(red: 128, green: 128, blue: 128))
            bytes = try encoder.encode(gray, quality: 0.9, options: options)
        }

        private static func exif(_ orientation: Int, preview: [UInt8]) -> [UInt8] {
            var exif = ExifSample()
            exif.orientation = orientation
            exif.preview = preview
            return exif.bytes
        }

        /// Bytes up to the picture's own samples, the preview among them.
        var head: [UInt8] {
            let scan = bytes.indices.dropLast().last { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA } ?? bytes.count
            return Array(bytes[..<min(scan + 14, bytes.count)])
        }
    }

    private static let options = DecodeOptions(allowsEmbeddedPreview: true)

    /// The picture shown for the preview when no more than that has arrived.
    private func arrivingPreview(_ photo: Photo, at resizer: ImageResizer, _ decoder: ImageDecoder) async throws
        -> PixelImage?
    {
        let (chunks, continuation) = AsyncStream<[UInt8]>.makeStream()
        continuation.yield(photo.head)
        var shown: PixelImage?
        for try await arriving in decoder.images(arrivingIn: chunks, name: "photo", at: resizer) {
            if arriving.stage == .complete { break }
            #expect(arriving.stage == .embeddedPreview)
            shown = arriving.image
            continuation.yield(Array(photo.bytes.dropFirst(photo.head.count)))
            continuation.finish()
        }
        return shown
    }

    @Test(arguments: 1...8, [1, 3, 6])
    func aPreviewIsTurnedOnceLikeThePictureWhateverItsOwnHeaderSays(_ value: Int, _ inner: Int) async throws {
        let photo = try Photo(value, inner: inner)
        let orientation = try #require(Orientation(rawValue: value))
        let decoder = ImageDecoder(isolation: .inProcess)
        let stored = try decoder.decode(.bytes(Photo(inner: 1).preview))
        let resizer = ImageResizer.fit(30)
        let expected = try resizer.resize(stored.oriented(orientation))
        let whole = try decoder.decode(.bytes(photo.bytes), at: resizer, options: Self.options)
        #expect(whole.size == expected.size)
        for (x, y) in [(3, 3), (whole.width - 4, 3), (3, whole.height - 4), (whole.width - 4, whole.height - 4)] {
            let (a, b) = (whole[x, y], expected[x, y])
            let error = abs(Int(a.red) - Int(b.red)) + abs(Int(a.green) - Int(b.green)) + abs(Int(a.blue) - Int(b.blue))
            #expect(error < 20, "\(a) for \(b) at \(x), \(y)")
        }
        #expect(try await arrivingPreview(photo, at: resizer, decoder) == whole)
    }

    /// Notes every call and is cancelled in the middle of it.
    private final class CancelledDecoder: ImageDecoding {
        let formats: Set<ImageFormat> = [.jpeg]
        let sizes = Locked<[PixelSize]>([])

        func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
            sizes.withLock { $0.append(request.info.storedSize) }
            throw .cancelled(input: source.name)
        }

        var decoder: ImageDecoder {
            ImageDecoder(
                limits: .standard, isolation: .inProcess, codecs: .standard(decoding: [self]), pool: .shared)
        }
    }

    @Test func cancellingWhileThePreviewIsDecodedEndsTheDecode() throws {
        let probe = CancelledDecoder()
        let photo = try Photo()
        #expect(throws: ImageError.cancelled(input: "photo")) {
            try probe.decoder.decode(.bytes(photo.bytes, name: "photo"), at: .fit(30), options: Self.options)
        }
        #expect(probe.sizes.withLock { $0 } == [Photo.previewSize])
    }

    @Test func cancellingWhileThePreviewOfAnArrivingFileIsDecodedEndsTheSequence() async throws {
        let probe = CancelledDecoder()
        let photo = try Photo()
        let (chunks, continuation) = AsyncStream<[UInt8]>.makeStream()
        continuation.yield(photo.bytes)
        continuation.finish()
        await #expect(throws: CancellationError.self) {
            for try await _ in probe.decoder.images(arrivingIn: chunks, name: "photo", at: .fit(30)) {}
        }
        #expect(probe.sizes.withLock { $0 } == [Photo.previewSize])
    }

    @Test func aPreviewBeyondTheLimitsIsPassedOver() async throws {
        // Of the picture's shape, and larger than it.
        let photo = try Photo(previewSize: PixelSize(width: 192, height: 128))
        var limits = ImageLimits.standard
        limits.maximumPixels = Photo.size.pixelCount
        let decoder = ImageDecoder(limits: limits, isolation: .inProcess)
        let image = try decoder.decode(.bytes(photo.bytes), at: .fit(30), options: Self.options)
        #expect(image[3, 3] == PixelColor(red: 128, green: 128, blue: 128))
        let (chunks, continuation) = AsyncStream<[UInt8]>.makeStream()
        continuation.yield(photo.bytes)
        continuation.finish()
        for try await arriving in decoder.images(arrivingIn: chunks, at: .fit(30)) {
            #expect(arriving.stage != .embeddedPreview)
        }
    }
}
#endif
