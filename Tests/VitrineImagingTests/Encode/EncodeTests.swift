import Testing
import VitrineImaging

struct EncodeTests {
    /// Writes its format's name, the quality in percent, and as many bytes as the quality asks for.
    private struct FakeEncoder: ImageEncoding {
        let format: ImageFormat

        func encode(_ image: PixelImage, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
            Array("\(format.rawValue) \(Int((quality * 100).rounded()))".utf8)
                + [UInt8](repeating: 0, count: Int(quality * 1_000) + 100)
        }
    }

    /// The codecs with such encoders, and those of AVIF and JPEG XL with none.
    private let codecs = Codecs(
        [ImageFormat.jpeg, .png, .webp, .avif, .jxl].compactMap { format in
            var codec = Codecs.standard[format]
            codec?.encoders = [.jpeg, .png, .webp].contains(format) ? [FakeEncoder(format: format)] : []
            return codec
        })
    private let opaque = PixelImage(size: PixelSize(2), color: .white)
    private let clear = PixelImage(size: PixelSize(2), color: .clear)

    private func written(_ image: PixelImage, _ format: OutputFormat) throws -> String {
        let bytes = try image.encoded(as: format, options: EncodeOptions(), codecs: codecs)
        return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    @Test func automaticIsPNGOrWebPOnlyWhenAPixelIsNotOpaque() throws {
        #expect(try written(opaque, .automatic()) == "jpeg 80")
        #expect(try written(clear, .automatic()) == "png 80")
        #expect(try written(clear, .automatic(quality: 0.5, prefersWebP: true)) == "webp 50")
        // An alpha channel that is full everywhere is no reason for PNG.
        #expect(try written(opaque.converted(to: .straight), .automatic(quality: 1, prefersWebP: true)) == "jpeg 100")
        var one = opaque.converted(to: .premultiplied)
        one.withUnsafeMutableBytes { $0[15] = 254 }
        #expect(try written(one, .automatic()) == "png 80")
    }

    @Test func qualityIsClamped() throws {
        #expect(try written(opaque, .jpeg(quality: 7)) == "jpeg 100")
        #expect(try written(opaque, .jpeg(quality: -.infinity)) == "jpeg 0")
        #expect(try written(opaque, .jpeg(quality: 0.75)) == "jpeg 75")
        #expect(throws: ImageError.invalidRequest(reason: "a quality must be a number")) {
            try opaque.encoded(as: .webp(quality: .nan), options: EncodeOptions(), codecs: codecs)
        }
    }

    @Test func missingEncodersAreNamed() {
        let missing = ImageError.encodingFailed(format: .avif, reason: "built without the trait SystemCodecs")
        #expect(throws: missing) { try opaque.encoded(as: .avif(), options: EncodeOptions(), codecs: codecs) }
        let worker = #expect(throws: ImageError.self) {
            try opaque.encoded(as: .jxl(), options: EncodeOptions(), codecs: codecs)
        }
        #expect("\(String(describing: worker))".contains("vitrine-worker"))
        let leftOut = ImageError.encodingFailed(format: .gif, reason: "VitrineRaster is not part of this build")
        #expect(throws: leftOut) { try opaque.encoded(as: .gif, options: EncodeOptions(), codecs: codecs) }
    }

    @Test func searchesTheBestQualityThatFits() throws {
        func encoded(_ format: OutputFormat, _ maximum: Int) throws(ImageError) -> [UInt8] {
            try opaque.encoded(as: format, maximumBytes: maximum, options: EncodeOptions(), codecs: codecs)
        }
        #expect(try encoded(.jpeg(quality: 0.9), 2_000).count == 1_007)
        let bytes = try encoded(.jpeg(quality: 0.9), 500)
        #expect(bytes.count <= 500 && bytes.count > 490)
        let png = ImageError.encodingFailed(format: .png, reason: "no quality gives 500 bytes or fewer")
        #expect(throws: png) { try encoded(.png, 500) }
        let tiny = ImageError.encodingFailed(format: .jpeg, reason: "no quality gives 50 bytes or fewer")
        #expect(throws: tiny) { try encoded(.jpeg(), 50) }
    }
}
