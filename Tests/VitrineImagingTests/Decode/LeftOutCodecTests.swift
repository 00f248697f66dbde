import Testing
import VitrineImaging
import VitrineRaster
import VitrineSVG

/// Builds without some of the codecs.
@Suite struct LeftOutCodecTests {
    /// The codecs without that of a format.
    private func codecs(without format: ImageFormat) -> Codecs {
        Codecs(Codecs.standard.all.filter { !$0.formats.contains(format) })
    }

    private func header(_ name: String, _ codecs: Codecs) throws(ImageError) -> ImageHeader {
        let bytes = Array("bytes of a codec that is not here".utf8)
        return try InputReader(codecs: codecs).header(of: ByteSource(bytes: bytes, name: name), limits: .standard)
    }

    @Test func everyFormatNamesTheModuleOfItsCodec() throws {
        for codec in Codecs.standard.all where !codec.formats.isEmpty {
            // Formats that only the worker decodes.
            let headers: [ImageFormat: Any.Type] = [
                .tiff: TIFFHeaderReader.self, .jp2: JP2HeaderReader.self, .svg: SVGHeaderReader.self,
                .webp: WebPHeaderReader.self,
            ]
            let decoder: Any.Type? = codec.decoders.first.map { type(of: $0) }
            let reader: Any.Type? = codec.locator ?? decoder ?? headers[codec.formats[0]]
            let module = String(String(reflecting: try #require(reader)).prefix { $0 != "." })
            for format in codec.formats { #expect(format.module == module, "\(format)") }
        }
        #expect(Set(Codecs.standard.formats) == Set(ImageFormat.known))
        #expect(Set(ImageFormat.known).count == ImageFormat.known.count)
        #expect(ImageFormat("sun-raster").module == nil)
    }

    @Test(arguments: [
        (ImageFormat.jpeg, "VitrineJPEG"), (.png, "VitrinePNG"), (.avif, "VitrineHEIF"), (.jxl, "VitrineJXL"),
        (.svg, "VitrineSVG"), (.bmp, "VitrineRaster"), (.epub, "VitrineContainers"),
    ])
    func filesOfAFormatThatWasLeftOutAreRefusedWithItsModule(format: ImageFormat, module: String) {
        for ending in format.fileExtensions {
            let name = "https://example.org/picture.\(ending.uppercased())?size=3"
            let error = ImageError.unsupported(input: name, reason: "\(module) is not part of this build")
            #expect(throws: error) { try header(name, codecs(without: format)) }
            #expect(throws: ImageError.notAnImage(input: name)) { try header(name, .standard) }
        }
        #expect(throws: ImageError.notAnImage(input: "picture")) { try header("picture", codecs(without: format)) }
    }

    @Test func recordingsAreRefusedWithTheModuleOfTheirContainers() {
        let error = ImageError.unsupported(input: "song.MP3", reason: "VitrineContainers is not part of this build")
        #expect(throws: error) { try header("song.MP3", .pictures) }
        #expect(throws: ImageError.notAnImage(input: "song.mp3")) { try header("song.mp3", .standard) }
    }

    @Test func aFileOfAnotherFormatIsReadUnderAnyName() throws {
        let bytes = try PixelImage(size: PixelSize(3), color: .white).encoded(as: .png)
        let source = ByteSource(bytes: bytes, name: "picture.jxl")
        let reader = InputReader(codecs: codecs(without: .jxl))
        #expect(try reader.header(of: source, limits: .standard).info.format == .png)
    }
}
