import TestSupport
import VitrineCore
@_spi(JPEGRows) import VitrineImaging
import VitrinePipeline
import VitrineContainers
import VitrineHEIF
@_spi(JPEGRows) import VitrineJPEG
import VitrineJXL
import VitrinePNG
import VitrineRaster
import VitrineSVG

extension FuzzTargets {
    /// Small enough that no picture takes long, and that a bomb which gets past them is seen.
    private static let limits: ImageLimits = {
        var limits = ImageLimits()
        limits.maximumPixels = 1 << 16
        limits.maximumInterlacedPixels = 1 << 16
        limits.maximumWholeImagePixels = 1 << 16
        limits.maximumCoefficientBytes = 1 << 20
        limits.maximumSide = 4_096
        limits.maximumFrames = 16
        limits.deadline = 5
        return limits
    }()

    // MARK: Pixels

    static var decoders: [FuzzTarget] {
        var targets = [
            decoding(
                "decode-jxl-low-frequency", .jxl, JXLLowFrequencyDecoder(), pixels: 1 << 18,
                generate: FuzzGenerators.jxl),
            decoding("decode-heic", .heic, HEICDecoder(), generate: FuzzGenerators.heif), hevc,
            decoding("decode-jpeg-means", .jpeg, BlockMeanDecoder()),
            decoding(
                "decode-png", .png, PNGDecoder(), generate: FuzzGenerators.png, repair: Seeds.withChecksums),
            decoding("decode-gif", .gif, GIFDecoder()), decoding("decode-bmp", .bmp, BMPDecoder()),
            decoding("decode-ico", .ico, ICODecoder(pictures: Codecs([.png]))), arrivingJPEG, arrivingPicture, pictures,
            isolated, embeddedPreviews, jpegRows, jpegPieces, frames(.gif),
            frames(.png, repair: Seeds.withChecksums), frames(.webp), frameTimes,
        ]
        let named: Set<ImageFormat> = [.gif, .bmp, .ico, .webp]
        let others = ImageFormat.pictures.filter { $0.module == "VitrineRaster" && !named.contains($0) }
        targets += others.flatMap { format in
            Codecs.standard.decoders(for: format).map { raster(format, $0) }
        }
        #if SystemCodecs
            targets.insert(decoding("decode-jpeg", .jpeg, LibJPEGDecoder()), at: 0)
            targets.insert(decoding("decode-webp", .webp, WebPDecoder()), at: 0)
        #endif
        return targets
    }

    /// Pictures of HEVC, as streams with start codes.
    private static var hevc: FuzzTarget {
        FuzzTarget(
            "decode-hevc", seeds: { Seeds.files(200, upTo: 8 << 10) { $0.starts(with: [0, 0, 0, 1, 0x40]) } },
            generate: FuzzGenerators.hevc, pixels: limits.maximumWholeImagePixels
        ) { [limits] bytes -> [[UInt8]] in
            let picture = HEVCByteStream(bytes)
            let decoder = try HEVCIntraDecoder(
                configuration: picture.configuration, maximumSide: limits.maximumSide,
                maximumPixels: limits.maximumWholeImagePixels, hasFilters: bytes.count & 1 == 0)
            // The second picture meets what the first has left.
            return try (0..<2).flatMap { _ in
                try picture.stream.withUnsafeBufferPointer { stream in
                    try decoder.decode(stream).flatMap { plane in
                        (0..<plane.height).map { y in
                            Array(UnsafeBufferPointer(start: plane.samples + y * plane.bytesPerRow, count: plane.width))
                        }
                    }
                }
            }
        }
    }

    /// The index of a JPEG file, and files of some of its rows.
    private static var jpegRows: FuzzTarget {
        FuzzTarget("jpeg-rows", seeds: { Seeds.pictures(.jpeg, 40, upTo: 8 << 10) }) { [limits] bytes in
            guard let index = try JPEGRowIndex(of: .bytes(bytes, name: "rows"), limits: limits) else {
                throw FuzzRefusal()
            }
            var other = bytes
            other[bytes.count / 2] ^= 0x55
            for first in [0, index.size.height / 3, index.size.height - 1] {
                for file in [bytes, other] {
                    let rows = first..<(first + 20)
                    guard let part = try index.part(rows, of: .bytes(file, name: "rows")) else { continue }
                    let source = ByteSource(bytes: part.bytes, name: "part")
                    _ = try? BlockMeanDecoder().decode(source, at: .eighth, limits: limits)
                }
            }
        }
    }

    /// The block means of a JPEG file on several threads, which are those on one.
    private static let jpegPieces: FuzzTarget = {
        let alone = BlockMeanDecoder(cores: IdleCores(count: 1))
        let together = BlockMeanDecoder(cores: IdleCores(count: 3), minimumPieceBytes: 64, minimumBlockBytes: 0)
        return FuzzTarget(
            "jpeg-pieces", seeds: { Seeds.pictures(.jpeg, 40, upTo: 9 << 10) }, pixels: limits.maximumPixels
        ) { [limits] bytes -> [[UInt8]] in
            let source = ByteSource(bytes: bytes, name: "pieces")
            let info = try ImageInfo(reading: source, limits: limits)
            try limits.check(info, source: source)
            let size = info.storedSize
            let divisor = bytes.count & 1 == 0 ? 8 : 16
            let target = PixelSize(width: max(1, size.width / divisor), height: max(1, size.height / divisor))
            let request = DecodeRequest(
                info: info, target: target,
                options: DecodeOptions(allowsPartial: bytes.count & 2 != 0), limits: limits)
            let expected = Result { try alone.decode(source, request) }
            let found = Result { try together.decode(source, request) }
            precondition(samples(found) == samples(expected), "several threads give other samples")
            return samples(try found.get())
        }
    }()

    /// The samples of a decode row by row; nil if it failed.
    private static func samples(_ result: Result<DecodedImage, any Error>) -> [[UInt8]]? {
        (try? result.get()).map(samples)
    }

    private static func samples(_ image: DecodedImage) -> [[UInt8]] {
        image.planes.flatMap { plane in
            plane.storage.withUnsafeBytes { bytes in
                (0..<plane.height).map { y in
                    Array(bytes[(y * plane.bytesPerRow)..<(y * plane.bytesPerRow + plane.width * plane.channels)])
                }
            }
        }
    }

    /// One decoder, at full size or reduced, whole or in part, of any page.
    private static func decoding(
        _ name: String, _ format: ImageFormat, _ decoder: any ImageDecoding,
        pixels: Int = limits.maximumPixels, generate: (@Sendable (inout FuzzRandom) -> [UInt8])? = nil,
        repair: (@Sendable ([UInt8]) -> [UInt8])? = nil
    ) -> FuzzTarget {
        var limits = limits
        limits.maximumWholeImagePixels = pixels
        return FuzzTarget(
            name, seeds: { Seeds.pictures(format, 40, upTo: 9 << 10) + Seeds.made(format) }, generate: generate,
            repair: repair, pixels: pixels
        ) { [limits] bytes -> [[UInt8]] in
            let source = ByteSource(bytes: bytes, name: "\(name).\(format.fileExtension)")
            let info = try ImageInfo(reading: source, limits: limits)
            guard info.format == format else { throw FuzzRefusal() }
            try limits.check(info, source: source)
            let choice = bytes.count % 8
            let stored = info.storedSize
            // Block means and low frequencies are for large reductions only, rows are scaled at medium ones.
            let divisor = [1, 2, 4, 16][bytes.count % 4]
            let target = PixelSize(width: max(1, stored.width / divisor), height: max(1, stored.height / divisor))
            var request = DecodeRequest(
                info: info, target: divisor == 1 ? nil : target,
                options: DecodeOptions(page: choice == 5 ? 1 : 0, allowsPartial: choice & 2 != 0), limits: limits)
            request.allowsScaling = choice & 4 != 0
            return samples(try decoder.decode(source, request))
        }
    }

    /// The frames of an animation in order, out of order, and again.
    private static func frames(
        _ format: ImageFormat, repair: (@Sendable ([UInt8]) -> [UInt8])? = nil
    ) -> FuzzTarget {
        FuzzTarget(
            "frames-\(format)", seeds: { Seeds.animations(format) }, repair: repair, pixels: limits.maximumPixels
        ) { [limits] bytes -> [[UInt8]] in
            let decoder = ImageDecoder(
                limits: limits, isolation: .inProcess, codecs: .standard,
                pool: WorkerPool(program: "none", location: .executable("/nonexistent")))
            let resizer = bytes.count & 1 == 0 ? ImageResizer.none : .fit(9)
            let animation = try AnimatedImage(
                .bytes(bytes, name: "frames"), at: resizer, decoder: decoder,
                budget: FrameBudget(capacity: bytes.count & 2 == 0 ? 0 : 1 << 20))
            guard let animation else { throw FuzzRefusal() }
            let last = animation.timing.frameCount - 1
            return try [0, 1, last, 0].flatMap { frame in FuzzDigests.rows(of: try animation.decodeImage(at: frame)) }
        }
    }

    /// The times of the frames, of all formats.
    private static let frameTimes = FuzzTarget(
        "frame-times", seeds: { [.gif, .png, .webp, .avif, .jxl].flatMap { Seeds.animations($0) } }
    ) { [limits] bytes in
        guard let animation = try AnimatedImage(.bytes(bytes, name: "times"), limits: limits) else {
            throw FuzzRefusal()
        }
        let timing = animation.timing
        for seconds in [0, 0.05, timing.duration / 2, timing.duration, timing.duration * 3.3, 1e9] {
            let position = timing.position(at: seconds)
            precondition((0..<timing.frameCount).contains(position.frame), "a frame that is not there")
        }
    }

    /// One decoder of plain rows. The name of its input has the extension by which TGA is known.
    private static func raster(_ format: ImageFormat, _ decoder: any ImageDecoding) -> FuzzTarget {
        let generators: [ImageFormat: @Sendable (inout FuzzRandom) -> [UInt8]] = [
            .exr: FuzzGenerators.exr, .psd: FuzzGenerators.psd, .dds: FuzzGenerators.dds, .tga: FuzzGenerators.tga,
            .pnm: FuzzGenerators.pnm, .fits: FuzzGenerators.fits,
        ]
        return decoding("decode-\(format)", format, decoder, generate: generators[format])
    }

    private static let arrivingJPEG = FuzzTarget("arriving-jpeg", seeds: { Seeds.pictures(.jpeg, 24, upTo: 6 << 10) }) {
        bytes in
        let target = bytes.count & 1 == 0 ? nil : PixelSize(width: 20, height: 9)
        var scanner = ProgressiveJPEGScanner(name: "arriving", target: target, limits: limits)
        var found = false
        let piece = max(1, bytes.count / 4)
        for start in stride(from: 0, to: bytes.count, by: piece) {
            try scanner.append(Array(bytes[start..<min(bytes.count, start + piece)]))
            found = try scanner.nextImage() != nil || found
        }
        if !found { throw FuzzRefusal() }
    }

    /// Any picture in four pieces, as a network brings it: previews, rows, scans and the whole.
    private static let arrivingPicture = FuzzTarget("arriving-picture", seeds: { Seeds.pictures(4, upTo: 4 << 10) }) {
        bytes in
        try waiting {
            let decoder = ImageDecoder(limits: limits, isolation: .inProcess)
            let chunks = AsyncStream<[UInt8]> { continuation in
                let piece = max(1, bytes.count / 4)
                for start in stride(from: 0, to: bytes.count, by: piece) {
                    continuation.yield(Array(bytes[start..<min(bytes.count, start + piece)]))
                }
                continuation.finish()
            }
            for try await _ in decoder.images(arrivingIn: chunks, at: .limit(width: 30, height: 20)) {}
        }
    }

    /// The ordinary way of a program: header, limits, decoder, colours, orientation, resizing.
    private static let pictures = FuzzTarget(
        "picture", seeds: { Seeds.pictures(5, upTo: 4 << 10) },
        generate: { random in
            switch random.below(7) {
            case 0: FuzzGenerators.png(&random)
            case 1: FuzzGenerators.exr(&random)
            case 2: FuzzGenerators.psd(&random)
            case 3: FuzzGenerators.dds(&random)
            case 4: FuzzGenerators.heif(&random)
            case 5: FuzzGenerators.zip(&random, Seeds.archiveEntries)
            default: FuzzGenerators.pnm(&random)
            }
        }, pixels: limits.maximumPixels
    ) { bytes -> [[UInt8]] in
        let decoder = ImageDecoder(limits: limits, isolation: .inProcess)
        let resizer = bytes.count & 1 == 0 ? ImageResizer.limit(width: 23, height: 31) : .none
        var options = DecodeOptions()
        options.allowsPartial = bytes.count & 2 != 0
        return FuzzDigests.rows(of: try decoder.decode(.bytes(bytes), at: resizer, options: options))
    }

    private static let embeddedPreviews = FuzzTarget(
        "embedded-preview", seeds: { Seeds.containing("Exif\0\0", 12) + [jpegWithPreview] }
    ) { bytes in
        let decoder = ImageDecoder(limits: limits, isolation: .inProcess)
        if try decoder.embeddedPreview(of: .bytes(bytes), at: .limit(width: 40, height: 40)) == nil {
            throw FuzzRefusal()
        }
    }

    /// A JPEG file with an Exif block that holds another one.
    private static let jpegWithPreview: [UInt8] = {
        let picture = Seeds.soundJPEG
        let block = Array("Exif\0\0".utf8) + exif(preview: picture)
        let length = block.count + 2
        return [0xFF, 0xD8, 0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 255)] + block + picture[2...]
    }()

    private static func exif(preview: [UInt8] = []) -> [UInt8] {
        var sample = ExifSample()
        sample.orientation = 6
        sample.dateTimeOriginal = "2024:07:19 18:30:05"
        sample.offsetTimeOriginal = "+02:00"
        sample.preview = preview
        return sample.bytes
    }

    // MARK: Headers and what stands beside pixels

    static var headers: [FuzzTarget] {
        ImageFormat.pictures.map(header) + Codecs.standard.locators.filter { $0 != ComicArchivePictures.self }.map(held) + [
            archiveHeaders, zipEntries, recordingCover, xmlScanner, exifBlock, xmpPacket, profile, boxes, items, pngText,
            movie, kinds, svg, blurHash, thumbHash,
        ]
    }

    /// The header, and all that it leads to: metadata, profile, previews.
    private static func header(_ format: ImageFormat) -> FuzzTarget {
        let repair: (@Sendable ([UInt8]) -> [UInt8])? = format == .png ? Seeds.withChecksums : nil
        return FuzzTarget("header-\(format)", seeds: { Seeds.pictures(format, 48) }, repair: repair) { bytes in
            let source = ByteSource(bytes: bytes, name: "header.\(format.fileExtension)")
            let info = try ImageInfo(reading: source)
            try ImageLimits.standard.check(info, source: source)
            if let profile = info.colorProfile {
                _ = ICCDescription.name(of: profile)
                _ = ColorProfile.name(of: profile)
            }
            let metadata = try ImageMetadata(reading: source)
            _ = metadata.sanitizedForUprightPixels(removingLocation: true)
            if let exif = metadata.exif { _ = ExifSummary(exif: exif) }
        }
    }

    /// A file that holds pictures: which one is found, and how it is decoded.
    private static func held(_ locator: any PictureLocating.Type) -> FuzzTarget {
        FuzzTarget(
            "held-\(locator)",
            seeds: {
                Seeds.holders(of: locator.formats) + madeHolders(of: locator.formats)
                    + Seeds.madeHolders(of: locator.formats)
            }
        ) { bytes in
            let source = ByteSource(bytes: bytes, name: "held")
            let info = try ImageInfo(reading: source, limits: limits)
            guard info.format.holdsPictures else { throw FuzzRefusal() }
            _ = try ImageMetadata(reading: source)
            let resizer = bytes.count & 1 == 0 ? ImageResizer.limit(width: 23, height: 31) : .none
            _ = try ImageDecoder(limits: limits, isolation: .inProcess).decode(.bytes(bytes), at: resizer)
        }
    }

    /// The headers of RAR. Without the rest, which asks a worker.
    private static let archiveHeaders = FuzzTarget(
        "held-ComicArchivePictures",
        seeds: {
            Seeds.packedComics + Seeds.files(16) { $0.starts(with: "Rar!".utf8) || $0.starts(with: "7z".utf8) }
        }
    ) { bytes in
        let reader = ByteReader(ByteSource(bytes: bytes, name: "archive"))
        if try ComicArchivePictures.format(of: reader) == nil { throw FuzzRefusal() }
    }

    /// Archives of a few entries: the directory at their end is what mutations should reach.
    private static let zipEntries = FuzzTarget(
        "zip",
        seeds: { Seeds.archives + Seeds.files(40, upTo: 8 << 10) { $0.starts(with: "PK\u{3}\u{4}".utf8) } },
        generate: { FuzzGenerators.zip(&$0, Seeds.archiveEntries) }
    ) { bytes in
        let reader = ByteReader(ByteSource(bytes: bytes, name: "archive"))
        guard let archive = try ZipArchive(reader) else { throw FuzzRefusal() }
        _ = try archive.entry(named: "mimetype")
        try archive.forEach { (entry) throws(ImageError) in
            _ = try? archive.bytes(of: entry, reader, maximum: 1 << 18)
            return true
        }
        guard let format = try ZipPictures.format(of: reader) else { throw FuzzRefusal() }
        _ = try ZipPictures.pictures(reader, format: format, limits: limits)
    }

    private static let recordingCover = FuzzTarget(
        "recording-cover",
        seeds: {
            let marks = ["ID3", "fLaC", "OggS", "RIFF", "FORM", "DSD ", "MAC ", "wvpk", "MPCK"]
            return Seeds.files(64) { file in
                marks.contains { file.starts(with: $0.utf8) } || file.starts(with: [0x30, 0x26, 0xB2, 0x75])
                    || file.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) || file.dropFirst(4).starts(with: "ftyp".utf8)
            }
        }, generate: FuzzGenerators.recording
    ) { bytes in
        if try RecordingCover(of: ByteSource(bytes: bytes, name: "recording"), limits: limits) == nil {
            throw FuzzRefusal()
        }
    }

    private static let xmlScanner = FuzzTarget(
        "xml", .text,
        seeds: {
            [
                "<?xml version='1.0'?><!-- a --><a:b c='d' e=\"&amp;&#x41;\"/><f><![CDATA[g]]>h</f>",
                "<!DOCTYPE html><p><q r = 's'><t/></q></p>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
            ].map { Array($0.utf8) }
        }
    ) { bytes in
        var scanner = XMLScanner(bytes, input: "document")
        var count = 0
        while let event = try scanner.next() {
            count += 1
            switch event {
            case .start: _ = (scanner.attribute("c"), scanner.attribute("r"), scanner.isNamed("b"))
            case .end: _ = scanner.isNamed("f")
            case .text: _ = scanner.string(scanner.text)
            }
        }
        if count == 0 { throw FuzzRefusal() }
    }

    /// Small raw files with a picture, in the layouts of which there are no small real files.
    private static func madeHolders(of formats: [ImageFormat]) -> [[UInt8]] {
        let jpeg = Seeds.soundJPEG
        func number(_ value: Int, _ count: Int, isBigEndian: Bool = true) -> [UInt8] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            return isBigEndian ? bytes.reversed() : bytes
        }
        func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
            number(payload.count + 8, 4) + Array(type.utf8) + payload
        }
        if formats.contains(.cr3) {
            let canon = [0x85C0_B687, 0x820F_11E0, 0x8111_F4CE, 0x462B_6A48].flatMap { number($0, 4) }
            let preview = [0xEAF4_2B5E, 0x1C98_4B88, 0xB9FB_B7DC, 0x406E_4D16, 0, 1].flatMap { number($0, 4) }
            let head = [0, 0x00A0_0078].flatMap { number($0, 4) } + number(jpeg.count, 4)
            let movie = box("uuid", canon + box("CMT1", exif()) + box("THMB", head + number(0x1_0000, 4) + jpeg))
            let behind = preview + box("PRVW", number(0, 4) + head + jpeg)
            return [box("ftyp", Array("crx \0\0\0\u{1}crx ".utf8)) + box("moov", movie) + box("uuid", behind)]
        }
        func little(_ value: Int, _ count: Int) -> [UInt8] { number(value, count, isBigEndian: false) }
        if formats.contains(.crw) {
            var file: [UInt8] = Array("II".utf8) + little(14, 4) + Array("HEAPCCDR".utf8)
            file += jpeg
            // The directory with its one entry, and its place.
            for (value, count) in [(1, 2), (0x2007, 2), (jpeg.count, 4), (0, 4), (jpeg.count, 4)] {
                file += little(value, count)
            }
            return [file]
        }
        if formats.contains(.mrw) {
            let block = exif(preview: jpeg)
            var file: [UInt8] = Array("\0MRM".utf8) + number(block.count + 8, 4)
            file += Array("\0TTW".utf8) + number(block.count, 4)
            return [file + block]
        }
        return []
    }

    private static let exifBlock = FuzzTarget(
        "exif",
        seeds: {
            let files = Seeds.containing("Exif\0\0", 24) + Seeds.pictures(.webp, 4)
            return [exif(), exif(preview: [0xFF, 0xD8, 0xFF, 0xD9, 0])]
                + files.compactMap {
                    (try? ImageMetadata(reading: ByteSource(bytes: $0, name: "seed")))?.exif
                }
        }
    ) { bytes in
        _ = ExifSummary(exif: bytes)
        let metadata = ImageMetadata(exif: bytes)
        let removesLocation = bytes.count & 1 == 0
        if metadata.sanitizedForUprightPixels(removingLocation: removesLocation).exif == nil { throw FuzzRefusal() }
    }

    private static let xmpPacket = FuzzTarget(
        "xmp", .text,
        seeds: {
            [
                "<x tiff:Orientation=\"6\"/>", "<tiff:Orientation>8</tiff:Orientation> exif:GPSLatitude",
                "xmp:Thumbnails",
            ]
            .map { Array($0.utf8) }
        }
    ) { bytes in
        _ = ImageMetadata(xmp: bytes).sanitizedForUprightPixels(removingLocation: bytes.count & 1 == 0)
    }

    private static let profile = FuzzTarget(
        "icc",
        seeds: {
            Seeds.files(24) { $0.count > 132 && $0[36..<40].elementsEqual("acsp".utf8) }
                + Seeds.pictures(.jpeg, 48).compactMap {
                    (try? ImageInfo(reading: ByteSource(bytes: $0, name: "seed")))?.colorProfile
                }.prefix(6)
        }
    ) { bytes in
        _ = ICCDescription.isProfile(bytes)
        _ = ICCDescription.name(of: bytes)
        _ = ColorProfile.name(of: bytes)
        guard let profile = ColorProfile(bytes) else { throw FuzzRefusal() }
        var pixels: [UInt8] = [0, 1, 127, 255, 128, 200, 3, 4, 255, 255, 255, 255, 0, 0, 0, 0]
        pixels.withUnsafeMutableBufferPointer { pixels in
            guard let start = pixels.baseAddress else { return }
            profile.convertRGB(start, count: 4, isPremultiplied: bytes.count & 1 == 0)
            profile.convertCMYK(start, count: 4)
        }
        _ = profile.grayLevels
    }

    private static let boxes = FuzzTarget(
        "iso-boxes", seeds: { Seeds.pictures(.heic, 16) + Seeds.pictures(.avif, 8) + Seeds.pictures(.jp2, 8) },
        generate: FuzzGenerators.heif
    ) { bytes in
        let reader = ByteReader(ByteSource(bytes: bytes, name: "boxes"))
        var pending = [(0..<bytes.count, 0)]
        var count = 0
        while let (range, depth) = pending.popLast(), count < 4_096 {
            for box in ISOBox.children(reader, in: range) {
                count += 1
                if depth < 8 { pending.append((box.payload, depth + 1)) }
                if let payload = box.fullPayload, depth < 8 { pending.append((payload, depth + 1)) }
            }
        }
    }

    private static let items = FuzzTarget(
        "heif-items", seeds: { Seeds.pictures(.heic, 24) + Seeds.pictures(.avif, 24) }, generate: FuzzGenerators.heif
    ) {
        bytes in
        let container = try HEIFContainer(ByteReader(ByteSource(bytes: bytes, name: "items")))
        _ = container.codec
        _ = container.hasThumbnailTurnedAlike
        _ = HEICTiles(thumbnailOf: container, covering: PixelSize(16), limits: limits)
        let tiles = try HEICTiles(container, limits: limits)
        _ = tiles.area(for: PixelRect(x: bytes.count % 64, y: 3, width: 7, height: bytes.count % 33), margin: bytes.count % 9)
    }

    private static let pngText = FuzzTarget(
        "desktop-thumbnail",
        seeds: {
            Seeds.pictures(.png, 6, upTo: 1 << 10).map {
                PNGText.adding(
                    [
                        ("Thumb::URI", "file:///a.png"), ("Thumb::MTime", "1700000000.5"), ("Thumb::Size", "12"),
                        ("Thumb::Image::Width", "300"), ("Thumb::Image::Height", "200"),
                    ], to: $0)
            }
        }, repair: Seeds.withChecksums
    ) { bytes in
        _ = try PNGText.entries(of: ByteSource(bytes: bytes, name: "texts"))
        guard let entry = DesktopThumbnailEntry(bytes: bytes, name: "entry") else { throw FuzzRefusal() }
        _ = entry.isLargeEnough(for: PixelSize(128))
    }

    private static let movie = FuzzTarget(
        "movie-header", seeds: { movies + Seeds.files(24) { $0.count > 12 && VideoSignature.matches($0) } }
    ) { bytes in
        guard MovieHeader(ByteReader(ByteSource(bytes: bytes, name: "movie"))) != nil else { throw FuzzRefusal() }
    }

    /// Two files that have nothing but a header, of 32 and of 64 bits.
    private static let movies: [[UInt8]] = [false, true].map { isLong in
        func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
            [0, 0, 0, UInt8(payload.count + 8)] + Array(type.utf8) + payload
        }
        let number: [UInt8] = (isLong ? [0, 0, 0, 0] : []) + [0xE0, 0, 0, 0]
        let head =
            [isLong ? 1 : 0, 0, 0, 0] + number + number + [0, 0, 3, 0xE8] + number + [UInt8](repeating: 0, count: 12)
        return box("ftyp", Array("isom\0\0\0\0".utf8)) + box("moov", box("mvhd", head))
    }

    private static let kinds = FuzzTarget("file-kind", seeds: { Seeds.pictures(3) + Seeds.files(40) { _ in true } }) {
        bytes in
        let start = Array(bytes.prefix(4_096))
        _ = VideoSignature.matches(start)
        if try FileKind(of: .bytes(start)) == nil { throw FuzzRefusal() }
    }

    private static let svg = FuzzTarget(
        "svg-policy", .text, seeds: { Seeds.pictures(.svg, 24, upTo: 4 << 10) + documents }
    ) {
        bytes in
        if SVGPolicy.containsExternalReference(bytes) != nil { throw FuzzRefusal() }
    }

    private static let documents: [[UInt8]] = [
        "<svg a='b' c=\"d\"/>", "<?xml version='1.0' encoding='utf-8'?><svg:svg width='1in' height='2e3'/>",
        "<!DOCTYPE svg [<!ENTITY a 'b&#65;'><!ENTITY c '&a;&a;'>]><svg><g style='fill:&c;'/>&c;</svg>",
        "<svg><style>a{b:u\\72 l(#c)}<![CDATA[d]]></style><image href='data:image/png;base64,AA'/></svg>",
        "<?xml-stylesheet href='#a'?><svg><a href='b'/><set attributeName='href' to='#d'/><!-- e --></svg>",
    ].map { Array($0.utf8) }

    private static let blurHash = FuzzTarget(
        text: "blurhash", ["LEHV6nWB2yk8pyo0adR*.7kCMdnj", "00OZZy", "L00000fQfQfQfQfQfQfQfQfQfQfQ", "~q~q"]
    ) { text in
        _ = try BlurHash.averageColor(of: text)
        _ = try BlurHash.decode(text, size: PixelSize(width: 9, height: 7), punch: text.utf8.count & 1 == 0 ? 1 : 1e300)
    }

    private static let thumbHash = FuzzTarget(
        "thumbhash",
        seeds: {
            [(9, 5, 255), (5, 9, 255), (8, 8, 100)].map { width, height, alpha in
                let color = PixelColor(red: 200, green: 100, blue: 9, alpha: UInt8(alpha))
                return ThumbHash.encode(PixelImage(size: PixelSize(width: width, height: height), color: color))
            }
        }
    ) { bytes in
        _ = try ThumbHash.aspectRatio(of: bytes)
        _ = try ThumbHash.averageColor(of: bytes)
        _ = try ThumbHash.decode(bytes)
    }
}

/// The answer of a parser that says no without an error.
struct FuzzRefusal: Error {}
