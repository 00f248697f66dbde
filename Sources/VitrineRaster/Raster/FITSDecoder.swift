import VitrineCore
import VitrineImageCore

/// Decodes uncompressed FITS images of any sample type, in Swift alone: grey, or colour for a cube of three planes.
///
/// The first image of two dimensions or more is the image. Samples between the percentiles 0.5 and 99.5 become 0 to
/// 255, linearly; those are of pixels on a grid of at most 256 by 256, so that all sizes look alike. The first row
/// stored is the lowest.
///
/// Source: "Definition of the Flexible Image Transport System", version 4.0 (IAU, 2018).
package struct FITSDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.fits]

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try FITSHeader(reader)
        var info = ImageInfo(format: .fits, storedSize: header.size)
        info.orientation = .downMirrored
        info.colorModel = header.planes == 3 ? .rgb : .gray
        info.bitDepth = abs(header.bits)
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try FITSHeader(ByteReader(source))
        try request.limits.check(storedSize: header.size, input: source.name)
        let planeBytes = header.size.height * header.rowBytes
        try request.require(header.planes * planeBytes, of: source, at: header.offset)
        let (low, high) = try Self.range(source, header)
        let scale = high > low ? 255 / (high - low) : 0
        var rows = try RowCollector(source, request, size: header.size, channels: header.planes)
        var isPartial = false
        do throws(ImageError) {
            var streams = (0..<header.planes).map { ByteStream(source, from: header.offset + $0 * planeBytes) }
            let stored = RowBuffer(header.rowBytes)
            while !rows.isComplete {
                let row = rows.row
                for plane in streams.indices {
                    try streams[plane].take(stored.count, into: stored.bytes)
                    for x in 0..<header.size.width {
                        let level = (header.value(stored.bytes, x) - low) * scale + 0.5
                        row[x &* header.planes &+ plane] = level >= 1 ? (level < 255 ? UInt8(level) : 255) : 0
                    }
                }
                try rows.advance()
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }

    /// The distance of the grid's rows or columns in a side of so many pixels.
    private static func step(_ side: Int) -> Int { (side + 255) / 256 }

    private static func range(_ source: ByteSource, _ header: FITSHeader) throws(ImageError) -> (Double, Double) {
        let (across, down) = (step(header.size.width), step(header.size.height))
        let stored = RowBuffer(header.rowBytes)
        var values: [Double] = []
        for plane in 0..<header.planes {
            for y in stride(from: 0, to: header.size.height, by: down) {
                let at = header.offset + (plane * header.size.height + y) * header.rowBytes
                var stream = ByteStream(source, from: at, capacity: 4 << 10)
                guard try stream.read(stored.count, into: stored.bytes) == stored.count else { break }
                for x in stride(from: 0, to: header.size.width, by: across) {
                    let value = header.value(stored.bytes, x)
                    if value.isFinite { values.append(value) }
                }
            }
        }
        guard !values.isEmpty else { return (0, 1) }
        values.sort()
        let last = Double(values.count - 1)
        return (values[Int(last * 0.005)], values[Int(last * 0.995)])
    }
}

struct FITSHeader {
    private static let block = 2_880
    private static let card = 80
    private static let maximumUnits = 64
    private static let maximumCards = 36 * 256

    var size = PixelSize.zero
    /// 1, or 3 for red, green and blue.
    var planes = 1
    /// Bits a sample; negative for floating-point numbers.
    var bits = 0
    var scale = 1.0
    var zero = 0.0
    /// The number that stands for no value.
    var blank: Int?
    var offset = 0

    var rowBytes: Int { size.width * abs(bits) / 8 }

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        guard reader.matches("SIMPLE  =", at: 0) else { throw .notAnImage(input: reader.name) }
        var at = 0
        for unit in 0..<FITSHeader.maximumUnits where at + FITSHeader.card <= reader.count {
            var values: [String: String] = [:]
            var isEnded = false
            for _ in 0..<FITSHeader.maximumCards {
                let bytes = try reader.bytes(reader.range(at: at, count: FITSHeader.card))
                let card = String(decoding: bytes, as: UTF8.self)
                at += FITSHeader.card
                let key = card.prefix(8).split(separator: " ").first.map(String.init) ?? ""
                if key == "END" {
                    isEnded = true
                    break
                }
                guard card.dropFirst(8).hasPrefix("= ") else { continue }
                let value = card.dropFirst(10).split(separator: "/", omittingEmptySubsequences: false).first ?? ""
                values[key] = value.split(separator: " ").joined(separator: " ")
            }
            guard isEnded else { throw reader.corrupt("a header without an end") }
            at = (at + FITSHeader.block - 1) / FITSHeader.block * FITSHeader.block
            func number(_ key: String) -> Int? { values[key].flatMap { Int($0) } }
            func real(_ key: String) -> Double? {
                values[key].flatMap { Double($0.replacing("D", with: "E")) }.flatMap { $0.isFinite ? $0 : nil }
            }
            bits = number("BITPIX") ?? 0
            let axes = (0..<max(0, min(number("NAXIS") ?? 0, 999))).map { number("NAXIS\($0 + 1)") ?? 0 }
            guard [8, 16, 32, 64, -32, -64].contains(bits), axes.allSatisfy({ $0 >= 0 }) else {
                throw reader.corrupt("BITPIX \(bits)")
            }
            let isImage = unit == 0 || values["XTENSION"]?.hasPrefix("'IMAGE") == true
            if isImage, axes.count >= 2, axes[0] > 0, axes[1] > 0 {
                size = PixelSize(width: axes[0], height: axes[1])
                planes = axes.count == 3 && axes[2] == 3 ? 3 : 1
                (scale, zero) = (real("BSCALE") ?? 1, real("BZERO") ?? 0)
                blank = bits > 0 ? number("BLANK") : nil
                offset = at
                return
            }
            // On behind the data of this unit, in whole blocks.
            var count = axes.isEmpty ? 0 : abs(bits) / 8
            for axis in axes {
                let product = count.multipliedReportingOverflow(by: axis)
                count = product.overflow ? .max : product.partialValue
            }
            let heap = max(0, number("PCOUNT") ?? 0)
            guard count <= reader.count - at, heap <= reader.count - at - count else { break }
            at += (count + heap + FITSHeader.block - 1) / FITSHeader.block * FITSHeader.block
        }
        throw .unsupported(input: reader.name, reason: "the file has no uncompressed image of two dimensions")
    }

    /// The physical value of a stored sample; not a number where there is none.
    @inline(__always)
    func value(_ row: UnsafeMutablePointer<UInt8>, _ x: Int) -> Double {
        let base = UnsafeRawPointer(row)
        let stored: Int
        switch bits {
        case 8: stored = Int(row[x])
        case 16: stored = Int(Int16(bigEndian: (base + 2 &* x).loadUnaligned(as: Int16.self)))
        case 32: stored = Int(Int32(bigEndian: (base + 4 &* x).loadUnaligned(as: Int32.self)))
        case 64: stored = Int(Int64(bigEndian: (base + 8 &* x).loadUnaligned(as: Int64.self)))
        case -32:
            let bits = UInt32(bigEndian: (base + 4 &* x).loadUnaligned(as: UInt32.self))
            return zero + scale * Double(Float(bitPattern: bits))
        default:
            let bits = UInt64(bigEndian: (base + 8 &* x).loadUnaligned(as: UInt64.self))
            return zero + scale * Double(bitPattern: bits)
        }
        return stored == blank ? .nan : zero + scale * Double(stored)
    }
}
