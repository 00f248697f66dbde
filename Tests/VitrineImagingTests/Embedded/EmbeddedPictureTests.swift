#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrineJPEG

/// Files that are shown by a picture inside them, with the raw files of Fujifilm as the simplest of them.
@Suite struct EmbeddedPictureTests {
    /// A JPEG file of one colour.
    static func jpeg(
        _ width: Int, _ height: Int, _ color: PixelColor = PixelColor(red: 200, green: 60, blue: 20), orientation: Int? = nil
    ) throws -> [UInt8] {
        var options = EncodeOptions()
        if let orientation {
            var exif = ExifSample()
            exif.orientation = orientation
            options.metadata = ImageMetadata(exif: exif.bytes)
        }
        return try LibJPEGEncoder().encode(
            PixelImage(size: PixelSize(width: width, height: height), color: color), quality: 0.95, options: options)
    }

    /// A picture whose header is whole, and whose pixels are not all there.
    static func damaged(_ width: Int, _ height: Int) throws -> [UInt8] {
        let noise = PixelImage(width: width, height: height, alpha: .opaque) { pixels in
            for i in pixels.indices { pixels[i] = i % 4 == 3 ? 255 : UInt8(truncatingIfNeeded: i &* i &* 31 >> 3) }
        }
        let bytes = try LibJPEGEncoder().encode(noise, quality: 0.95, options: EncodeOptions())
        return Array(bytes.dropLast(bytes.count / 4))
    }

    /// A file with the JPEG behind its header; `count` overrides its length.
    static func raf(_ jpeg: [UInt8], offset: Int = 160, count: Int? = nil) -> [UInt8] {
        func word(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        var file = Array("FUJIFILMCCD-RAW 0201FF383501Fine made".utf8)
        file += [UInt8](repeating: 0, count: 84 - file.count) + word(offset) + word(count ?? jpeg.count)
        file += [UInt8](repeating: 0, count: 160 - file.count)
        return file + jpeg + [UInt8](repeating: 7, count: 4_000)
    }

    static func color(_ image: PixelImage) -> [Int] {
        image.withUnsafeBytes { bytes in
            let middle = image.height / 2 * image.bytesPerRow + image.width / 2 * 4
            return (0..<3).map { Int(bytes[middle + $0]) }
        }
    }

    static func isClose(_ image: PixelImage, _ color: PixelColor) -> Bool {
        let wanted = [Int(color.red), Int(color.green), Int(color.blue)]
        return zip(Self.color(image), wanted).allSatisfy { abs($0 - $1) <= 12 }
    }

    private let decoder = ImageDecoder(isolation: .inProcess)

    private func error(_ bytes: [UInt8]) -> ImageError? {
        do {
            _ = try decoder.decode(.bytes(bytes, name: "made.raf"), at: .fit(40))
            return nil
        } catch {
            return error
        }
    }

    @Test func headerIsThatOfThePictureWithTheContainersFormat() throws {
        let info = try ImageInfo(of: .bytes(Self.raf(try Self.jpeg(300, 200, orientation: 6))))
        #expect(info.format == .raf && info.format.mediaType == "image/x-fuji-raf")
        #expect(info.storedSize == PixelSize(width: 300, height: 200) && info.orientation == .right)
        #expect(info.size == PixelSize(width: 200, height: 300) && info.frameCount == 1)
        #expect(ImageFormat(rawValue: "raf") == .raf)
    }

    @Test func pictureIsDecodedUprightAtTheRequestedSize() throws {
        let file = Self.raf(try Self.jpeg(300, 200, orientation: 6))
        for (resizer, size) in [
            (ImageResizer.fit(60), PixelSize(width: 40, height: 60)), (.none, PixelSize(width: 200, height: 300)),
        ] {
            let image = try decoder.decode(.bytes(file), at: resizer)
            #expect(image.size == size)
            #expect(Self.isClose(image, PixelColor(red: 200, green: 60, blue: 20)))
        }
        var options = DecodeOptions()
        options.region = PixelRect(x: 0, y: 0, width: 100, height: 100)
        let corner = try decoder.decode(.bytes(file), at: .none, options: options)
        #expect(corner.size == PixelSize(width: 100, height: 100))
    }

    @Test func metadataIsThatOfThePicture() throws {
        let metadata = try ImageMetadata(of: .bytes(Self.raf(try Self.jpeg(30, 20, orientation: 8))))
        let exif = try #require(metadata.exif)
        #expect(ExifBlock(ByteReader(ByteSource(bytes: exif, name: "Exif")), 0..<exif.count)?.orientation == .left)
    }

    @Test func fileWithoutAPictureIsUnsupported() throws {
        let jpeg = try Self.jpeg(60, 40)
        // Lossless JPEG holds sensor data.
        var lossless = jpeg
        let frame = try #require(lossless.indices.dropLast().first { lossless[$0] == 0xFF && lossless[$0 + 1] == 0xC0 })
        lossless[frame + 1] = 0xC3
        let files: [[UInt8]] = [
            Self.raf([]), Self.raf(jpeg, offset: 1 << 30), Self.raf(jpeg, count: 1 << 30), Self.raf(jpeg, offset: 161),
            Self.raf(lossless), Self.raf(jpeg, count: 3),
            // The file itself, in place of a part of it.
            Self.raf(jpeg, offset: 0, count: 160 + jpeg.count + 4_000),
        ]
        for file in files {
            guard case .unsupported(_, let reason)? = error(file) else {
                Issue.record("no error for a file of \(file.count) bytes: \(String(describing: error(file)))")
                continue
            }
            #expect(reason.contains("no preview"))
        }
        #expect(error(Array(Self.raf(jpeg).prefix(80)))?.caseName == "truncated")
    }

    @Test func pictureIsNeverAFileThatHoldsAnother() throws {
        let inner = Self.raf(try Self.jpeg(60, 40))
        #expect(error(Self.raf(inner))?.caseName == "unsupported")
    }

    @Test func limitsAreThoseOfThePicture() throws {
        let file = Self.raf(try Self.jpeg(300, 200))
        var limits = ImageLimits.standard
        limits.maximumPixels = 50_000
        #expect(throws: ImageError.self) {
            try ImageDecoder(limits: limits, isolation: .inProcess).decode(.bytes(file), at: .fit(20))
        }
        limits = .standard
        // Of the file only the picture is read.
        limits.maximumInputBytes = file.count - 3_000
        #expect(try ImageDecoder(limits: limits, isolation: .inProcess).decode(.bytes(file), at: .fit(20)).width == 20)
        limits.maximumInputBytes = 100
        #expect(throws: ImageError.self) {
            try ImageDecoder(limits: limits, isolation: .inProcess).decode(.bytes(file), at: .fit(20))
        }
    }

    @Test func formatIsFoundByContentAndNamesOfBuiltInOnesAreTaken() throws {
        let file = Self.raf(try Self.jpeg(30, 20))
        #expect(ImageFormat.detect(Array(file.prefix(64))) == .raf)
        #expect(decoder.canDecode(.raf) && ImageFormat.known.contains(.raf) && !ImageFormat.pictures.contains(.raf))
        let names = Codecs.standard.holdingFormats.map(\.rawValue) + ImageFormat.pictures.map(\.rawValue)
        #expect(Set(names).count == names.count)
        // The kernel knows the names without the codecs.
        #expect(Set(Codecs.standard.holdingFormats) == Set(ImageFormat.known.filter(\.holdsPictures)))
    }

    @Test func everyTruncationIsAnAnswer() throws {
        let file = Array(Self.raf(try Self.jpeg(40, 30)).dropLast(4_000))
        for count in 0..<file.count { _ = error(Array(file.prefix(count))) }
        #expect(error(file) == nil)
    }

    @Test func pictureIsDecodedInAWorkerIfEveryPictureIs() throws {
        let file = Self.raf(try Self.jpeg(300, 200))
        let folder = try TemporaryDirectory()
        let path = folder.path + "/made.raf"
        try Data(file).write(to: URL(filePath: path))
        let decoder = ImageDecoder(
            limits: .standard, isolation: .always, codecs: .standard(decoding: []), pool: WorkerFixture.pool(1))
        for input in [ImageInput.file(path), .bytes(file)] {
            let image = try decoder.decode(input, at: .fit(30))
            #expect(image.size == PixelSize(width: 30, height: 20))
            #expect(Self.isClose(image, PixelColor(red: 200, green: 60, blue: 20)))
        }
    }

    @Test func partOfASourceIsASourceOfItsOwn() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/numbers"
        let bytes = (0..<200).map { UInt8($0) }
        try Data(bytes).write(to: URL(filePath: path))
        for whole in [try ByteSource(.file(path)), ByteSource(bytes: bytes, name: path)] {
            let part = ByteSource(50..<150, of: whole)
            #expect(part.count == 100 && part.name == path && part.descriptor == nil)
            #expect(try part.allBytes() == Array(50..<150))
            #expect(try part.bytes(at: 90, count: 50) == Array(140..<150))
            for offset in [100, -1] { #expect(try part.bytes(at: offset, count: 1).isEmpty) }
            let inner = ByteSource(10..<1_000, of: part)
            #expect(inner.count == 90)
            #expect(try inner.bytes(at: 0, count: 2) == [60, 61])
            #expect(ByteSource(500..<600, of: whole).count == 0)
            let copy = try part.withDescriptor()
            #expect(copy.descriptor != nil)
            #expect(try copy.allBytes() == Array(50..<150))
        }
    }
}
#endif
