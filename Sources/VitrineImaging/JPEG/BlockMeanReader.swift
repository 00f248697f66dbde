import VitrineCore

/// One block-mean decode of a JPEG file: walks the segments and hands scans to ``BlockMeanLoop``.
struct BlockMeanReader: ~Copyable {
    /// What a decode gives.
    struct Result {
        var image: DecodedImage
        var isProgressive: Bool
        /// How much of the height is there, from 0 to 1; less than 1 only in partial results.
        var completeness: Double
    }

    /// Why a scan is not whole.
    enum Damage {
        case truncated
        case corrupt(String)
    }

    let scale: BlockMeanScale
    let limits: ImageLimits
    let allowPartial: Bool
    let cancellation: JPEGCancellation
    var window: JPEGInputWindow
    var feed: JPEGEntropyFeed
    var frame: JPEGFrame?
    var planes: [BlockMeanPlane] = []
    /// How many rows of MCUs of each component's scan are done, and out of how many.
    var progress: [(done: Int, of: Int)] = []
    /// Which low AC coefficients of each component are yet to come.
    var missingLow: [Set<Int>] = []
    var hints = JPEGColorHints()
    var dcTables = [JPEGHuffmanTable?](repeating: nil, count: 4)
    var acTables = [JPEGHuffmanTable?](repeating: nil, count: 4)
    /// Steps of coefficients (0,0), (0,1), (1,0) and (1,1) of each quantisation table.
    var steps = [SIMD4<Int32>?](repeating: nil, count: 4)
    var restartInterval = 0
    var damage: Damage?

    init(
        _ source: ByteSource, scale: BlockMeanScale, limits: ImageLimits, allowPartial: Bool,
        cancellation: CancellationToken
    ) {
        self.scale = scale
        self.limits = limits
        self.allowPartial = allowPartial
        self.cancellation = JPEGCancellation(token: cancellation, input: source.name)
        window = JPEGInputWindow(source)
        feed = JPEGEntropyFeed(inputSize: source.count)
    }

    private var name: String { window.source.name }

    func corrupt(_ reason: String) -> ImageError { .corrupt(input: window.source.name, reason: reason) }

    func unsupported(_ reason: String) -> ImageError { .unsupported(input: window.source.name, reason: reason) }

    /// Reads until every component has its samples; what comes behind is not read.
    mutating func decode() throws(ImageError) -> Result {
        guard window.source.count > 0 else { throw .empty(input: name) }
        guard try window.require(2) else { throw .truncated(input: name) }
        guard window.bytes[0] == 0xFF, window.bytes[1] == JPEGMarker.startOfImage else {
            throw corrupt("no start of image")
        }
        window.consume(2)
        while !isComplete && damage == nil {
            try cancellation.check()
            guard try window.seekMarker(cancellation) else {
                damage = .truncated
                break
            }
            if window.bytes[1] == JPEGMarker.endOfImage {
                // A file may leave out coefficients, but no component.
                if !hasMeans { damage = .truncated }
                break
            }
            let marker = window.bytes[1]
            if JPEGMarker.isStandalone(marker) {
                window.consume(2)
            } else {
                try readSegment(marker)
            }
        }
        try judgeDamage()
        return try makeResult()
    }

    private var hasMeans: Bool { !progress.isEmpty && progress.allSatisfy { $0.done >= $0.of } }

    private var isComplete: Bool { hasMeans && missingLow.allSatisfy(\.isEmpty) }

    /// Throws what is wrong, unless a partial picture may be given and there is one.
    private func judgeDamage() throws(ImageError) {
        guard let damage else { return }
        if allowPartial && progress.contains(where: { $0.done > 0 }) { return }
        switch damage {
        case .truncated: throw .truncated(input: name)
        case .corrupt(let reason): throw corrupt(reason)
        }
    }

    private mutating func readSegment(_ marker: UInt8) throws(ImageError) {
        guard try window.require(4) else {
            damage = .truncated
            return
        }
        let length = Int(window.bytes[2]) << 8 | Int(window.bytes[3])
        guard length >= 2 else { throw corrupt("a segment shorter than its length") }
        guard matters(marker) else { return window.skip(2 + length) }
        guard try window.require(2 + length) else {
            damage = .truncated
            return
        }
        let body = UnsafeBufferPointer(start: window.bytes + 4, count: length - 2)
        switch marker {
        case JPEGMarker.application0, JPEGMarker.application14: hints.read(marker: marker, body)
        case JPEGMarker.quantizationTables: try readQuantization(body)
        case JPEGMarker.huffmanTables: try readHuffman(body)
        case JPEGMarker.restartInterval:
            guard body.count >= 2 else { throw corrupt("restart interval too short") }
            restartInterval = Int(body[0]) << 8 | Int(body[1])
        case JPEGMarker.startOfScan:
            guard let frame else { throw corrupt("a scan before the frame header") }
            guard let header = JPEGScanHeader(body, frame: frame) else { throw corrupt("scan header") }
            window.consume(2 + length)
            return try decodeScan(header, of: frame)
        default: try readFrame(marker, body)
        }
        window.consume(2 + length)
    }

    private func matters(_ marker: UInt8) -> Bool {
        switch marker {
        case JPEGMarker.application0, JPEGMarker.application14, JPEGMarker.quantizationTables,
            JPEGMarker.huffmanTables, JPEGMarker.restartInterval, JPEGMarker.startOfScan:
            true
        default: JPEGMarker.isFrame(marker)
        }
    }

    private mutating func readQuantization(_ body: UnsafeBufferPointer<UInt8>) throws(ImageError) {
        var i = 0
        while i < body.count {
            let isWide = body[i] >> 4 != 0
            let table = Int(body[i] & 15)
            i += 1
            guard table < 4, body.count - i >= (isWide ? 128 : 64) else { throw corrupt("quantisation table") }
            func step(_ zigzag: Int) -> Int32 {
                isWide ? Int32(body[i + 2 * zigzag]) << 8 | Int32(body[i + 2 * zigzag + 1]) : Int32(body[i + zigzag])
            }
            steps[table] = SIMD4(step(0), step(1), step(2), step(4))
            i += isWide ? 128 : 64
        }
    }

    private mutating func readHuffman(_ body: UnsafeBufferPointer<UInt8>) throws(ImageError) {
        var rest = body[...]
        while let first = rest.first {
            let isAC = first >> 4 == 1
            let index = Int(first & 15)
            guard first >> 4 <= 1, index < 4, rest.count >= 17 else { throw corrupt("Huffman table") }
            let lengths = UnsafeBufferPointer(rebasing: rest.dropFirst().prefix(16))
            let count = lengths.reduce(0) { $0 + Int($1) }
            guard count <= 256, rest.count >= 17 + count, let base = lengths.baseAddress,
                let table = JPEGHuffmanTable(
                    lengths: base, symbols: UnsafeBufferPointer(rebasing: rest.dropFirst(17).prefix(count)))
            else { throw corrupt("Huffman table") }
            if isAC { acTables[index] = table } else { dcTables[index] = table }
            rest = rest.dropFirst(17 + count)
        }
    }

    private mutating func readFrame(_ marker: UInt8, _ body: UnsafeBufferPointer<UInt8>) throws(ImageError) {
        guard frame == nil else { throw corrupt("two frame headers") }
        let new: JPEGFrame
        do {
            new = try JPEGFrame(marker: marker, body)
        } catch {
            switch error {
            case .corrupt(let reason): throw corrupt(reason)
            case .unsupported(let reason): throw unsupported(reason)
            }
        }
        let size = PixelSize(width: new.width, height: new.height)
        guard size.pixelCount <= limits.maximumPixels else {
            throw .limitExceeded(
                input: name, limit: .pixels, actual: size.pixelCount, allowed: limits.maximumPixels)
        }
        planes = new.components.indices.map { BlockMeanPlane(new, component: $0, scale: scale) }
        progress = new.components.map { _ in (0, new.mcuRows) }
        // Whole blocks bring all coefficients at once.
        let missing = new.isProgressive && scale == .quarter ? BlockMeanReader.lowCoefficients : []
        missingLow = new.components.map { _ in missing }
        frame = new
    }
}
