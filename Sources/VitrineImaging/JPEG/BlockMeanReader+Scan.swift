extension BlockMeanReader {
    /// Where a scan stands.
    private struct Position {
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

    /// What a scan brings.
    private enum Kind {
        /// Whole blocks, of which one or four samples are made.
        case blocks
        /// DC coefficients, of a progressive file.
        case firstDC
        /// AC coefficients, of a progressive file.
        case firstAC(BlockMeanLoop.Band)

        var isDC: Bool { if case .firstAC = self { false } else { true } }
    }

    /// The AC coefficients a quarter is made of, by zigzag index.
    static let lowCoefficients: Set<Int> = [1, 2, 4]

    /// What a scan brings; nil if nothing of it is needed.
    private func kind(of header: JPEGScanHeader, _ frame: JPEGFrame) throws(ImageError) -> Kind? {
        guard frame.isProgressive else { return .blocks }
        guard header.approximationHigh == 0 else { return nil }
        if header.spectralStart == 0 { return .firstDC }
        guard header.components.count == 1, header.spectralStart <= header.spectralEnd, header.spectralEnd <= 63 else {
            throw corrupt("scan header")
        }
        guard scale == .quarter, header.spectralStart <= 4 else { return nil }
        let component = header.components[0].index
        guard progress[component].done >= progress[component].of else { throw corrupt("AC before DC") }
        return .firstAC(BlockMeanLoop.Band(first: header.spectralStart, last: header.spectralEnd))
    }

    private mutating func noteBand(_ kind: Kind, _ component: Int) {
        guard case .firstAC(let band) = kind else { return }
        missingLow[component].subtract(band.first...band.last)
    }

    /// Decodes the entropy-coded data behind a scan header, if it brings anything that is needed.
    mutating func decodeScan(_ header: JPEGScanHeader, of frame: JPEGFrame) throws(ImageError) {
        guard let kind = try kind(of: header, frame) else { return }
        let isInterleaved = header.components.count > 1
        let blocks = frame.blocks(of: header.components[0].index)
        var position = Position(
            columns: isInterleaved ? frame.mcuColumns : blocks.width,
            rows: isInterleaved ? frame.mcuRows : blocks.height)
        if kind.isDC {
            for component in header.components { progress[component.index] = (0, position.rows) }
        }
        let bits = skipBits(frame)
        var template = try makeSlots(header, frame, kind, skipBits: bits)
        let predictors = UnsafeMutablePointer<Int32>.allocate(capacity: 4 + 32 + 1)
        let slots = UnsafeMutablePointer<BlockMeanSlot>.allocate(capacity: template.count)
        defer {
            predictors.deallocate()
            slots.deallocate()
        }
        predictors.initialize(repeating: 0, count: 4 + 32 + 1)
        slots.initialize(from: &template, count: template.count)
        let loop = BlockMeanLoop(
            slots: slots, slotCount: template.count, predictors: predictors, skipBits: UInt64(bits),
            lowBit: Int32(header.approximationLow), low: predictors + 4, endRun: predictors + 36)
        try decodeSegments(loop, template, kind, &position)
        for component in header.components {
            if kind.isDC { progress[component.index].done = position.row }
            if position.done == position.total { noteBand(kind, component.index) }
        }
    }

    /// Larger tables pass more codes a look-up but must be filled first, which a small picture does not pay back.
    private func skipBits(_ frame: JPEGFrame) -> Int {
        let pixels = frame.width * frame.height
        return pixels < 1_000_000 ? 10 : pixels < 4_000_000 ? 12 : 13
    }

    /// The blocks of an MCU in the order they are coded, placed in its first MCU.
    private func makeSlots(
        _ header: JPEGScanHeader, _ frame: JPEGFrame, _ kind: Kind, skipBits: Int
    ) throws(ImageError) -> [BlockMeanSlot] {
        var slots: [BlockMeanSlot] = []
        let isInterleaved = header.components.count > 1
        let samples = scale.samplesPerBlock
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
            for y in 0..<(isInterleaved ? component.vertical : 1) {
                for x in 0..<(isInterleaved ? component.horizontal : 1) {
                    slots.append(
                        BlockMeanSlot(
                            dc: dc.code, ac: ac.code, skip: skip, predictor: order, steps: steps,
                            output: plane.base + (y * plane.bytesPerRow + x) * samples,
                            advance: (isInterleaved ? component.horizontal : 1) * samples,
                            rowAdvance: (isInterleaved ? component.vertical : 1) * samples * plane.bytesPerRow,
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
        _ loop: BlockMeanLoop, _ template: [BlockMeanSlot], _ kind: Kind, _ position: inout Position
    ) throws(ImageError) {
        var restart: UInt8 = 0
        place(loop, template, position)
        while true {
            let left = position.total - position.done
            let count = restartInterval > 0 ? min(restartInterval, left) : left
            let stop = position.done + count
            try decodeSegment(loop, template, kind, count, &position)
            if damage != nil && !allowPartial { return }
            guard stop < position.total else { return }
            try feed.finish(&window)
            guard try window.require(2) else {
                damage = .truncated
                return
            }
            let marker = window.bytes[1]
            // One or two intervals may be missing in a damaged file; more is a guess nobody should trust.
            let missing = Int((marker &- JPEGMarker.firstRestart &- restart) & 7)
            guard JPEGMarker.isRestart(marker), missing == 0 || allowPartial && missing <= 2 else {
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
            place(loop, template, position)
        }
    }

    /// Decodes `count` MCUs that no restart marker divides.
    private mutating func decodeSegment(
        _ loop: BlockMeanLoop, _ template: [BlockMeanSlot], _ kind: Kind, _ count: Int,
        _ position: inout Position
    ) throws(ImageError) {
        var reader = try feed.start(&window)
        var left = count
        while left > 0 {
            if position.column == 0 {
                try cancellation.check()
                place(loop, template, position)
            }
            let wanted = min(left, position.columns - position.column)
            var missing = wanted
            let end = feed.isAtEnd ? feed.end + 16 : feed.end - JPEGEntropyFeed.margin
            let outcome = decode(loop, kind, &missing, &reader, until: end)
            if outcome == .corrupt || feed.isAtEnd && (outcome == .needsInput || feed.isOverrun(reader)) {
                return try noteDamage(outcome)
            }
            position.advance(wanted - missing)
            left -= wanted - missing
            if outcome == .needsInput { try feed.feed(&window, &reader) }
        }
    }

    private func decode(
        _ loop: BlockMeanLoop, _ kind: Kind, _ count: inout Int, _ reader: inout JPEGBitReader,
        until end: UnsafePointer<UInt8>
    ) -> BlockMeanLoop.Outcome {
        switch kind {
        case .blocks where scale == .eighth: loop.eighths(&count, &reader, until: end)
        case .blocks: loop.quarters(&count, &reader, until: end)
        case .firstDC: loop.firstDC(&count, &reader, until: end, side: scale.samplesPerBlock)
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
    private func place(_ loop: BlockMeanLoop, _ template: [BlockMeanSlot], _ position: Position) {
        for (i, slot) in template.enumerated() {
            loop.slots[i].output = slot.output + position.row * slot.rowAdvance + position.column * slot.advance
        }
    }
}
