import VitrineImageCore

/// Marker codes of a JPEG file, the byte behind 0xFF (ITU-T T.81 table B.1), as far as decoding looks at them.
enum JPEGMarker {
    static let temporary: UInt8 = 0x01
    static let progressiveFrame: UInt8 = 0xC2
    static let huffmanTables: UInt8 = 0xC4
    static let arithmeticExtension: UInt8 = 0xC8
    static let arithmeticConditioning: UInt8 = 0xCC
    static let firstRestart: UInt8 = 0xD0
    static let lastRestart: UInt8 = 0xD7
    static let startOfImage: UInt8 = 0xD8
    static let endOfImage: UInt8 = 0xD9
    static let startOfScan: UInt8 = 0xDA
    static let quantizationTables: UInt8 = 0xDB
    static let restartInterval: UInt8 = 0xDD
    static let application0: UInt8 = 0xE0
    static let application2: UInt8 = 0xE2
    static let application14: UInt8 = 0xEE

    /// Whether the marker stands alone, without a length behind it.
    static func isStandalone(_ marker: UInt8) -> Bool {
        marker == temporary || (marker >= firstRestart && marker <= endOfImage)
    }

    static func isRestart(_ marker: UInt8) -> Bool { marker >= firstRestart && marker <= lastRestart }

    /// Whether the marker starts a frame of any process, also of those without a decoder here.
    static func isFrame(_ marker: UInt8) -> Bool {
        marker >= 0xC0 && marker <= 0xCF && marker != huffmanTables && marker != arithmeticExtension
            && marker != arithmeticConditioning
    }
}

/// The frame header of a JPEG file: size, process and components (ITU-T T.81 §B.2.2).
struct JPEGFrame {
    struct Component {
        var id: UInt8
        /// Sampling factors, 1...4.
        var horizontal: Int
        var vertical: Int
        /// The quantisation table it uses, 0...3.
        var quantization: Int
    }

    /// Why a frame header is refused.
    enum Refusal: Error {
        case corrupt(String)
        case unsupported(String)
    }

    var width: Int
    var height: Int
    var isProgressive: Bool
    var components: [Component]
    var maximumHorizontal = 1
    var maximumVertical = 1

    /// Reads the body of an SOF segment.
    init(marker: UInt8, _ body: UnsafeBufferPointer<UInt8>) throws(Refusal) {
        guard marker <= JPEGMarker.progressiveFrame else { throw .unsupported("lossless, hierarchical or arithmetic") }
        guard body.count >= 6 else { throw .corrupt("frame header too short") }
        guard body[0] == 8 else { throw .unsupported("\(body[0]) bits a sample") }
        isProgressive = marker == JPEGMarker.progressiveFrame
        height = Int(body[1]) << 8 | Int(body[2])
        width = Int(body[3]) << 8 | Int(body[4])
        let count = Int(body[5])
        guard width > 0, height > 0 else { throw .unsupported("no size in the frame header") }
        guard count == 1 || count == 3 else { throw .unsupported("\(count) components") }
        guard body.count >= 6 + 3 * count else { throw .corrupt("frame header too short") }
        components = (0..<count).map { i in
            let factors = body[7 + 3 * i]
            return Component(
                id: body[6 + 3 * i], horizontal: Int(factors >> 4), vertical: Int(factors & 15),
                quantization: Int(body[8 + 3 * i]))
        }
        for component in components {
            guard 1...4 ~= component.horizontal, 1...4 ~= component.vertical, component.quantization < 4 else {
                throw .corrupt("sampling factors or table out of range")
            }
        }
        guard Set(components.map(\.id)).count == count else { throw .unsupported("components share a name") }
        if count == 1 {
            // A single component is never interleaved, so its factors mean nothing (§A.2.2).
            components[0].horizontal = 1
            components[0].vertical = 1
        }
        maximumHorizontal = components.map(\.horizontal).max() ?? 1
        maximumVertical = components.map(\.vertical).max() ?? 1
    }

    /// Whether colour has half the columns of brightness and all its rows: 4:2:2.
    var hasHalvedColumns: Bool {
        components.count == 3 && components.allSatisfy { $0.vertical == maximumVertical }
            && components[0].horizontal == maximumHorizontal
            && components.dropFirst().allSatisfy { 2 * $0.horizontal == maximumHorizontal }
    }

    /// MCUs a row and rows of MCUs of an interleaved scan.
    var mcuColumns: Int { (width + 8 * maximumHorizontal - 1) / (8 * maximumHorizontal) }
    var mcuRows: Int { (height + 8 * maximumVertical - 1) / (8 * maximumVertical) }

    /// Blocks a row and rows of blocks that a component's samples fill: the MCUs of a scan of its own (§A.2.3).
    func blocks(of component: Int) -> PixelSize {
        let c = components[component]
        let samples = PixelSize(
            width: (width * c.horizontal + maximumHorizontal - 1) / maximumHorizontal,
            height: (height * c.vertical + maximumVertical - 1) / maximumVertical)
        return PixelSize(width: (samples.width + 7) / 8, height: (samples.height + 7) / 8)
    }
}

/// The header of a scan (ITU-T T.81 §B.2.3).
struct JPEGScanHeader {
    /// Indices into the frame's components, and the tables each uses.
    var components: [(index: Int, dcTable: Int, acTable: Int)]
    /// First and last coefficient, by zigzag index.
    var spectralStart: Int
    var spectralEnd: Int
    /// Bit positions of successive approximation (Ah, Al).
    var approximationHigh: Int
    var approximationLow: Int

    /// Reads the body of an SOS segment; nil when it breaks the rules or names components the frame does not have.
    init?(_ body: UnsafeBufferPointer<UInt8>, frame: JPEGFrame) {
        guard let first = body.first else { return nil }
        let count = Int(first)
        guard 1...frame.components.count ~= count, body.count >= 4 + 2 * count else { return nil }
        components = []
        for i in 0..<count {
            let id = body[1 + 2 * i]
            let tables = body[2 + 2 * i]
            guard let index = frame.components.firstIndex(where: { $0.id == id }),
                !components.contains(where: { $0.index == index }), tables >> 4 < 4, tables & 15 < 4
            else { return nil }
            components.append((index, Int(tables >> 4), Int(tables & 15)))
        }
        spectralStart = Int(body[1 + 2 * count])
        spectralEnd = Int(body[2 + 2 * count])
        approximationHigh = Int(body[3 + 2 * count] >> 4)
        approximationLow = Int(body[3 + 2 * count] & 15)
        guard approximationLow <= 13 else { return nil }
    }

    /// Whether it is the first to bring the DC coefficients of its components, in a progressive file.
    var isFirstDC: Bool { spectralStart == 0 && approximationHigh == 0 }
}

/// The frame header and the complete scans of a growing prefix of a JPEG file.
///
/// Each byte is read once, however many pieces the prefix comes in.
struct JPEGScanIndex: Sendable {
    /// The frame header, once it is there.
    private(set) var frame: JPEGFrame?
    /// Scans whose data is followed by another marker.
    private(set) var completeScans = 0
    /// How many of them it took until the DC coefficients of all components were there; nil before that.
    private(set) var scansToMeans: Int?
    /// Where the first scan's data starts.
    private(set) var firstScanOffset: Int?
    /// Where the last whole scan's data ends.
    private(set) var completeEnd = 0
    /// Whether the end of the image has been reached.
    private(set) var isAtEnd = false
    /// Whether nothing can be made of the bytes: not a JPEG file, or a broken or unsupported header.
    private(set) var isHopeless = false
    private var offset = 0
    private var scan: JPEGScanHeader?
    private var componentsWithDC: Set<Int> = []

    /// Continues after the last byte of the previous call. `bytes` starts with the bytes of earlier calls.
    mutating func advance(over bytes: UnsafeBufferPointer<UInt8>) {
        if offset == 0 {
            guard bytes.count >= 2 else { return }
            isHopeless = bytes[0] != 0xFF || bytes[1] != JPEGMarker.startOfImage
            offset = 2
        }
        while !isAtEnd && !isHopeless {
            guard scan == nil ? readSegment(bytes) : readEntropy(bytes) else { return }
        }
    }

    /// Looks for the end of a scan's data; false when the bytes end first.
    private mutating func readEntropy(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var i = offset
        while i + 1 < bytes.count {
            if bytes[i] != 0xFF {
                i += 1
            } else if bytes[i + 1] == 0 || JPEGMarker.isRestart(bytes[i + 1]) {
                i += 2
            } else if bytes[i + 1] == 0xFF {
                i += 1
            } else {
                offset = i
                finishScan()
                return true
            }
        }
        offset = i
        return false
    }

    private mutating func finishScan() {
        guard let finished = scan else { return }
        scan = nil
        completeScans += 1
        completeEnd = offset
        if finished.isFirstDC || frame?.isProgressive == false {
            componentsWithDC.formUnion(finished.components.map(\.index))
        }
        if scansToMeans == nil, componentsWithDC.count == frame?.components.count { scansToMeans = completeScans }
    }

    /// Reads one marker segment; false when it is not whole yet.
    private mutating func readSegment(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard offset + 1 < bytes.count else { return false }
        let marker = bytes[offset + 1]
        if bytes[offset] != 0xFF || marker == 0xFF || marker == 0 {
            offset += 1
            return true
        }
        if marker == JPEGMarker.endOfImage {
            isAtEnd = true
            return true
        }
        if JPEGMarker.isStandalone(marker) {
            offset += 2
            return true
        }
        guard offset + 3 < bytes.count else { return false }
        let length = Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])
        guard length >= 2 else {
            isHopeless = true
            return true
        }
        guard offset + 2 + length <= bytes.count else { return false }
        let body = UnsafeBufferPointer(rebasing: bytes[(offset + 4)..<(offset + 2 + length)])
        offset += 2 + length
        if JPEGMarker.isFrame(marker) {
            readFrame(marker, body)
        } else if marker == JPEGMarker.startOfScan {
            scan = frame.flatMap { JPEGScanHeader(body, frame: $0) }
            isHopeless = scan == nil
            if firstScanOffset == nil { firstScanOffset = offset }
        }
        return true
    }

    private mutating func readFrame(_ marker: UInt8, _ body: UnsafeBufferPointer<UInt8>) {
        guard frame == nil, let new = try? JPEGFrame(marker: marker, body) else {
            isHopeless = true
            return
        }
        frame = new
    }
}

/// The colour model of a JPEG file by its application segments.
struct JPEGColorHints {
    var hasJFIF = false
    /// The transform flag of an Adobe segment: 0 none, 1 Y′CbCr, 2 YCCK.
    var adobeTransform: UInt8?

    /// Reads APP0 or APP14; other segments and other owners of these are passed over.
    mutating func read(marker: UInt8, _ body: UnsafeBufferPointer<UInt8>) {
        if marker == JPEGMarker.application0, body.count >= 5, body.prefix(5).elementsEqual("JFIF\0".utf8) {
            hasJFIF = true
        } else if marker == JPEGMarker.application14, body.count >= 12, body.prefix(5).elementsEqual("Adobe".utf8) {
            adobeTransform = body[11]
        }
    }

    /// Whether three components are red, green and blue rather than Y′CbCr.
    ///
    /// The order of precedence is that of libjpeg (`jdapimin.c`, `default_decompress_parms`), which every viewer
    /// follows: JFIF means Y′CbCr, then Adobe's flag counts, then the components' names.
    func isRGB(_ components: [JPEGFrame.Component]) -> Bool {
        guard components.count == 3, !hasJFIF else { return false }
        if let adobeTransform { return adobeTransform == 0 }
        return components.map(\.id).elementsEqual("RGB".utf8)
    }
}
