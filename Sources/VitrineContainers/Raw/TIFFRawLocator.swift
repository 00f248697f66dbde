import VitrineImageCore

/// Finds the previews of raw files that are TIFF structures.
///
/// Source: TIFF 6.0; Adobe DNG 1.7 §4 (NewSubFileType, PhotometricInterpretation, compression 7 and 52546);
/// TIFF/EP (ISO 12234-2) for SubIFDs; the tags of makers as ExifTool documents them (EXIF, Canon, Nikon, PanasonicRaw).
package enum TIFFRawLocator: PictureLocating {
    package static let formats: [ImageFormat] = [
        .cr2, .nef, .arw, .dng, .orf, .rw2, .pef, .srw, .hasselblad, .erf, .kdc, .iiq, .tiffRaw,
    ]
    package static let isRaw = true
    package static let tellsEarly = true

    // MARK: Format

    package static func format(of reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count >= 16 else { return nil }
        switch try reader.u32(at: 0) {
        case 0x4949_524F, 0x4949_5253, 0x4D4D_4F52: return .orf  // IIRO, IIRS, MMOR
        case 0x4949_5500: return .rw2
        case 0x4949_2A00, 0x4D4D_002A: break
        default: return nil
        }
        if reader.matches("CR", at: 8) { return .cr2 }
        if reader.matches("IIII", at: 8) || reader.matches("MMMM", at: 8) { return .iiq }
        let structure = try TIFFStructure(reader, 0..<reader.count)
        let first = try structure.directory(at: structure.firstDirectory)
        if first[0xC612] != nil { return .dng }
        guard let maker = structure.text(first[0x010F]) ?? structure.text(first[0x0110]),
            !isPicture(structure, first) || hasSensorData(structure, first)
        else { return nil }
        return format(ofMaker: maker)
    }

    /// Whether the first directory has an image that readers of TIFF show: the file is an ordinary TIFF then, which a
    /// camera or an editor made.
    private static func isPicture(_ structure: TIFFStructure, _ first: TIFFStructure.Directory) -> Bool {
        guard let width = structure.integer(first[0x0100]), let height = structure.integer(first[0x0101]), width > 0,
            height > 0, (structure.integer(first[0x00FE]) ?? 0) & 1 == 0,
            (0...10).contains(structure.integer(first[0x0106]) ?? 0)
        else { return false }
        switch structure.integer(first[0x0103]) ?? 1 {
        case 1...5, 7, 8, 32_773, 32_946, 34_925, 50_000, 50_001: return true
        default: return false  // a maker's own, or the old kind of JPEG, which previews have
        }
    }

    /// Whether a subdirectory of the first one holds the values of a sensor.
    private static func hasSensorData(_ structure: TIFFStructure, _ first: TIFFStructure.Directory) -> Bool {
        guard let field = first[0x014A] else { return false }
        return (0..<min(field.count, 8)).contains { index in
            guard let offset = structure.integer(field, index), let directory = try? structure.directory(at: offset)
            else { return false }
            return [32_803, 34_892].contains(structure.integer(directory[0x0106]))
        }
    }

    private static func format(ofMaker maker: String) -> ImageFormat {
        let maker = maker.uppercased()
        let makers: [(String, ImageFormat)] = [
            ("NIKON", .nef), ("SONY", .arw), ("CANON", .cr2), ("PENTAX", .pef), ("RICOH", .pef), ("SAMSUNG", .srw),
            ("HASSELBLAD", .hasselblad), ("SEIKO EPSON", .erf), ("EPSON", .erf), ("KODAK", .kdc), ("EASTMAN", .kdc),
            ("OLYMPUS", .orf), ("OM DIGITAL", .orf), ("PANASONIC", .rw2), ("LEICA", .rw2), ("PHASE ONE", .iiq),
            ("LEAF", .iiq), ("MAMIYA", .iiq),
        ]
        return makers.first { maker.hasPrefix($0.0) }?.1 ?? .tiffRaw
    }

    // MARK: Images

    package static func pictures(
        _ reader: ByteReader, format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> EmbeddedPictures {
        let structure = try TIFFStructure(reader, 0..<reader.count, allowsRaw: true)
        var walk = RawDirectoryWalk(structure)
        try walk.run()
        return EmbeddedPictures(pictures: walk.found, orientation: walk.orientation)
    }
}

/// A walk over the directories of a raw file: the chain, their subdirectories, and the maker's note.
struct RawDirectoryWalk {
    /// Directories looked at, in all.
    private static let maximumDirectories = 64
    /// Subdirectories of subdirectories.
    private static let maximumDepth = 4
    /// Fields of one directory looked at.
    private static let maximumFields = 512

    private let structure: TIFFStructure
    private var visited: Set<Int> = []
    private var pictures: [EmbeddedPicture] = []
    private var bitmap: EmbeddedPicture?
    /// The turn that the first directory names.
    private(set) var orientation: Orientation?

    init(_ structure: TIFFStructure) {
        self.structure = structure
    }

    /// The images. Uncompressed ones are small, and there for files without any other.
    var found: [EmbeddedPicture] { pictures.isEmpty ? bitmap.map { [$0] } ?? [] : pictures }

    /// - Throws: If the first directory cannot be read.
    mutating func run() throws(ImageError) {
        let first = try structure.directory(at: structure.firstDirectory)
        orientation = structure.integer(first[0x0112]).flatMap(Orientation.init(rawValue:))
        let maker = structure.text(first[0x010F]) ?? ""
        var pending = [(offset: structure.firstDirectory, depth: 0)]
        while let (offset, depth) = pending.popLast() {
            guard visited.count < Self.maximumDirectories, visited.insert(offset).inserted,
                var directory = try? structure.directory(at: offset)
            else { continue }
            directory.fields = Array(directory.fields.prefix(Self.maximumFields))
            take(directory)
            // Last in, first out: subdirectories before the rest of the chain.
            if directory.next != 0 { pending.append((directory.next, depth)) }
            guard depth < Self.maximumDepth else { continue }
            if let field = directory[0x014A] {
                for index in 0..<min(field.count, 16) {
                    structure.integer(field, index).map { pending.append(($0, depth + 1)) }
                }
            }
            structure.integer(directory[0x8769]).map { pending.append(($0, depth + 1)) }
            if let note = structure.bytes(directory[0x927C]) {
                pictures += MakerNote(structure, note, maker: maker).pictures()
            }
        }
    }

    private mutating func take(_ directory: TIFFStructure.Directory) {
        let reader = structure.reader
        func add(_ picture: EmbeddedPicture?) { if let picture { pictures.append(picture) } }
        func place(_ offset: Int, _ count: Int) -> Int? { try? structure.position(offset, count) }
        if let offset = structure.integer(directory[0x0201]), let count = structure.integer(directory[0x0202]),
            let at = place(offset, count)
        {
            add(RawPicture.jpeg(reader, at: at, count: count))
        }
        // The whole JPEG file as a value: JpgFromRaw, JpgFromRaw2.
        for tag in [0x002E, 0x0127] {
            if let range = structure.bytes(directory[tag]), range.count > 4 {
                add(RawPicture.jpeg(reader, at: range.lowerBound, count: range.count))
            }
        }
        guard !isSensorData(directory), let strip = strip(directory), let at = place(strip.offset, strip.count) else {
            return
        }
        switch structure.integer(directory[0x0103]) ?? 1 {
        case 6, 7, 34_892:
            // Without its tables a stream is no JPEG file.
            if directory[0x015B] == nil { add(RawPicture.jpeg(reader, at: at, count: strip.count)) }
        case 52_546: add(RawPicture.jxl(reader, at: at, count: strip.count))
        case 1: takeBitmap(directory, at: at, count: strip.count)
        default: break
        }
    }

    /// Whether a directory describes the values of a sensor, a mask or a depth map.
    private func isSensorData(_ directory: TIFFStructure.Directory) -> Bool {
        let kind = structure.integer(directory[0x00FE]) ?? 0
        guard kind & 0xFFFF <= 3, kind >> 16 <= 1 else { return true }
        // The slices of Canon's sensor data.
        if directory[0xC640] != nil { return true }
        return [32_803, 34_892, 51_177, 52_527].contains(structure.integer(directory[0x0106]))
    }

    /// The place of an image that is stored in one piece: one strip, or one tile.
    private func strip(_ directory: TIFFStructure.Directory) -> (offset: Int, count: Int)? {
        for (offsets, counts) in [(0x0111, 0x0117), (0x0144, 0x0145)] {
            guard let offset = directory[offsets], let count = directory[counts], offset.count == 1, count.count == 1,
                let start = structure.integer(offset), let length = structure.integer(count)
            else { continue }
            return (start, length)
        }
        return nil
    }

    private mutating func takeBitmap(_ directory: TIFFStructure.Directory, at offset: Int, count: Int) {
        guard let width = structure.integer(directory[0x0100]), let height = structure.integer(directory[0x0101]),
            (1...1_024).contains(width), (1...1_024).contains(height), 3 * width * height <= count,
            structure.integer(directory[0x0106]) == 2, structure.integer(directory[0x0115]) == 3,
            (structure.integer(directory[0x011C]) ?? 1) == 1,
            (0..<3).allSatisfy({ structure.integer(directory[0x0102], $0) == 8 })
        else { return }
        let size = PixelSize(width: width, height: height)
        guard size.pixelCount > bitmap?.size?.pixelCount ?? 0 else { return }
        bitmap =
            RawPicture.bitmap(structure.reader, at: offset, size: size, stride: 3 * width) ?? bitmap
    }
}
