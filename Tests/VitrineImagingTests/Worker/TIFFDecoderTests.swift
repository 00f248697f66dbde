import Testing
import VitrineCore
import VitrineImaging

/// Varieties of TIFF that libvips rejects or reads wrongly, written here: 96 × 64, in four quadrants or two halves.
@Suite(.serialized) struct TIFFDecoderTests {
    private static let pool = WorkerFixture.pool(1)
    private static let halves = [[64], [200], [64], [200]]

    private static func image(
        _ sample: TIFFSample, at target: PixelSize? = nil, allowsPartial: Bool = false
    ) throws -> DecodedImage {
        let source = ByteSource(bytes: sample.bytes, name: "sample")
        return try pool.decode(
            source,
            DecodeRequest(
                info: try ImageInfo(reading: source, limits: .standard), target: target,
                options: DecodeOptions(allowsPartial: allowsPartial)))
    }

    /// Checks both every pixel and blocks of them.
    private static func expect(
        _ sample: TIFFSample, _ colors: [[Int]], tolerance: Int = 1, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for target in [nil, PixelSize(width: 12, height: 8)] {
            let image = try image(sample, at: target)
            #expect(image.planes[0].width == (target == nil ? 96 : 20), sourceLocation: sourceLocation)
            #expect(image.shows(colors, tolerance: tolerance), sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: [2, 4, 10, 12, 14, 16], [false, true])
    func readsSamplesOfAnyDepth(bits: Int, isSeparate: Bool) throws {
        try Self.expect(.rgb(bits: bits, isSeparate: isSeparate), DecodedImage.quadrants)
    }

    @Test(arguments: [6, 10, 12, 14], [false, true])
    func readsGrayOfAnyDepthInEitherDirection(bits: Int, isWhiteZero: Bool) throws {
        var sample = TIFFSample(.gray, bits: bits)
        sample.photometric = isWhiteZero ? 0 : 1
        if isWhiteZero { sample.planes[0] = sample.planes[0].map { sample.most - $0 } }
        try Self.expect(sample, Self.halves, tolerance: bits == 6 ? 2 : 1)
    }

    @Test(arguments: [8, 12, 16])
    func readsTilesInSeparatePlanes(bits: Int) throws {
        var sample = TIFFSample.rgb(bits: bits, isSeparate: true)
        sample.tile = PixelSize(width: 32, height: 16)
        try Self.expect(sample, DecodedImage.quadrants)
        // Tiles that reach beyond the picture.
        sample.tile = PixelSize(width: 80, height: 48)
        try Self.expect(sample, DecodedImage.quadrants)
    }

    @Test(arguments: [(1, 1), (2, 1), (2, 2), (4, 2)])
    func readsChromaOfAnySize(across: Int, down: Int) throws {
        try Self.expect(.yCbCr(across: across, down: down), DecodedImage.quadrants, tolerance: 2)
    }

    @Test func readsJPEGOfTheFirstKind() throws {
        let picture = try ImageDecoder().decode(.file(try Fixture.path("worker/quadrants.png")))
        let jpeg = try picture.encoded(as: .jpeg(quality: 0.95))
        let frame = try #require(jpeg.indices.first { jpeg[$0...].starts(with: [0xFF, 0xC0]) })
        var sample = TIFFSample(.rgb, bits: 8)
        sample.photometric = 6
        sample.compression = 6
        sample.data = jpeg
        let sampling = jpeg[frame + 11]
        sample.fields[530] = (3, [Int(sampling >> 4), Int(sampling & 15)])
        sample.fields[513] = (4, [TIFFSample.dataOffset])
        sample.fields[514] = (4, [jpeg.count])
        try Self.expect(sample, DecodedImage.quadrants, tolerance: 3)
    }

    @Test func takesThePhotometricInterpretationFromTheSamplesWhenItIsMissing() throws {
        for layout in [TIFFSample.Layout.rgb, .gray] {
            var sample = TIFFSample(layout, bits: 8)
            sample.photometric = nil
            try Self.expect(sample, layout == .gray ? Self.halves : DecodedImage.quadrants)
        }
    }

    @Test(arguments: [[2, 0], [0, 2], [0, 0, 2]])
    func takesAlphaFromWhereverItStandsAmongExtraSamples(kinds: [Int]) throws {
        for layout in [TIFFSample.Layout.rgb, .gray] {
            var sample = TIFFSample(layout, bits: 8)
            for kind in kinds { sample.planes.append([Int](repeating: kind == 2 ? 128 : 33, count: 96 * 64)) }
            sample.fields[338] = (3, kinds)
            let image = try Self.image(sample)
            #expect(image.alpha == .straight && image.planes[0].channels == (layout == .gray ? 2 : 4))
            #expect(Self.alphas(image) == [128])
            let colors = layout == .gray ? [[64, 128], [200, 128], [64, 128], [200, 128]] : DecodedImage.quadrants
            #expect(image.shows(colors, tolerance: 0))
            let reduced = try Self.image(sample, at: PixelSize(width: 12, height: 8))
            #expect(reduced.alpha == .premultiplied && Self.alphas(reduced) == [128])
        }
    }

    @Test func takesAnExtraSampleThatIsNoAlphaForNone() throws {
        var sample = TIFFSample(.rgb, bits: 8)
        sample.planes.append([Int](repeating: 0, count: 96 * 64))
        sample.fields[338] = (3, [0])
        #expect(try Self.image(sample).alpha == .none)
        try Self.expect(sample, DecodedImage.quadrants)
        // Without the field, programs write four samples for colours and alpha.
        sample.fields[338] = nil
        #expect(Self.alphas(try Self.image(sample)) == [0])
    }

    /// CIELab of 55, -32, 20 is this green, relative to the white of the file (computed by libvips from 16 bits).
    @Test(arguments: [8, 9])
    func convertsLabOfEightBits(photometric: Int) throws {
        var sample = TIFFSample(.rgb, bits: 8)
        sample.photometric = photometric
        let offset = photometric == 9 ? 128 : 0
        sample.planes = [140, (offset - 32) & 255, offset + 20].map { [Int](repeating: $0, count: 96 * 64) }
        try Self.expect(sample, [[Int]](repeating: [80, 145, 96], count: 4), tolerance: 1)
        sample.planes.append([Int](repeating: 128, count: 96 * 64))
        sample.fields[338] = (3, [2])
        let image = try Self.image(sample)
        #expect(Self.alphas(image) == [128] && image.sample(0.5, 0.5) == [80, 145, 96])
    }

    @Test func leavesToLibvipsWhatItReads() throws {
        for name in ["quadrants.tif", "deep.tif", "lab.tif", "pages.tif"] {
            #expect {
                try Self.pool.decode(
                    WorkerFixture.source(name), WorkerFixture.request(.tiff, 96, 64), decoder: "TIFFDecoder")
            } throws: { ($0 as? ImageError).map { isSameCase($0, .unsupported(input: "", reason: "")) } ?? false }
        }
    }

    @Test func tellsATruncatedFileOrDeliversThePartThatIsThere() throws {
        var sample = TIFFSample.rgb(bits: 12, isSeparate: false)
        sample.lostBytes = 5_000
        #expect(throws: ImageError.truncated(input: "sample")) { try Self.image(sample) }
        let partial = try Self.image(sample, allowsPartial: true)
        #expect(partial.isPartial && partial.sample(0.2, 0.2) == [255, 0, 0])
        #expect(partial.sample(0.2, 0.99) == [0, 0, 0])
    }

    @Test func boundsPixelsAndSides() throws {
        var limits = ImageLimits()
        limits.maximumPixels = 6_143
        let source = ByteSource(bytes: TIFFSample.rgb(bits: 12, isSeparate: true).bytes, name: "sample")
        #expect(throws: ImageError.limitExceeded(input: "sample", limit: .pixels, actual: 6_144, allowed: 6_143)) {
            try Self.pool.decode(source, WorkerFixture.request(.tiff, 1, 1, limits: limits))
        }
        limits.maximumSide = 95
        #expect(throws: ImageError.limitExceeded(input: "sample", limit: .side, actual: 96, allowed: 95)) {
            try Self.pool.decode(source, WorkerFixture.request(.tiff, 1, 1, limits: limits))
        }
    }

    private static func alphas(_ image: DecodedImage) -> Set<UInt8> {
        let channels = image.planes[0].channels
        return Set(stride(from: channels - 1, to: image.firstPlane.count, by: channels).map { image.firstPlane[$0] })
    }
}

/// An uncompressed TIFF of 96 × 64 pixels, or one around given data.
struct TIFFSample {
    enum Layout { case gray, rgb }

    /// Where the data begins.
    static let dataOffset = 8

    var photometric: Int?
    var compression = 1
    var bits: Int
    var isSeparate = false
    /// One list of samples for each channel.
    var planes: [[Int]]
    var tile: PixelSize?
    /// Further fields: their type and values.
    var fields: [Int: (type: Int, values: [Int])] = [:]
    /// The data, in the place of the samples.
    var data: [UInt8]?
    /// Bytes of the data that the fields promise and the file does not have.
    var lostBytes = 0

    var most: Int { 1 << bits - 1 }

    init(_ layout: Layout, bits: Int) {
        self.bits = bits
        let most = 1 << bits - 1
        func plane(_ values: [Int]) -> [Int] {
            (0..<(96 * 64)).map { values[($0 / 96 < 32 ? 0 : 2) + ($0 % 96 < 48 ? 0 : 1)] }
        }
        switch layout {
        case .gray:
            photometric = 1
            planes = [plane([64, 200, 64, 200].map { ($0 * most + 127) / 255 })]
        case .rgb:
            photometric = 2
            planes = (0..<3).map { channel in plane(DecodedImage.quadrants.map { $0[channel] * most / 255 }) }
        }
    }

    static func rgb(bits: Int, isSeparate: Bool) -> TIFFSample {
        var sample = TIFFSample(.rgb, bits: bits)
        sample.isSeparate = isSeparate
        return sample
    }

    /// Y′CbCr in units of one pair of chroma samples (TIFF 6.0 §21).
    static func yCbCr(across: Int, down: Int) -> TIFFSample {
        var sample = TIFFSample(.rgb, bits: 8)
        sample.photometric = 6
        func mixed(_ weights: [Double], _ offset: Double) -> [UInt8] {
            (0..<(96 * 64)).map { i in
                let sum = (0..<3).reduce(offset) { $0 + Double(sample.planes[$1][i]) * weights[$1] }
                return UInt8(min(max(sum.rounded(), 0), 255))
            }
        }
        let luma = mixed([0.299, 0.587, 0.114], 0)
        let blue = mixed([-0.168736, -0.331264, 0.5], 128), red = mixed([0.5, -0.418688, -0.081312], 128)
        var data: [UInt8] = []
        for y in stride(from: 0, to: 64, by: down) {
            for x in stride(from: 0, to: 96, by: across) {
                for row in y..<(y + down) { data += luma[(row * 96 + x)..<(row * 96 + x + across)] }
                data += [blue[y * 96 + x], red[y * 96 + x]]
            }
        }
        sample.data = data
        sample.fields[530] = (3, [across, down])
        sample.fields[532] = (5, [0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1])
        return sample
    }

    var bytes: [UInt8] {
        let pieces = data.map { [$0] } ?? self.pieces
        var data: [UInt8] = [], offsets: [Int] = []
        for piece in pieces {
            offsets.append(Self.dataOffset + data.count)
            data += piece
        }
        var fields = fields
        fields[256] = (4, [96])
        fields[257] = (4, [64])
        fields[258] = (3, [Int](repeating: bits, count: planes.count))
        fields[259] = (3, [compression])
        if let photometric { fields[262] = (3, [photometric]) }
        fields[277] = (3, [planes.count])
        fields[284] = (3, [isSeparate ? 2 : 1])
        if let tile {
            fields[322] = (4, [tile.width])
            fields[323] = (4, [tile.height])
        } else {
            fields[278] = (4, [64])
        }
        fields[tile == nil ? 273 : 324] = (4, offsets)
        fields[tile == nil ? 279 : 325] = (4, pieces.map(\.count))
        // The directory stands in front of the data that may be cut, behind which nothing is left.
        return Self.file(fields, data.dropLast(lostBytes), isDataLast: lostBytes > 0)
    }

    private static func file(
        _ fields: [Int: (type: Int, values: [Int])], _ data: ArraySlice<UInt8>, isDataLast: Bool
    ) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
        func encoded(_ field: (type: Int, values: [Int])) -> [UInt8] {
            field.values.flatMap { number($0, field.type == 3 ? 2 : 4) }
        }
        let size = 2 + 12 * fields.count + 4
        let values = fields.values.reduce(0) { $0 + (encoded($1).count > 4 ? encoded($1).count : 0) }
        let start = isDataLast ? dataOffset : dataOffset + data.count
        let moved = isDataLast ? size + values : 0
        var directory = number(fields.count, 2), behind: [UInt8] = []
        for (tag, field) in fields.sorted(by: { $0.key < $1.key }) {
            var field = field
            if moved > 0, tag == 273 || tag == 324 { field.values = field.values.map { $0 + moved } }
            let bytes = encoded(field)
            directory += number(tag, 2) + number(field.type, 2)
            directory += number(field.type == 5 ? field.values.count / 2 : field.values.count, 4)
            if bytes.count > 4 {
                directory += number(start + size + behind.count, 4)
                behind += bytes
            } else {
                directory += bytes + [UInt8](repeating: 0, count: 4 - bytes.count)
            }
        }
        directory += number(0, 4)
        let head = Array("II*\0".utf8) + number(start, 4)
        return isDataLast ? head + directory + behind + data : head + data + directory + behind
    }

    /// Strips or tiles, each row of which begins with a byte of its own.
    private var pieces: [[UInt8]] {
        let size = tile ?? PixelSize(width: 96, height: 64)
        let groups = isSeparate ? planes.map { [$0] } : [planes]
        var pieces: [[UInt8]] = []
        for group in groups {
            for top in stride(from: 0, to: 64, by: size.height) {
                for left in stride(from: 0, to: 96, by: size.width) {
                    var piece: [UInt8] = []
                    for y in top..<(top + size.height) {
                        let row = (left..<(left + size.width)).flatMap { x in
                            group.map { x < 96 && y < 64 ? $0[y * 96 + x] : 0 }
                        }
                        piece += packed(row)
                    }
                    pieces.append(piece)
                }
            }
        }
        return pieces
    }

    private func packed(_ row: [Int]) -> [UInt8] {
        // 16 bits are numbers in the order of the file, other depths run from the highest bit on.
        if bits == 16 { return row.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] } }
        var bytes = [UInt8](repeating: 0, count: (row.count * bits + 7) / 8)
        for (index, value) in row.enumerated() {
            for bit in 0..<bits where value >> (bits - 1 - bit) & 1 == 1 {
                let at = index * bits + bit
                bytes[at / 8] |= 0x80 >> UInt8(at % 8)
            }
        }
        return bytes
    }
}
