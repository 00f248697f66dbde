#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Raw files of cameras, made here in the layouts that the makers use.
@Suite struct RawPreviewTests {
    /// Bytes in one byte order, with places that are filled in later.
    private struct Writer {
        var bytes: [UInt8] = []
        var isBigEndian = false

        init(_ text: String = "", isBigEndian: Bool = false) {
            bytes = Array(text.utf8)
            self.isBigEndian = isBigEndian
        }

        func encoded(_ value: Int, _ count: Int) -> [UInt8] {
            let little = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            return isBigEndian ? little.reversed() : little
        }
        mutating func u16(_ value: Int) { bytes += encoded(value, 2) }
        mutating func u32(_ value: Int) { bytes += encoded(value, 4) }
        mutating func pad(to count: Int) { bytes += [UInt8](repeating: 0, count: max(0, count - bytes.count)) }

        /// A directory; values of four bytes, or text or bytes that are put behind it.
        mutating func directory(_ fields: [(tag: Int, value: Value)], next: Int = 0, base: Int = 0) {
            u16(fields.count)
            let end = bytes.count + 12 * fields.count + 4
            var tail: [UInt8] = []
            for (tag, value) in fields {
                u16(tag)
                switch value {
                case .long(let number):
                    u16(4)
                    u32(1)
                    u32(number)
                case .short(let number):
                    u16(3)
                    u32(1)
                    bytes += encoded(number, 2) + [0, 0]
                case .blob(let type, let data):
                    u16(type)
                    u32(data.count)
                    if data.count <= 4 {
                        bytes += data + [UInt8](repeating: 0, count: 4 - data.count)
                    } else {
                        u32(end + tail.count - base)
                        tail += data + (data.count % 2 == 1 ? [0] : [])
                    }
                case .longs(let numbers):
                    u16(4)
                    u32(numbers.count)
                    u32(end + tail.count - base)
                    tail += numbers.flatMap { encoded($0, 4) }
                }
            }
            u32(next)
            bytes += tail
        }
    }

    private enum Value {
        case long(Int), short(Int), longs([Int])
        case blob(Int, [UInt8])

        static func text(_ text: String) -> Value { .blob(2, Array(text.utf8) + [0]) }
    }

    private static let red = PixelColor(red: 210, green: 40, blue: 30)
    private static let green = PixelColor(red: 30, green: 190, blue: 40)
    private static let blue = PixelColor(red: 30, green: 40, blue: 210)

    private let decoder = ImageDecoder(isolation: .inProcess)

    private func jpeg(_ width: Int, _ height: Int, _ color: PixelColor, orientation: Int? = nil) throws -> [UInt8] {
        try EmbeddedPictureTests.jpeg(width, height, color, orientation: orientation)
    }

    private func decode(_ file: [UInt8], _ resizer: ImageResizer) throws -> PixelImage {
        try decoder.decode(.bytes(file, name: "made"), at: resizer)
    }

    private func isColor(_ file: [UInt8], _ resizer: ImageResizer, _ color: PixelColor) throws -> Bool {
        EmbeddedPictureTests.isClose(try decode(file, resizer), color)
    }

    /// A Nikon file: a small preview in the maker's note, a large one in a subdirectory, sensor data beside them.
    private func nef(orientation: Int = 6) throws -> [UInt8] {
        let (small, large) = (try jpeg(60, 40, Self.green), try jpeg(300, 200, Self.red))
        var file = Writer("MM\0*", isBigEndian: true)
        file.u32(8)
        file.directory([
            (0x00FE, .long(1)), (0x010F, .text("NIKON CORPORATION")), (0x0112, .short(orientation)),
            (0x014A, .longs([300, 400])), (0x8769, .long(500)),
        ])
        file.pad(to: 300)
        file.directory([(0x0103, .short(6)), (0x0201, .long(2_000)), (0x0202, .long(large.count))])
        file.pad(to: 400)
        file.directory([
            (0x0100, .long(3_000)), (0x0101, .long(2_000)), (0x0103, .short(34_713)), (0x0106, .short(32_803)),
            (0x0111, .long(100)), (0x0117, .long(100)),
        ])
        file.pad(to: 500)
        var note = Writer("Nikon\0\u{2}\u{10}\0\0II*\0")
        note.u32(8)
        note.directory([(0x0011, .long(60))])
        note.pad(to: 70)
        note.directory([(0x0103, .short(6)), (0x0201, .long(130)), (0x0202, .long(small.count))])
        note.pad(to: 140)
        note.bytes += small
        file.directory([(0x927C, .blob(7, note.bytes))])
        #expect(file.bytes.count < 2_000)
        file.pad(to: 2_000)
        return file.bytes + large
    }

    // MARK: Choice

    @Test func smallestPreviewThatSufficesIsDecodedAndTheLargestDescribesTheFile() throws {
        let file = try nef()
        let info = try ImageInfo(of: .bytes(file))
        #expect(info.format == .nef && info.storedSize == PixelSize(width: 300, height: 200))
        #expect(info.orientation == .right)
        #expect(try isColor(file, .fit(60), Self.green))
        #expect(try isColor(file, .fit(30), Self.green))
        #expect(try isColor(file, .fit(61), Self.red))
        #expect(try isColor(file, .none, Self.red))
        #expect(try decode(file, .fit(60)).size == PixelSize(width: 40, height: 60))
        #expect(try decode(file, .crop(width: 40, height: 40)).size == PixelSize(width: 40, height: 40))
    }

    @Test func damagedPreviewIsReplacedByTheNext() throws {
        var file = try nef()
        // The header of the small one stays, and its scan announces a table that is not there.
        let scan = try #require(
            file.indices.first { $0 > 500 && $0 + 9 < 2_000 && file[$0] == 0xFF && file[$0 + 1] == 0xDA })
        file[scan + 6] = 0x33
        #expect(try isColor(file, .fit(30), Self.red))
    }

    /// The letterboxed thumbnail of a picture of another shape.
    @Test func previewOfAnotherShapeIsNotUsed() throws {
        let (thumbnail, large) = (try jpeg(160, 120, Self.green), try jpeg(600, 400, Self.red))
        var file = Writer("II*\0")
        file.u32(16)
        file.bytes += Array("CR\u{2}\0\0\0\0\0".utf8)
        file.directory(
            [
                (0x0103, .short(6)), (0x010F, .text("Canon")), (0x0111, .long(1_000)), (0x0112, .short(8)),
                (0x0117, .long(large.count)),
            ], next: 300)
        file.pad(to: 300)
        file.directory([(0x0201, .long(1_000 + large.count)), (0x0202, .long(thumbnail.count))])
        file.pad(to: 1_000)
        let whole = file.bytes + large + thumbnail
        let info = try ImageInfo(of: .bytes(whole))
        #expect(info.format == .cr2 && info.orientation == .left)
        #expect(info.storedSize == PixelSize(width: 600, height: 400))
        for side in [100, 160, 161, 400] { #expect(try isColor(whole, .fit(side), Self.red)) }
        // Without the large one it is all there is.
        let cut = file.bytes + [UInt8](repeating: 0, count: large.count) + thumbnail
        #expect(try ImageInfo(of: .bytes(cut)).storedSize == PixelSize(width: 160, height: 120))
        #expect(try isColor(cut, .fit(160), Self.green))
    }

    // MARK: Orientation

    @Test(arguments: 1...8) func containersOrientationIsAppliedOnce(_ orientation: Int) throws {
        // The preview repeats what the container says.
        let large = try jpeg(300, 200, Self.red, orientation: orientation)
        var file = Writer("II*\0")
        file.u32(8)
        file.directory([
            (0x00FE, .long(1)), (0x0103, .short(6)), (0x010F, .text("SONY")), (0x0112, .short(orientation)),
            (0x0201, .long(400)), (0x0202, .long(large.count)),
        ])
        file.pad(to: 400)
        let info = try ImageInfo(of: .bytes(file.bytes + large))
        #expect(info.format == .arw && info.orientation.rawValue == orientation)
        let image = try decode(file.bytes + large, .fit(30))
        #expect(image.size == (orientation > 4 ? PixelSize(width: 20, height: 30) : PixelSize(width: 30, height: 20)))
    }

    // MARK: Containers

    @Test func jpegWithinAPanasonicFileIsFound() throws {
        let large = try jpeg(192, 128, Self.blue, orientation: 3)
        for orientation in [nil, 3] {
            var file = Writer("IIU\0")
            file.u32(8)
            var fields: [(Int, Value)] = [(0x002E, .blob(7, large)), (0x010F, .text("Panasonic"))]
            if let orientation { fields.append((0x0112, .short(orientation))) }
            file.directory(fields)
            let info = try ImageInfo(of: .bytes(file.bytes))
            #expect(info.format == .rw2 && info.orientation == .down)
            #expect(try isColor(file.bytes, .fit(40), Self.blue))
        }
    }

    @Test(arguments: ["OLYMPUS\0II\u{3}\0", "OM SYSTEM\0\0\0II\u{4}\0"], [false, true])
    func previewOfAnOlympusFileIsFound(_ head: String, isBlob: Bool) throws {
        let preview = try jpeg(160, 120, Self.blue)
        var note = Writer(head)
        let settings = 100
        // CameraSettings: a pointer, or the directory itself as the value.
        var inner = Writer()
        inner.directory([(0x0101, .long(200)), (0x0102, .long(preview.count))])
        note.directory([(0x2020, isBlob ? .blob(7, inner.bytes) : .long(settings))])
        note.pad(to: settings)
        note.bytes += inner.bytes
        note.pad(to: 200)
        note.bytes += preview
        for magic in ["IIRO", "IIRS"] {
            var file = Writer(magic)
            file.u32(8)
            file.directory([(0x010F, .text("OLYMPUS CORPORATION")), (0x0112, .short(6)), (0x8769, .long(120))])
            file.pad(to: 120)
            file.directory([(0x927C, .blob(7, note.bytes))])
            let info = try ImageInfo(of: .bytes(file.bytes))
            #expect(info.format == .orf && info.size == PixelSize(width: 120, height: 160))
            #expect(try isColor(file.bytes, .fit(80), Self.blue))
        }
    }

    @Test func previewsOfADigitalNegativeAreFoundAndItsSensorDataIsNot() throws {
        let (small, large, sensor) = (
            try jpeg(60, 40, Self.green), try jpeg(300, 200, Self.red), try jpeg(900, 600, Self.blue)
        )
        var file = Writer("II*\0")
        file.u32(8)
        func picture(
            _ photometric: Int, _ kind: Int, _ at: Int, _ bytes: [UInt8], tiles: Bool = false
        ) -> [(Int, Value)] {
            [
                (0x00FE, .long(kind)), (0x0103, .short(7)), (0x0106, .short(photometric)),
                (tiles ? 0x0144 : 0x0111, .long(at)), (tiles ? 0x0145 : 0x0117, .long(bytes.count)),
            ]
        }
        let places = [2_000, 2_000 + small.count, 2_000 + small.count + large.count]
        file.directory(
            picture(6, 1, places[0], small) + [
                (0x0112, .short(1)), (0x014A, .longs([300, 400, 500])), (0xC612, .blob(1, [1, 4, 0, 0])),
            ])
        file.pad(to: 300)
        file.directory(picture(34_892, 0, places[2], sensor))
        file.pad(to: 400)
        file.directory(picture(6, 1, places[1], large, tiles: true))
        file.pad(to: 500)
        file.directory(picture(6, 4, places[2], sensor))  // a mask
        file.pad(to: 2_000)
        let bytes = file.bytes + small + large + sensor
        let info = try ImageInfo(of: .bytes(bytes))
        #expect(info.format == .dng && info.storedSize == PixelSize(width: 300, height: 200))
        #expect(try isColor(bytes, .none, Self.red))
        #expect(try isColor(bytes, .fit(50), Self.green))
    }

    @Test func uncompressedThumbnailIsShownIfThereIsNoOther() throws {
        var file = Writer("II*\0")
        file.u32(8)
        let pixel: [UInt8] = [20, 200, 90]
        let pixels = [[UInt8]](repeating: pixel, count: 6 * 4).flatMap { $0 }
        file.directory([
            (0x00FE, .long(1)), (0x0100, .long(6)), (0x0101, .long(4)), (0x0102, .blob(3, [8, 0, 8, 0, 8, 0])),
            (0x0103, .short(1)), (0x0106, .short(2)), (0x010F, .text("Phase One")), (0x0111, .long(400)),
            (0x0115, .short(3)), (0x0117, .long(pixels.count)),
        ])
        // The count of a field of shorts is that of its values.
        let field = 8 + 2 + 3 * 12
        file.bytes[field + 4] = 3
        file.pad(to: 400)
        let bytes = file.bytes + pixels
        #expect(try ImageInfo(of: .bytes(bytes)).storedSize == PixelSize(width: 6, height: 4))
        #expect(EmbeddedPictureTests.color(try decode(bytes, .none)) == [20, 200, 90])
    }

    @Test func ordinaryTIFFOfACameraStaysOne() throws {
        func file(_ fields: [(Int, Value)]) -> [UInt8] {
            var file = Writer("II*\0")
            file.u32(8)
            file.directory(
                [(0x0100, .long(60)), (0x0101, .long(40)), (0x0103, .short(1)), (0x0106, .short(2))] + fields)
            return file.bytes
        }
        let maker: (Int, Value) = (0x010F, .text("Canon"))
        #expect(ImageFormat.detect(file([maker])) == .tiff)
        #expect(ImageFormat.detect(file([])) == .tiff)
        #expect(ImageFormat.detect(file([(0x00FE, .long(1))])) == .tiff)
        #expect(ImageFormat.detect(file([maker, (0x00FE, .long(1))])) == .cr2)
        #expect(ImageFormat.detect(file([(0xC612, .blob(1, [1, 4, 0, 0]))])) == .dng)
    }

    @Test func imagesOfASigmaFileAreFound() throws {
        let (small, large) = (try jpeg(60, 40, Self.green), try jpeg(300, 200, Self.red))
        var file = Writer("FOVb")
        file.u32(0x0002_0003)
        file.pad(to: 36)
        file.u32(270)
        file.pad(to: 256)
        var entries: [(Int, Int)] = []
        for (picture, width, height) in [(small, 60, 40), (large, 300, 200)] {
            let start = file.bytes.count
            file.bytes += Array("SECi".utf8)
            for value in [0x20000, 2, 18, width, height, 0] { file.u32(value) }
            file.bytes += picture
            entries.append((start, file.bytes.count - start))
        }
        let directory = file.bytes.count
        file.bytes += Array("SECd".utf8)
        file.u32(0x20000)
        file.u32(entries.count)
        for (start, count) in entries {
            file.u32(start)
            file.u32(count)
            file.bytes += Array("IMA2".utf8)
        }
        file.u32(directory)
        let info = try ImageInfo(of: .bytes(file.bytes))
        #expect(info.format == .x3f && info.orientation == .left)
        #expect(info.storedSize == PixelSize(width: 300, height: 200))
        #expect(try isColor(file.bytes, .fit(60), Self.green))
        #expect(try isColor(file.bytes, .fit(200), Self.red))
    }

    @Test func damagedFirstByteOfAMinoltaPreviewIsMended() throws {
        var preview = try jpeg(160, 120, Self.green)
        preview[0] = 0x02
        var block = Writer("MM\0*", isBigEndian: true)
        block.u32(8)
        block.directory([(0x010F, .text("Minolta Co., Ltd.")), (0x0112, .short(6)), (0x8769, .long(100))])
        block.pad(to: 100)
        var note = Writer(isBigEndian: true)
        note.directory([(0x0088, .long(300)), (0x0089, .long(preview.count))])
        block.directory([(0x927C, .blob(7, note.bytes))])
        block.pad(to: 300)
        var file = Writer("\0MRM", isBigEndian: true)
        file.u32(4_000)
        file.bytes += Array("\0PRD".utf8)
        file.u32(4)
        file.u32(0)
        file.bytes += Array("\0TTW".utf8)
        file.u32(block.bytes.count + preview.count)
        file.bytes += block.bytes + preview
        let info = try ImageInfo(of: .bytes(file.bytes))
        #expect(info.format == .mrw && info.size == PixelSize(width: 120, height: 160))
        #expect(try isColor(file.bytes, .fit(90), Self.green))
    }

    @Test func picturesOfACanonHeapAreFound() throws {
        let (small, large) = (try jpeg(160, 120, Self.green), try jpeg(320, 240, Self.red))
        func heap(_ values: [(tag: Int, bytes: [UInt8])]) -> [UInt8] {
            var heap = Writer()
            var places: [Int] = []
            for value in values {
                places.append(heap.bytes.count)
                heap.bytes += value.bytes
            }
            let directory = heap.bytes.count
            heap.u16(values.count)
            for (value, place) in zip(values, places) {
                heap.u16(value.tag)
                heap.u32(value.bytes.count)
                heap.u32(place)
            }
            heap.u32(directory)
            return heap.bytes
        }
        var image = Writer()
        for value in [320, 240, 0, 90] { image.u32(value) }
        let properties = heap([(0x1810, image.bytes)])
        var file = Writer("II")
        file.u32(26)
        file.bytes += Array("HEAPCCDR".utf8)
        file.pad(to: 26)
        file.bytes += heap([(0x2008, small), (0x300A, properties), (0x2007, large)])
        let info = try ImageInfo(of: .bytes(file.bytes))
        #expect(info.format == .crw && info.orientation == .right)
        #expect(info.storedSize == PixelSize(width: 320, height: 240))
        #expect(try isColor(file.bytes, .fit(100), Self.green))
        #expect(try isColor(file.bytes, .fit(240), Self.red))
    }

    /// Canon's boxes: a thumbnail and the orientation in the movie, a preview behind it, the whole picture as a track.
    private func cr3() throws -> [UInt8] {
        func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
            Writer(isBigEndian: true).encoded(payload.count + 8, 4) + Array(type.utf8) + payload
        }
        func words(_ values: Int...) -> [UInt8] { values.flatMap { Writer(isBigEndian: true).encoded($0, 4) } }
        func halves(_ values: Int...) -> [UInt8] { values.flatMap { Writer(isBigEndian: true).encoded($0, 2) } }
        let (thumbnail, preview, whole) = (
            try jpeg(60, 40, Self.green), try jpeg(162, 108, Self.blue), try jpeg(600, 400, Self.red)
        )
        var exif = Writer("II*\0")
        exif.u32(8)
        exif.directory([(0x0112, .short(8))])
        func file(_ offset: Int) -> [UInt8] {
            let canon = words(0x85C0_B687, 0x820F_11E0, 0x8111_F4CE, 0x462B_6A48)
            let thmb = words(0) + halves(60, 40) + words(thumbnail.count) + halves(1, 0) + thumbnail
            let movie = box("uuid", canon + box("CMT1", exif.bytes) + box("THMB", thmb))
            let table = box("stsz", words(0, 0, 1, whole.count)) + box("co64", words(0, 1, 0, offset))
            let track = box("trak", box("mdia", box("minf", box("stbl", table))))
            let prvw = words(0) + halves(0, 1, 162, 108) + halves(1, 0).prefix(0) + words(preview.count) + preview
            let behind = words(0xEAF4_2B5E, 0x1C98_4B88, 0xB9FB_B7DC, 0x406E_4D16, 0, 1) + box("PRVW", prvw)
            return box("ftyp", Array("crx \0\0\0\u{1}crx isom".utf8)) + box("moov", movie + track)
                + box("uuid", behind) + Writer(isBigEndian: true).encoded(whole.count + 8, 4) + Array("mdat".utf8)
        }
        return file(file(0).count) + whole
    }

    @Test func threePicturesOfACanonFileInBoxesAreFound() throws {
        let file = try cr3()
        let info = try ImageInfo(of: .bytes(file))
        #expect(info.format == .cr3 && info.orientation == .left)
        #expect(info.storedSize == PixelSize(width: 600, height: 400))
        #expect(try isColor(file, .fit(60), Self.green))
        #expect(try isColor(file, .fit(100), Self.blue))
        #expect(try isColor(file, .fit(200), Self.red))
        // The files that lack the tail, as those that were cut for tests do.
        let cut = Array(file.prefix(file.count - 200))
        #expect(try ImageInfo(of: .bytes(cut)).storedSize == PixelSize(width: 162, height: 108))
    }

    // MARK: Bad input

    @Test func everyTruncationAndLoopIsAnAnswer() throws {
        for file in [try nef(), try cr3()] {
            for count in stride(from: 0, to: file.count, by: 7) { _ = try? decode(Array(file.prefix(count)), .fit(30)) }
        }
        // Directories that point at themselves and at each other.
        var file = Writer("II*\0")
        file.u32(8)
        file.directory(
            [
                (0x00FE, .long(1)), (0x010F, .text("SONY")), (0x014A, .longs(Array(repeating: 8, count: 900))),
                (0x8769, .long(8)),
            ], next: 8)
        guard case .unsupported? = (#expect(throws: ImageError.self) { try decode(file.bytes, .fit(30)) }) else {
            Issue.record("a file without a picture is unsupported")
            return
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func everyHostileFileIsAnAnswer() throws {
        let kinds = ["cr2", "cr3", "nef", "dng", "raf", "arw", "orf", "rw2", "pef"]
        let paths = Corpus.files(in: "anything/hostile").filter { path in
            kinds.contains { path.lowercased().hasSuffix("." + $0) }
        }
        #expect(paths.isEmpty || paths.count >= 30)
        for path in paths {
            let start = ContinuousClock.now
            _ = try? ImageMetadata(of: .file(path))
            _ = try? decoder.decode(.file(path), at: .fit(256))
            // Those without the name of a maker are TIFF files: as raw files, too.
            let reader = ByteReader(try ByteSource(.file(path)))
            for format in [ImageFormat.nef, .cr3, .crw, .x3f, .mrw] {
                let locator = try #require(Codecs.standard[format]?.locator)
                let found = try? locator.pictures(reader, format: format, limits: .standard)
                #expect(found?.pictures.count ?? 0 < 64, "\(path)")
            }
            #expect(ContinuousClock.now - start < .seconds(20), "\(path)")
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func realFilesShowTheirPreviews() throws {
        guard let root = Corpus.root?.appending(path: "anything/corpus/raw").path,
            FileManager.default.fileExists(atPath: root)
        else { return }
        // Stubs whose previews are a few bytes have no picture.
        let expected: [(String, ImageFormat, Int, Int, Orientation)] = [
            ("Canon-R6-pruned.CR3", .cr3, 1_620, 1_080, .up), ("canon_eos_6d.dng", .dng, 1_024, 683, .up),
            ("RAW_KODAK_DC50__.KDC", .kdc, 96, 64, .up), ("FujiFilm.raf", .raf, 8, 8, .up),
            ("made-canon.cr2", .cr2, 1_920, 1_272, .right), ("made-fuji.raf", .raf, 1_920, 1_272, .up),
            ("made-leica.dng", .dng, 1_920, 1_272, .up), ("made-nikon.nef", .nef, 4_928, 3_264, .up),
            ("made-panasonic.rw2", .rw2, 1_920, 1_272, .up), ("made-pentax.pef", .pef, 1_920, 1_272, .down),
            ("made-samsung.srw", .srw, 1_920, 1_272, .up), ("made-sony.arw", .arw, 1_920, 1_272, .left),
            ("testARW.arw", .arw, 64, 48, .up), ("testCR2.cr2", .cr2, 64, 48, .up),
            ("testDNG.dng", .dng, 64, 48, .up), ("testNEF_dup.nef", .nef, 64, 48, .up),
            ("testPEF.pef", .pef, 64, 48, .up), ("Issue_247-1.nef", .jpeg, 2_000, 3_008, .up),
        ]
        for (name, format, width, height, orientation) in expected {
            let input = ImageInput.file(root + "/" + name)
            guard let info = try? ImageInfo(of: input) else {
                Issue.record("\(name) cannot be read")
                continue
            }
            #expect(info.format == format, "\(name)")
            #expect(info.storedSize == PixelSize(width: width, height: height), "\(name)")
            #expect(info.orientation == orientation, "\(name)")
            #expect((try? decoder.decode(input, at: .fit(64))) != nil, "\(name)")
        }
    }
}
#endif
