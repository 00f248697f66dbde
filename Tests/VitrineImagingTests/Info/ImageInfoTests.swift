import Foundation
import Testing
import VitrineImaging

/// Durations count a delay of 0 as 0.1 s, as browsers do, where Pillow adds nothing: 2.83 for its 2.73.
/// Headers against what Pillow 13.0, exiftool 12.57, jxlinfo 0.7, heif-info 1.15 and vipsheader 8.14 say of them.
struct ImageInfoTests {
    struct Expected: Sendable, CustomTestStringConvertible {
        var file: String
        var format: ImageFormat
        var width: Int
        var height: Int
        var orientation = 1
        var profileBytes = 0
        var frames = 1
        var seconds: Double?
        var loops: Int?
        var alpha = false
        var model = ImageInfo.ColorModel.yCbCr
        var depth = 8
        var progressive = false
        var preview: [Int] = []  // offset and count
        var testDescription: String { file }
    }

    static let corpus: [Expected] = [
        .init(
            file: "jpeg/leica-t-16mp.jpg", format: .jpeg, width: 4928, height: 3264, orientation: 8,
            preview: [11472, 2935]),
        .init(file: "jpeg/nikon-d3100-14mp.jpg", format: .jpeg, width: 4608, height: 3072, preview: [36976, 11912]),
        .init(
            file: "jpeg/panasonic-lx7-mpo.jpg", format: .jpeg, width: 3648, height: 2736, preview: [3_428_864, 718_934]),
        .init(
            file: "jpeg/progressive.jpg", format: .jpeg, width: 250, height: 250, progressive: true,
            preview: [1368, 5648]),
        .init(file: "jpeg/sharp-2569067123_aca715a2ee_o.jpg", format: .jpeg, width: 2725, height: 2225),
        .init(file: "jpeg/sharp-giant-image.jpg", format: .jpeg, width: 20000, height: 14000, model: .gray),
        .init(file: "jpeg/vips-sample.jpg", format: .jpeg, width: 290, height: 442, profileBytes: 564),
        .init(file: "cmyk-icc/gain-map.jpg", format: .jpeg, width: 3840, height: 2160, profileBytes: 588),
        .init(
            file: "cmyk-icc/pillow-pil_sample_cmyk.jpg", format: .jpeg, width: 100, height: 100, model: .ycck,
            preview: [314, 2191]),
        .init(
            file: "gif/pillow-dispose_bgnd.gif", format: .gif, width: 100, height: 100, frames: 5, seconds: 5, loops: 0,
            alpha: true, model: .palette),
        .init(file: "gif/pillow-hopper.gif", format: .gif, width: 128, height: 128, model: .palette),
        .init(
            file: "gif/pillow-iss634.gif", format: .gif, width: 245, height: 245, frames: 42, seconds: 2.83, loops: 0,
            model: .palette),
        .init(
            file: "gif/sharp-animated-loop-3.gif", format: .gif, width: 370, height: 285, frames: 10, seconds: 42,
            loops: 3, model: .palette),
        .init(
            file: "gif/sharp-rotating-squares.gif", format: .gif, width: 80, height: 80, frames: 30, seconds: 0.9,
            loops: 0, alpha: true, model: .palette),
        .init(
            file: "webp/coolpix-10mp.webp", format: .webp, width: 3648, height: 2736, orientation: 6,
            preview: [419_334, 6044]),
        .init(file: "webp/pillow-hopper.webp", format: .webp, width: 128, height: 128),
        .init(
            file: "webp/pillow-iss634.webp", format: .webp, width: 245, height: 245, frames: 42, seconds: 2.83,
            loops: 0, alpha: true, model: .rgb),
        .init(file: "webp/sharp-5_webp_a.webp", format: .webp, width: 300, height: 300, alpha: true),
        .init(
            file: "webp/sharp-animated-loop-3.webp", format: .webp, width: 370, height: 285, frames: 10, seconds: 42,
            loops: 3, alpha: true),
        .init(file: "webp/sharp-big-height.webp", format: .webp, width: 13, height: 169, frames: 97, loops: 0),
        .init(
            file: "webp/sharp-rotating-squares.webp", format: .webp, width: 80, height: 80, frames: 9, seconds: 0.9,
            loops: 0, alpha: true),
        .init(file: "tiff/sharp-8bit_depth.tiff", format: .tiff, width: 21, height: 21, model: .gray),
        .init(file: "tiff/sharp-bonne.geo.tif", format: .tiff, width: 200, height: 200, model: .gray),
        .init(
            file: "tiff/sharp-tifftag-photoshop.tiff", format: .tiff, width: 317, height: 211, profileBytes: 560,
            model: .rgb, depth: 16),
        .init(file: "tiff/sharp-uncompressed_tiff.tiff", format: .tiff, width: 246, height: 345, model: .rgb),
        .init(file: "tiff/vips-sample.tif", format: .tiff, width: 290, height: 442, model: .rgb, depth: 16),
        .init(file: "avif/linku-fox.profile0.8bpc.yuv420.avif", format: .avif, width: 1204, height: 800),
        .init(file: "avif/linku-fox.profile1.10bpc.yuv444.avif", format: .avif, width: 1204, height: 800, depth: 10),
        .init(file: "avif/linku-hato.profile0.8bpc.yuv420.avif", format: .avif, width: 3082, height: 2048),
        .init(file: "avif/sharp-pitm.avif", format: .avif, width: 4096, height: 800),
        .init(file: "heic/IMG_5195.heic", format: .heic, width: 2566, height: 3313, profileBytes: 548),
        .init(file: "heic/cheers.heic", format: .heic, width: 1440, height: 960),
        .init(
            file: "jxl/animation_spline.jxl", format: .jxl, width: 320, height: 320, frames: 60, seconds: 1.2, loops: 0,
            model: .rgb),
        .init(file: "jxl/bike.jxl", format: .jxl, width: 2048, height: 2560, model: .rgb),
        .init(file: "jxl/cafe.jxl", format: .jxl, width: 1280, height: 1600, profileBytes: 896, model: .rgb),
        .init(
            file: "jxl/cmyk_layers.jxl", format: .jxl, width: 512, height: 512, profileBytes: 557168, alpha: true,
            model: .cmyk),
        .init(file: "jxl/grayscale.jxl", format: .jxl, width: 200, height: 200, profileBytes: 912, model: .gray),
        .init(file: "svg/sharp-check.svg", format: .svg, width: 100, height: 100, alpha: true, model: .rgb),
        .init(file: "svg/sharp-circle.svg", format: .svg, width: 8, height: 8, alpha: true, model: .rgb),
        .init(file: "svg/sharp-struct-image-04-t.svg", format: .svg, width: 480, height: 360, alpha: true, model: .rgb),
    ]

    static let fixtures: [Expected] = [
        .init(file: "Info/plain.bmp", format: .bmp, width: 48, height: 32, model: .rgb),
        .init(file: "Info/palette.bmp", format: .bmp, width: 48, height: 32, model: .palette),
        .init(file: "Info/picture.jp2", format: .jp2, width: 48, height: 32, model: .rgb),
        .init(file: "Info/picture.j2k", format: .jp2, width: 48, height: 32, model: .rgb),
        .init(file: "Info/alpha.jp2", format: .jp2, width: 48, height: 32, alpha: true, model: .rgb),
        .init(file: "Info/icon.ico", format: .ico, width: 48, height: 48, frames: 3, alpha: true, model: .rgb),
        .init(file: "Info/icon-bmp.ico", format: .ico, width: 32, height: 32, frames: 2, alpha: true, model: .rgb),
        .init(
            file: "Info/animated.png", format: .png, width: 24, height: 16, frames: 4, seconds: 1, loops: 3, model: .rgb
        ),
        .init(file: "Info/animated.webp", format: .webp, width: 24, height: 16, frames: 4, seconds: 1, loops: 3),
        .init(file: "Info/sequence.avif", format: .avif, width: 24, height: 16, frames: 4, seconds: 0.4, loops: 0),
        .init(file: "Info/pages.tif", format: .tiff, width: 24, height: 16, frames: 4, model: .rgb),
        .init(file: "Info/big.tif", format: .tiff, width: 24, height: 16, model: .rgb),
        .init(file: "Info/thumbnail.jpg", format: .jpeg, width: 48, height: 32, orientation: 6),
        .init(file: "Info/picture.png", format: .png, width: 48, height: 32, orientation: 6, model: .rgb),
        .init(file: "Info/picture.webp", format: .webp, width: 48, height: 32, orientation: 6),
        .init(file: "GIF/interlaced.gif", format: .gif, width: 50, height: 37, model: .palette, progressive: true),
    ]

    func check(_ info: ImageInfo, _ expected: Expected) {
        #expect(info.format == expected.format)
        #expect(info.storedSize == PixelSize(width: expected.width, height: expected.height))
        #expect(info.orientation.rawValue == expected.orientation)
        #expect((info.colorProfile?.count ?? 0) == expected.profileBytes)
        #expect(info.frameCount == expected.frames)
        if let seconds = expected.seconds { #expect(abs((info.duration ?? -1) - seconds) < 0.0001) }
        #expect(info.loopCount == expected.loops)
        #expect(info.hasAlpha == expected.alpha)
        #expect(info.colorModel == expected.model)
        #expect(info.bitDepth == expected.depth)
        #expect(info.isProgressive == expected.progressive)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: corpus)
    func agreesWithOtherToolsOnTheCorpus(_ expected: Expected) throws {
        let info = try ImageInfo(of: .file(#require(Corpus.file(expected.file))))
        check(info, expected)
        let first = info.embeddedPreviews.first
        #expect(first.map { [$0.offset, $0.count] } ?? [] == expected.preview || expected.format == .heic)
    }

    @Test(arguments: fixtures)
    func readsEveryFixture(_ expected: Expected) throws {
        let path = try Fixture.path(expected.file)
        check(try ImageInfo(of: .file(path)), expected)
        // From memory the same, and by content alone.
        let bytes = try Fixture.bytes(expected.file)
        check(try ImageInfo(of: .bytes(bytes)), expected)
        #expect(ImageFormat.detect(Array(bytes.prefix(4096))) == expected.format)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: 1...8)
    func readsAllEightExifOrientations(_ value: Int) throws {
        let info = try ImageInfo(of: .file(#require(Corpus.file("exif-orientation/landscape_\(value).jpg"))))
        #expect(info.orientation.rawValue == value)
        #expect(info.size == PixelSize(width: 1800, height: 1200))
    }

    @Test func aFileThatNamesNoDepthHasOneBit() throws {
        var bytes = try Fixture.bytes("Info/icon-bmp.ico")
        // The bits a pixel of both pictures.
        for picture in [0x26, 0x44E] { bytes[picture + 14] = 0 }
        #expect(try ImageInfo(of: .bytes(bytes)).bitDepth == 1)
        var info = ImageInfo(format: .ico, storedSize: PixelSize(4))
        info.bitDepth = .max
        #expect(info.bitDepth == 64)
    }

    @Test(arguments: 1...8)
    func combinesTurningAndMirroringOfAVIF(_ value: Int) throws {
        let info = try ImageInfo(of: .file(try Fixture.path("Info/turned-\(value).avif")))
        #expect(info.orientation.rawValue == value)
        #expect(info.storedSize == PixelSize(width: 32, height: 16))
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func findsTheThumbnailOfHEIC() throws {
        let info = try ImageInfo(of: .file(#require(Corpus.file("heic/cheers.heic"))))
        #expect(info.embeddedPreviews.map(\.size) == [PixelSize(width: 240, height: 160)])
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func namesTheProfileOfAVIF() throws {
        let info = try ImageInfo(of: .file(#require(Corpus.file("avif/vips-avif-orientation-6.avif"))))
        #expect(info.storedSize == PixelSize(width: 3024, height: 4032))
        #expect(info.orientation == .up)
        #expect(info.colorProfileName == "Display P3")
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func readsSizeDepthAndColourOfPngSuite() throws {
        for path in Corpus.files(in: "corpus/pngsuite") where path.hasSuffix(".png") {
            let name = URL(filePath: path).lastPathComponent
            guard !name.hasPrefix("x"), name.count == 12 else { continue }
            let info = try ImageInfo(of: .file(path))
            let digits = Array(name.dropLast(4))
            // Names of PngSuite: s01…s40 give the side, cdf, cdh, cds, cdu test densities; all others are 32 × 32.
            var size = PixelSize(32)
            if digits[0] == "s", let side = Int(String(digits[1...2])) { size = PixelSize(side) }
            if name.hasPrefix("cdf") { size = PixelSize(width: 8, height: 32) }
            if name.hasPrefix("cdh") { size = PixelSize(width: 32, height: 8) }
            if name.hasPrefix("cds") { size = PixelSize(8) }
            if name != "PngSuite.png" { #expect(info.storedSize == size, "\(name)") }
            #expect(info.bitDepth == Int(String(digits[6...7])), "\(name)")
            #expect(info.isProgressive == (digits[3] == "i"), "\(name)")
            let models: [Character: ImageInfo.ColorModel] = [
                "0": .gray, "2": .rgb, "3": .palette, "4": .gray, "6": .rgb,
            ]
            #expect(info.colorModel == models[digits[4]], "\(name)")
        }
    }

    @Test func namesWhatIsNoPicture() {
        #expect(throws: ImageError.empty(input: "none")) { try ImageInfo(of: .bytes([], name: "none")) }
        #expect(throws: ImageError.notAnImage(input: "text")) {
            try ImageInfo(of: .bytes(Array("hello, world".utf8), name: "text"))
        }
        #expect(throws: ImageError.truncated(input: "cut")) {
            try ImageInfo(of: .bytes([0xFF, 0xD8, 0xFF, 0xE0, 0, 16], name: "cut"))
        }
        #expect(throws: ImageError.notAnImage(input: "html")) {
            try ImageInfo(of: .bytes(Array("<!-- x --><html></html>".utf8), name: "html"))
        }
        #expect { try ImageInfo(of: .file("/nonexistent/picture.jpg")) } throws: {
            if case ImageError.unreadable(input: "/nonexistent/picture.jpg", _) = $0 { true } else { false }
        }
    }
}
