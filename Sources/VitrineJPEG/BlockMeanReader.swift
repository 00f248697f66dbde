import VitrineCore
import VitrineImageCore

/// One block-mean decode of a JPEG file: walks the segments and hands scans to ``BlockMeanLoop``.
struct BlockMeanReader: ~Copyable {
    /// The result of a decode.
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
    let allowsPartial: Bool
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
    /// The first 32 steps of each quantisation table, by zigzag index.
    var steps = [[Int32]?](repeating: nil, count: 4)
    /// Whether planes of colour with half the samples of brightness in a direction get as many.
    ///
    /// They then come from 4 or 16 samples a block instead of 1 or 4. Of progressive files this takes the first scans
    /// of their AC coefficients as well, and 16 samples are refused.
    var refinesColor = false
    /// The size to scale rows to while they are decoded, of 4:2:2 only; nil to keep the planes.
    var target: PixelSize?
    private var scaler: YCbCrRowScaler?
    var restartInterval = 0
    var damage: Damage?
    /// Notes where rows begin; nil for no notes.
    var recorder: JPEGRowRecorder?
    /// The processors that parts of a scan may be decoded on, and the fewest bytes of a part.
    var cores: IdleCores?
    var minimumPieceBytes = BlockMeanDecoder.minimumPieceBytes
    var minimumBlockBytes = BlockMeanDecoder.minimumBlockBytes
    /// Where the image ends in a file with others behind it: 0 if the file does not tell. nil in other files.
    private(set) var pictureEnd: Int?

    init(
        _ source: ByteSource, scale: BlockMeanScale, limits: ImageLimits, allowsPartial: Bool,
        cancellation: CancellationToken
    ) {
        self.scale = scale
        self.limits = limits
        self.allowsPartial = allowsPartial
        self.cancellation = JPEGCancellation(token: cancellation, input: source.name)
        window = JPEGInputWindow(source)
        feed = JPEGEntropyFeed(inputSize: source.count)
    }

    private var name: String { window.source.name }

    func corrupt(_ reason: String) -> ImageError { .corrupt(input: window.source.name, reason: reason) }

    func unsupported(_ reason: String) -> ImageError { .unsupported(input: window.source.name, reason: reason) }

    /// Reads until every component has its samples; later bytes are not read.
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

    /// Throws the error of the damage, unless a partial image is allowed and there is one.
    private func judgeDamage() throws(ImageError) {
        guard let damage else { return }
        if allowsPartial, let brightness = progress.first, brightness.done > 0 { return }
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
        case JPEGMarker.application2: readMultiPictureIndex(body)
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

    private func samplesPerBlock(of component: Int, _ frame: JPEGFrame) -> Int {
        let factors = frame.components[component]
        let isHalved =
            2 * factors.horizontal <= frame.maximumHorizontal || 2 * factors.vertical <= frame.maximumVertical
        let wanted = scale.samplesPerBlock * (refinesColor && isHalved ? 2 : 1)
        return frame.isProgressive ? min(wanted, BlockMeanReader.mostProgressiveSamples) : wanted
    }

    private func matters(_ marker: UInt8) -> Bool {
        switch marker {
        case JPEGMarker.application0, JPEGMarker.application2, JPEGMarker.application14,
            JPEGMarker.quantizationTables, JPEGMarker.huffmanTables, JPEGMarker.restartInterval, JPEGMarker.startOfScan:
            true
        default: JPEGMarker.isFrame(marker)
        }
    }

    private mutating func readMultiPictureIndex(_ body: UnsafeBufferPointer<UInt8>) {
        guard pictureEnd == nil, body.starts(with: "MPF\0".utf8) else { return }
        let reader = ByteReader(ByteSource(bytes: Array(body), name: name))
        pictureEnd = MultiPictureIndex.firstSize(reader, 4..<body.count) ?? 0
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
            steps[table] = (0..<32).map(step)
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
        if target != nil, !new.hasHalvedColumns || new.isProgressive { throw unsupported("rows that are not scaled") }
        planes = new.components.indices.map {
            BlockMeanPlane(
                new, component: $0, perBlock: samplesPerBlock(of: $0, new), isStrip: target != nil)
        }
        if let target {
            scaler = makeScaler(to: target)
            if scaler == nil { throw unsupported("rows that are not scaled") }
        }
        progress = new.components.map { _ in (0, new.mcuRows) }
        // Whole blocks bring all coefficients at once.
        missingLow = planes.map { new.isProgressive && $0.perBlock > 1 ? BlockMeanReader.lowCoefficients : [] }
        #if SystemCodecs
        // The library makes such colour; without it, coarse colour is better than none.
        if new.isProgressive, refinesColor, 2 * scale.samplesPerBlock > BlockMeanReader.mostProgressiveSamples,
            planes.contains(where: { $0.size.width < planes[0].size.width || $0.size.height < planes[0].size.height })
        {
            throw unsupported("the colours of a progressive file would be too coarse")
        }
        #endif
        frame = new
    }
}

extension BlockMeanReader {
    /// Where a scan stands.
    struct Position {
        let columns: Int
        let rows: Int
        var column = 0
        var row = 0

        var done: Int { row * columns + column }
        var total: Int { rows * columns }

        mutating func advance(_ count: Int) {
            column += count
            row += column / columns
            column %= columns
        }
    }

    /// The content of a scan.
    private enum Kind {
        /// Whole blocks, of which one or four samples are made.
        case blocks
        /// DC coefficients, of a progressive file.
        case firstDC
        /// AC coefficients, of a progressive file.
        case firstAC(BlockMeanLoop.Band)

        var isDC: Bool { if case .firstAC = self { false } else { true } }
    }

    /// Samples along a side of a block of a progressive file, at most: ``lowCoefficients`` make 2.
    static let mostProgressiveSamples = 2

    /// The AC coefficients a quarter is made of, by zigzag index.
    static let lowCoefficients: Set<Int> = [1, 2, 4]

    /// The content of a scan; nil if nothing of it is needed.
    private func kind(of header: JPEGScanHeader, _ frame: JPEGFrame) throws(ImageError) -> Kind? {
        guard frame.isProgressive else { return .blocks }
        guard header.approximationHigh == 0 else { return nil }
        if header.spectralStart == 0 { return .firstDC }
        guard header.components.count == 1, header.spectralStart <= header.spectralEnd, header.spectralEnd <= 63 else {
            throw corrupt("scan header")
        }
        let component = header.components[0].index
        guard planes[component].perBlock == 2, header.spectralStart <= 4 else { return nil }
        guard progress[component].done >= progress[component].of else { throw corrupt("AC before DC") }
        return .firstAC(BlockMeanLoop.Band(first: header.spectralStart, last: header.spectralEnd))
    }

    private func isBlocks(_ kind: Kind) -> Bool { if case .blocks = kind { true } else { false } }

    private mutating func noteBand(_ kind: Kind, _ component: Int) {
        guard case .firstAC(let band) = kind else { return }
        missingLow[component].subtract(band.first...band.last)
    }

    /// Decodes the entropy-coded data behind a scan header, if it brings anything that is needed.
    mutating func decodeScan(_ header: JPEGScanHeader, of frame: JPEGFrame) throws(ImageError) {
        guard let kind = try kind(of: header, frame) else { return }
        if target != nil, header.components.count < 3 || hints.isRGB(frame.components) {
            throw unsupported("rows that are not scaled")
        }
        let isInterleaved = header.components.count > 1
        let blocks = frame.blocks(of: header.components[0].index)
        var position = Position(
            columns: isInterleaved ? frame.mcuColumns : blocks.width,
            rows: isInterleaved ? frame.mcuRows : blocks.height)
        if kind.isDC {
            for component in header.components { progress[component.index] = (0, position.rows) }
        }
        let bits = skipBits(frame)
        let tables = UnsafeMutablePointer<Int32>.allocate(capacity: 64 * header.components.count)
        defer { tables.deallocate() }
        var template = try makeSlots(header, frame: frame, kind: kind, skipBits: bits, tables: tables)
        // Four predictors, the coefficients of a block, and the run of blocks without any.
        let predictors = UnsafeMutablePointer<Int32>.allocate(capacity: 4 + 64 + 1)
        let slots = UnsafeMutablePointer<BlockMeanSlot>.allocate(capacity: template.count)
        defer {
            predictors.deallocate()
            slots.deallocate()
        }
        predictors.initialize(repeating: 0, count: 4 + 64 + 1)
        slots.initialize(from: &template, count: template.count)
        recorder?.beginScan(at: window.offset, isWhole: header.components.count == frame.components.count)
        let loop = BlockMeanLoop(
            slots: slots, slotCount: template.count, predictors: predictors, skipBits: UInt64(bits),
            lowBit: Int32(header.approximationLow), low: predictors + 4, endRun: predictors + 68)
        let pieces =
            isBlocks(kind)
            ? startPieces(header, frame: frame, template: template, skipBits: bits, count: position.total) : []
        defer {
            for piece in pieces { piece.stop() }
            cores?.release(pieces.count)
        }
        try decodeSegments(loop, template: template, kind: kind, position: &position, piece: pieces.first)
        if recorder != nil {
            try feed.finish(&window)
            recorder?.end = window.offset
        }
        for component in header.components {
            if kind.isDC { progress[component.index].done = position.row }
            if position.done == position.total { noteBand(kind, component.index) }
        }
    }

    /// Larger tables pass more codes a look-up but must be filled first, which a small image does not pay back.
    private func skipBits(_ frame: JPEGFrame) -> Int {
        let pixels = frame.width * frame.height
        return pixels < 1_000_000 ? 10 : pixels < 4_000_000 ? 12 : 13
    }

    /// The blocks of an MCU in the order they are coded, placed in its first MCU.
    private func makeSlots(
        _ header: JPEGScanHeader, frame: JPEGFrame, kind: Kind, skipBits: Int,
        tables: UnsafeMutablePointer<Int32>
    ) throws(ImageError) -> [BlockMeanSlot] {
        var slots: [BlockMeanSlot] = []
        let isInterleaved = header.components.count > 1
        for (order, entry) in header.components.enumerated() {
            let component = frame.components[entry.index]
            guard let steps = steps[component.quantization] else { throw corrupt("a quantisation table is missing") }
            // A scan of a progressive file uses one kind of table and may lack the other.
            let ac = frame.isProgressive && kind.isDC ? dcTables[entry.dcTable] : acTables[entry.acTable]
            let dc = kind.isDC ? dcTables[entry.dcTable] : ac
            guard let dc, let ac else { throw corrupt("a Huffman table is missing") }
            guard dc.isUsableForDC || !kind.isDC else { throw unsupported("DC differences of more than 14 bits") }
            let skip = frame.isProgressive ? ac.code.fast : ac.skip(bits: skipBits)
            let plane = planes[entry.index]
            let samples = plane.perBlock
            let table = tables + 64 * order
            if target == nil {
                table.initialize(from: steps, count: 32)
            } else {
                BlockMeanLoop.fillPlaces(table, steps: steps)
            }
            for y in 0..<(isInterleaved ? component.vertical : 1) {
                for x in 0..<(isInterleaved ? component.horizontal : 1) {
                    slots.append(
                        BlockMeanSlot(
                            dc: dc.code, ac: ac.code, skip: skip, predictor: order, side: samples,
                            steps: SIMD4(steps[0], steps[1], steps[2], steps[4]), allSteps: table,
                            output: plane.base + (y * plane.bytesPerRow + x * plane.bytesPerSample) * samples,
                            advance: (isInterleaved ? component.horizontal : 1) * samples * plane.bytesPerSample,
                            rowAdvance: plane.isStrip
                                ? 0 : (isInterleaved ? component.vertical : 1) * samples * plane.bytesPerRow,
                            bytesPerRow: plane.bytesPerRow))
                }
            }
        }
        // T.81 §B.2.3: an MCU has at most ten blocks. The feed's margin relies on it.
        guard slots.count <= 10 else { throw corrupt("more than ten blocks an MCU") }
        return slots
    }

    /// Decodes one restart interval after the other.
    private mutating func decodeSegments(
        _ loop: BlockMeanLoop, template: [BlockMeanSlot], kind: Kind, position: inout Position,
        piece: BlockMeanPiece?
    ) throws(ImageError) {
        var restart: UInt8 = 0
        feed.mark = restartInterval > 0 ? nil : piece?.start
        place(loop, template: template, position: position)
        while true {
            let left = position.total - position.done
            let count = restartInterval > 0 ? min(restartInterval, left) : left
            let stop = position.done + count
            if position.column == 0, restartInterval > 0 {
                recorder?.note(row: position.row, afterRestartAt: window.offset)
            }
            try decodeSegment(
                loop, template: template, kind: kind, count: count, position: &position,
                piece: restartInterval > 0 ? nil : piece)
            if damage != nil && !allowsPartial { return }
            guard stop < position.total else { return }
            try feed.finish(&window)
            guard try window.require(2) else {
                damage = .truncated
                return
            }
            let marker = window.bytes[1]
            // One or two intervals may be missing in a damaged file; more is a guess nobody should trust.
            let missing = Int((marker &- JPEGMarker.firstRestart &- restart) & 7)
            guard JPEGMarker.isRestart(marker), missing == 0 || allowsPartial && missing <= 2 else {
                damage = damage ?? (marker == JPEGMarker.endOfImage ? .truncated : .corrupt("no restart marker"))
                return
            }
            if missing > 0 { damage = .corrupt("restart markers are missing") }
            restart = (marker &- JPEGMarker.firstRestart &+ 1) & 7
            window.consume(2)
            loop.predictors.update(repeating: 0, count: 4)
            loop.endRun.pointee = 0
            position.advance(min(stop + missing * restartInterval, position.total) - position.done)
            guard position.done < position.total else { return }
            if let piece, window.offset == piece.start, marker == JPEGMarker.firstRestart + (piece.restart ?? 8),
                try finish(from: piece, at: 0, loop: loop, template: template, position: &position)
            {
                return
            }
            place(loop, template: template, position: position)
        }
    }

    /// Decodes `count` MCUs that no restart marker divides.
    private mutating func decodeSegment(
        _ loop: BlockMeanLoop, template: [BlockMeanSlot], kind: Kind, count: Int,
        position: inout Position, piece: BlockMeanPiece?
    ) throws(ImageError) {
        var reader = try feed.start(&window)
        var search = BlockMeanSearch(piece)
        var left = count
        while left > 0 {
            if position.column == 0 {
                try cancellation.check()
                place(loop, template: template, position: position)
                if restartInterval == 0 {
                    recorder?.note(row: position.row, bit: feed.position(of: reader), loop.predictors)
                }
            }
            var wanted = min(left, position.columns - position.column)
            var end = feed.isAtEnd ? feed.end + 16 : feed.end - JPEGEntropyFeed.margin
            if let index = search.look(feed, reader: reader, wanted: &wanted, end: &end), let piece,
                try finish(from: piece, at: index, loop: loop, template: template, position: &position)
            {
                return
            }
            var missing = wanted
            let outcome = decode(loop, kind: kind, count: &missing, reader: &reader, until: end)
            let isShort = outcome == .needsInput && !search.isShortened
            let done = wanted - missing
            // Damage is found at the ends of rows, also where MCUs are decoded one by one.
            let endsRow = done == left || position.column + done == position.columns
            if outcome == .corrupt || feed.isAtEnd && (isShort || endsRow && feed.isOverrun(reader)) {
                return try noteDamage(outcome)
            }
            position.advance(done)
            left -= done
            if done > 0, position.column == 0 { scaleRows(of: frame) }
            if isShort { try feed.feed(&window, &reader) }
        }
    }

    private func decode(
        _ loop: BlockMeanLoop, kind: Kind, count: inout Int, reader: inout JPEGBitReader,
        until end: UnsafePointer<UInt8>
    ) -> BlockMeanLoop.Outcome {
        switch kind {
        case .blocks where target != nil: loop.halves(&count, &reader, until: end)
        case .blocks: loop.blocks(&count, &reader, until: end)
        case .firstDC: loop.firstDC(&count, &reader, until: end)
        case .firstAC(let band): loop.firstAC(&count, &reader, until: end, band: band)
        }
    }

    private mutating func noteDamage(_ outcome: BlockMeanLoop.Outcome) throws(ImageError) {
        if damage != nil { return }
        if outcome == .corrupt && !feed.isAtEnd {
            damage = .corrupt("entropy-coded data")
            return
        }
        let hasMarker = try window.require(2)
        let isEnd = !hasMarker || window.bytes[1] == JPEGMarker.endOfImage
        damage = isEnd ? .truncated : .corrupt("entropy-coded data ends early")
    }

    /// Points the slots at the MCU where `position` stands.
    func place(_ loop: BlockMeanLoop, template: [BlockMeanSlot], position: Position) {
        for (i, slot) in template.enumerated() {
            loop.slots[i].output = slot.output + position.row * slot.rowAdvance + position.column * slot.advance
        }
    }
}

extension BlockMeanReader {
    private func makeScaler(to target: PixelSize) -> YCbCrRowScaler? {
        func plane(_ i: Int) -> YCbCrRowScaler.Plane {
            YCbCrRowScaler.Plane(width: planes[i].size.width, extent: planes[i].extentWidth)
        }
        return YCbCrRowScaler(
            luma: plane(0), chroma: plane(1), height: planes[0].size.height, extentHeight: planes[0].extentHeight,
            to: target)
    }

    /// Scales the rows of the row of MCUs in the planes.
    private func scaleRows(of frame: JPEGFrame?) {
        guard let scaler, let frame else { return }
        for y in 0..<(frame.maximumVertical * scale.samplesPerBlock) {
            func row(_ i: Int) -> UnsafePointer<Int16> {
                UnsafeRawPointer(planes[i].base + y * planes[i].bytesPerRow).assumingMemoryBound(to: Int16.self)
            }
            scaler.add(y: row(0), cb: row(1), cr: row(2))
        }
    }

    /// The planes in the form the contract of decoders has for their colour model.
    func makeResult() throws(ImageError) -> Result {
        guard let frame else { throw corrupt("no frame header") }
        let model: DecodedImage.Model
        let pixelPlanes: [PixelPlane]
        if let scaler {
            guard let scaled = scaler.scaled else { throw corrupt("rows are missing") }
            model = .rgb
            pixelPlanes = [scaled]
        } else if planes.count == 1 {
            model = .gray
            pixelPlanes = planes.map(\.plane)
        } else if hints.isRGB(frame.components) {
            model = .rgb
            pixelPlanes = [interleaved()]
        } else {
            model = .yCbCr(.bt601, fullRange: true)
            pixelPlanes = planes.map(\.plane)
        }
        let completeness = progress.map { Double($0.done) / Double(max(1, $0.of)) }.min() ?? 0
        var image = DecodedImage(
            planes: pixelPlanes, model: model, isPartial: damage != nil, samplesAreMeans: scaler == nil)
        if damage != nil { image.filledHeight = filledHeight(frame) }
        return Result(image: image, isProgressive: frame.isProgressive, completeness: completeness)
    }

    /// How much of the height has samples of brightness.
    private func filledHeight(_ frame: JPEGFrame) -> Double {
        guard let (done, count) = progress.first, done < count else { return 1 }
        // Alone in its scan, a component has no rows of blocks beyond the image.
        let blocks = count == frame.mcuRows ? 1 : frame.components[0].vertical
        return min(1, Double(done * frame.maximumVertical * 8) / Double(blocks * frame.height))
    }

    /// Red, green and blue planes as one. Subsampled ones, which no encoder makes, repeat their samples.
    private func interleaved() -> PixelPlane {
        // The component with the largest factors has the most samples.
        let width = planes.map(\.size.width).max() ?? 1
        let height = planes.map(\.size.height).max() ?? 1
        let storage = PixelStorage(zeroedByteCount: width * height * 3)
        let output = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        for (channel, plane) in planes.enumerated() {
            for y in 0..<height {
                let row = plane.base + y * plane.size.height / height * plane.bytesPerRow
                let target = output + y * width * 3 + channel
                for x in 0..<width { target[x * 3] = row[x * plane.size.width / width] }
            }
        }
        return PixelPlane(
            width: width, height: height, channels: 3,
            extent: (
                planes.map(\.extentWidth).max() ?? Double(width), planes.map(\.extentHeight).max() ?? Double(height)
            ), storage: storage)
    }
}
