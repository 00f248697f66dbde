import CVitrinePixels
import VitrineCore
import VitrineImageCore

/// The state of one picture while its slices are decoded.
///
/// Coordinates are checked once: blocks are divided so that each of them lies in the picture, whose sides are multiples
/// of the smallest block.
final class HEVCIntraPicture {
    let sequence: HEVCSequence
    let parameters: HEVCPictureParameters
    private let tables = HEVCTables.shared
    private let memory: HEVCPictureMemory
    private let layout: HEVCBlockLayout
    private let filters: HEVCLoopFilters?

    // MARK: State of slices

    private var slice: HEVCSliceHeader
    private let entropy: UnsafeMutablePointer<HEVCEntropy>
    private var next = 0
    /// The address of the slice that each block belongs to, and the number of its part with one slice and one tile.
    private var sliceAddress: [Int]
    private var region: UInt16 = 0
    private var isMalformed = false

    // MARK: State of quantization groups

    private var quantizer = 0
    private var lastQuantizer = 0
    private var predictedQuantizer = 0
    private var isStepCoded = false
    private var isBypass = false
    private let logGroup: Int

    deinit { entropy.deallocate() }

    init(_ sequence: HEVCSequence, _ parameters: HEVCPictureParameters, hasFilters: Bool) throws(HEVCFault) {
        (self.sequence, self.parameters) = (sequence, parameters)
        guard (parameters.quantizerDepth ?? 0) <= sequence.logCodingTreeBlock - sequence.logMinCodingBlock else {
            throw .corrupt("diff_cu_qp_delta_depth")
        }
        logGroup = sequence.logCodingTreeBlock - (parameters.quantizerDepth ?? 0)
        layout = try HEVCBlockLayout(sequence, parameters)
        filters = hasFilters ? HEVCLoopFilters(sequence, parameters: parameters, layout: layout) : nil
        sliceAddress = Array(repeating: -1, count: layout.count)
        memory = HEVCPictureMemory(
            width: sequence.width, height: sequence.height,
            factors: sequence.scaling.map { (parameters.scaling ?? $0).factors })
        slice = HEVCSliceHeader()
        entropy = .allocate(capacity: 1)
        entropy.initialize(to: HEVCEntropy(UnsafeBufferPointer(start: nil, count: 0), tables))
    }

    /// Forgets the picture before.
    func begin() {
        memory.regions.update(repeating: 0, count: memory.regionCount)
        for i in sliceAddress.indices { sliceAddress[i] = -1 }
        region = 0
        next = 0
        isMalformed = false
        filters?.begin()
    }

    /// Runs the loop filters, if there are any.
    func finish() {
        filters?.filter(memory.planes) { Int(memory.quantizers[eighth($0, $1)]) }
    }

    var isComplete: Bool { next == layout.decodingOrder.count }

    var planes: [HEVCIntraDecoder.Plane] {
        (0..<3).map { channel in
            let shift = channel == 0 ? 0 : 1
            let (x, y) = (sequence.shown.x, sequence.shown.y)
            let stride = memory.planes.bytesPerRow(channel)
            let first = memory.planes.samples(channel) + (y.lowerBound >> shift * stride + x.lowerBound >> shift)
            return HEVCIntraDecoder.Plane(
                samples: UnsafePointer(first), bytesPerRow: stride, width: x.count >> shift, height: y.count >> shift)
        }
    }

    // MARK: Slices

    /// Decodes the blocks of a slice segment (slice_segment_data, 7.3.8.1).
    func decode(
        _ header: HEVCSliceHeader, bytes: UnsafeBufferPointer<UInt8>, cancellation: CancellationToken
    ) throws(HEVCFault) {
        guard next < layout.decodingOrder.count, layout.decodingOrder[next] == header.address else {
            throw .corrupt("slice_segment_address")
        }
        let owner = header.isIndependent ? header.address : next > 0 ? sliceAddress[layout.decodingOrder[next - 1]] : 0
        slice = header
        filters?.beginSlice(header)
        entropy.pointee = HEVCEntropy(bytes, tables)
        var isFirst = true
        while true {
            if next & 15 == 0, cancellation.isCancelled { throw .cancelled }
            let block = layout.decodingOrder[next]
            let (x, y) = (block % layout.columns, block / layout.columns)
            let beginsTile = next == 0 || layout.tile[block] != layout.tile[layout.decodingOrder[next - 1]]
            sliceAddress[block] = owner
            filters?.noteTreeBlock(block)
            let beginsRow = parameters.resetsEachRow && layout.isFirstOfTileRow[block]
            if isFirst && header.isIndependent || beginsTile {
                guard region < .max else { throw .unsupported("very many slices") }
                region += 1
            }
            beginContexts(block, x: x, y: y, isFirst: isFirst, beginsTile: beginsTile, beginsRow: beginsRow)
            if isFirst && header.isIndependent || beginsTile || beginsRow { lastQuantizer = header.quantizer }
            isFirst = false
            if header.hasLumaOffsets || header.hasChromaOffsets { readOffsets(block, x: x, y: y, owner: owner) }
            codingTree(x * layout.side, y * layout.side, log: sequence.logCodingTreeBlock, depth: 0)
            guard !isMalformed, entropy.pointee.overrun <= Self.maximumOverrun else {
                throw .corrupt("a coding tree block")
            }
            let isEnd = entropy.pointee.isEnd()
            next += 1
            if parameters.resetsEachRow, layout.isSecondOfTileRow(block) {
                memory.rowContexts.update(from: memory.contexts, count: HEVCContext.count)
            }
            if isEnd { break }
            guard next < layout.decodingOrder.count else { throw .corrupt("a slice without an end") }
            let following = layout.decodingOrder[next]
            let beginsNewRow = parameters.resetsEachRow && layout.isFirstOfTileRow[following]
            if beginsNewRow || layout.tile[following] != layout.tile[block] {
                guard entropy.pointee.isEnd() else { throw .corrupt("the end of a part") }
                entropy.pointee.beginPart()
            }
        }
        if parameters.hasDependentSlices {
            memory.sliceContexts.update(from: memory.contexts, count: HEVCContext.count)
        }
    }

    /// Bytes of zeros behind the end that the decoder may read ahead.
    private static let maximumOverrun = 8

    /// Sets the contexts at the begin of a slice segment, a tile, and a row (9.3.1).
    private func beginContexts(
        _ block: Int, x: Int, y: Int, isFirst: Bool, beginsTile: Bool, beginsRow: Bool
    ) {
        guard isFirst || beginsTile || beginsRow else { return }
        if !beginsTile, beginsRow {
            // The block above at the right, in the same slice and tile, or none.
            let above = block - layout.columns + 1
            if y > 0, x + 1 < layout.columns, sliceAddress[above] == sliceAddress[block],
                layout.tile[above] == layout.tile[block]
            {
                memory.contexts.update(from: memory.rowContexts, count: HEVCContext.count)
                return
            }
        } else if !beginsTile, isFirst, !slice.isIndependent {
            memory.contexts.update(from: memory.sliceContexts, count: HEVCContext.count)
            return
        }
        HEVCContext.begin(memory.contexts, quantizer: slice.quantizer)
    }

    /// Reads the parameters of the filter of sample offsets (7.3.8.3).
    private func readOffsets(_ block: Int, x: Int, y: Int, owner: Int) {
        let contexts = memory.contexts
        for (isInside, other) in [(x > 0, block - 1), (y > 0, block - layout.columns)] {
            guard isInside, sliceAddress[other] == owner, layout.tile[other] == layout.tile[block] else { continue }
            if entropy.pointee.bit(contexts + HEVCContext.mergesOffsets) == 1 {
                filters?.mergeOffsets(block, with: other)
                return
            }
        }
        var offsets = HEVCLoopFilters.Offsets()
        for channel in 0..<3 where channel == 0 ? slice.hasLumaOffsets : slice.hasChromaOffsets {
            // Cr has the kind and the direction of Cb.
            if channel < 2 {
                offsets.kind = .none
                if entropy.pointee.bit(contexts + HEVCContext.offsetType) == 1 {
                    offsets.kind = entropy.pointee.equal(1) == 0 ? .bands : .edges
                }
            }
            guard offsets.kind != .none else { continue }
            var values = (0..<4).map { _ in
                var value = 0
                while value < 7, entropy.pointee.equal(1) == 1 { value += 1 }
                return value
            }
            if offsets.kind == .bands {
                for i in 0..<4 where values[i] > 0 && entropy.pointee.equal(1) == 1 { values[i] = -values[i] }
                offsets.position = entropy.pointee.equal(5)
            } else {
                for i in 2..<4 { values[i] = -values[i] }
                if channel < 2 { offsets.position = entropy.pointee.equal(2) }
            }
            offsets.values = (Int8(values[0]), Int8(values[1]), Int8(values[2]), Int8(values[3]))
            filters?.noteOffsets(block, channel: channel, value: offsets)
        }
    }

    // MARK: Coding blocks

    @inline(__always)
    private func unit(_ x: Int, _ y: Int) -> Int { (y &>> 2 &+ 1) &* memory.unitsPerRow &+ x &>> 2 &+ 1 }

    @inline(__always)
    private func eighth(_ x: Int, _ y: Int) -> Int { (y &>> 3 &+ 1) &* memory.blocksPerRow &+ x &>> 3 &+ 1 }

    /// coding_quadtree (7.3.8.4).
    private func codingTree(_ x: Int, _ y: Int, log: Int, depth: Int) {
        let size = 1 << log
        var isSplit = log > sequence.logMinCodingBlock
        if isSplit, x + size <= sequence.width, y + size <= sequence.height {
            let (left, above) = (unit(x - 1, y), unit(x, y - 1))
            var deeper = 0
            if memory.regions[left] == region, Int(memory.depths[eighth(x - 1, y)]) > depth { deeper += 1 }
            if memory.regions[above] == region, Int(memory.depths[eighth(x, y - 1)]) > depth { deeper += 1 }
            isSplit = entropy.pointee.bit(memory.contexts + HEVCContext.splitsCoding + deeper) == 1
        }
        if log >= logGroup { beginGroup(x, y) }
        guard isSplit else { return codingBlock(x, y, log: log, depth: depth) }
        let half = size / 2
        codingTree(x, y, log: log - 1, depth: depth + 1)
        if x + half < sequence.width { codingTree(x + half, y, log: log - 1, depth: depth + 1) }
        if y + half < sequence.height { codingTree(x, y + half, log: log - 1, depth: depth + 1) }
        if x + half < sequence.width, y + half < sequence.height {
            codingTree(x + half, y + half, log: log - 1, depth: depth + 1)
        }
    }

    /// Predicts the quantizer of a group (8.6.1).
    private func beginGroup(_ x: Int, _ y: Int) {
        isStepCoded = false
        var (left, above) = (lastQuantizer, lastQuantizer)
        // Neighbours in the same coding tree block are always decoded.
        if x & (layout.side - 1) > 0 { left = Int(memory.quantizers[eighth(x - 1, y)]) }
        if y & (layout.side - 1) > 0 { above = Int(memory.quantizers[eighth(x, y - 1)]) }
        predictedQuantizer = (left + above + 1) >> 1
        quantizer = predictedQuantizer
    }

    /// coding_unit (7.3.8.5).
    private func codingBlock(_ x: Int, _ y: Int, log: Int, depth: Int) {
        let contexts = memory.contexts
        isBypass = parameters.allowsBypass && entropy.pointee.bit(contexts + HEVCContext.isBypass) == 1
        let isDivided = log == sequence.logMinCodingBlock && entropy.pointee.bit(contexts + HEVCContext.partMode) == 0
        let eighths = max(1, 1 << (log - 3))
        for row in 0..<eighths {
            (memory.depths + eighth(x, y + 8 * row)).update(repeating: UInt8(depth), count: eighths)
        }
        if !isDivided, let pcm = sequence.pcm, pcm.sizes.contains(log), entropy.pointee.isEnd() {
            readSamples(pcm, x: x, y: y, log: log)
        } else {
            let chroma = readModes(x, y, log: log, isDivided: isDivided)
            transformTree(
                Tree(
                    chromaMode: chroma, isDivided: isDivided,
                    maximumDepth: sequence.maxTransformDepth + (isDivided ? 1 : 0)),
                block: TransformBlock(x: x, y: y, baseX: x, baseY: y, log: log))
        }
        for row in 0..<eighths {
            (memory.quantizers + eighth(x, y + 8 * row)).update(repeating: Int8(quantizer), count: eighths)
        }
        lastQuantizer = quantizer
        if isBypass { filters?.noteKept(x, y, log: log) }
    }

    /// pcm_sample (7.3.8.7).
    private func readSamples(_ pcm: HEVCSequence.PCM, x: Int, y: Int, log: Int) {
        let half = log - 1
        let counts = [
            (1 << (2 * log), pcm.lumaBits), (1 << (2 * half), pcm.chromaBits), (1 << (2 * half), pcm.chromaBits),
        ]
        entropy.pointee.samples(counts) { channel, i, value in
            let log = channel == 0 ? log : half
            let (x, y) = channel == 0 ? (x, y) : (x / 2, y / 2)
            let shift = 8 - (channel == 0 ? pcm.lumaBits : pcm.chromaBits)
            let offset = (y + i >> log) * memory.planes.bytesPerRow(channel) + x + i & (1 << log - 1)
            memory.planes.samples(channel)[offset] = UInt8(value << shift)
        }
        fillModes(x, y, log: log, mode: 1)
        finish(x, y, log: log)
        if !pcm.isFiltered { filters?.noteKept(x, y, log: log) }
    }

    /// Reads the modes of a coding block, keeps those of luma, and returns that of chroma (8.4.2, 8.4.3).
    private func readModes(_ x: Int, _ y: Int, log: Int, isDivided: Bool) -> Int {
        let parts = isDivided ? 4 : 1
        let partLog = isDivided ? log - 1 : log
        var isPredicted = 0
        for part in 0..<parts {
            isPredicted |= entropy.pointee.bit(memory.contexts + HEVCContext.isPredicted) << part
        }
        for part in 0..<parts {
            let (x, y) = (x + (part & 1) << partLog, y + (part >> 1) << partLog)
            var number = 0
            let usesCandidate = isPredicted >> part & 1 == 1
            if usesCandidate {
                if entropy.pointee.equal(1) == 1 { number = 1 + entropy.pointee.equal(1) }
            } else {
                number = entropy.pointee.equal(5)
            }
            let (left, above) = (unit(x - 1, y), unit(x, y - 1))
            // Parts of the same block are not decoded yet.
            let hasLeft = part & 1 == 1 || memory.regions[left] == region
            let hasAbove = part > 1 || memory.regions[above] == region && y & (layout.side - 1) > 0
            let a = hasLeft ? Int(memory.modes[left]) : 1
            let b = hasAbove ? Int(memory.modes[above]) : 1
            var candidates: (Int, Int, Int)
            if a == b {
                candidates = a < 2 ? (0, 1, 26) : (a, 2 + (a + 29) % 32, 2 + (a - 1) % 32)
            } else {
                candidates = (a, b, a != 0 && b != 0 ? 0 : a != 1 && b != 1 ? 1 : 26)
            }
            var mode: Int
            if usesCandidate {
                mode = number == 0 ? candidates.0 : number == 1 ? candidates.1 : candidates.2
            } else {
                if candidates.0 > candidates.1 { swap(&candidates.0, &candidates.1) }
                if candidates.0 > candidates.2 { swap(&candidates.0, &candidates.2) }
                if candidates.1 > candidates.2 { swap(&candidates.1, &candidates.2) }
                mode = number
                if mode >= candidates.0 { mode += 1 }
                if mode >= candidates.1 { mode += 1 }
                if mode >= candidates.2 { mode += 1 }
            }
            fillModes(x, y, log: partLog, mode: mode)
        }
        let luma = Int(memory.modes[unit(x, y)])
        guard entropy.pointee.bit(memory.contexts + HEVCContext.chromaMode) == 1 else { return luma }
        let mode: Int
        switch entropy.pointee.equal(2) {
        case 0: mode = 0
        case 1: mode = 26
        case 2: mode = 10
        default: mode = 1
        }
        return mode == luma ? 34 : mode
    }

    private func fillModes(_ x: Int, _ y: Int, log: Int, mode: Int) {
        let units = 1 &<< (log &- 2)
        for row in 0..<units {
            (memory.modes + unit(x, y &+ 4 &* row)).update(repeating: UInt8(truncatingIfNeeded: mode), count: units)
        }
    }

    /// Notes that a block is decoded.
    @inline(__always)
    private func finish(_ x: Int, _ y: Int, log: Int) {
        filters?.noteBlock(x, y, log: log)
        let region = region
        let units = 1 &<< (log &- 2)
        var target = memory.regions + unit(x, y)
        for _ in 0..<units {
            for column in 0..<units { target[column] = region }
            target += memory.unitsPerRow
        }
    }

    // MARK: Transform blocks

    /// Properties that the blocks of a transform tree share.
    private struct Tree {
        let chromaMode: Int
        let isDivided: Bool
        let maximumDepth: Int
    }

    /// A block of a transform tree.
    private struct TransformBlock {
        let x: Int
        let y: Int
        /// The origin of the block that this is a part of.
        let baseX: Int
        let baseY: Int
        /// The logarithm of the side.
        let log: Int
        var depth = 0
        /// The number of the part, of four.
        var part = 0
        /// Whether the block that this is a part of has coefficients of chroma.
        var hasBlue = true
        var hasRed = true

        /// Returns one of the four parts.
        @inline(__always)
        func quarter(_ part: Int, hasBlue: Bool, hasRed: Bool) -> TransformBlock {
            let half = 1 << (log - 1)
            return TransformBlock(
                x: x + (part & 1) * half, y: y + (part >> 1) * half, baseX: x, baseY: y, log: log - 1,
                depth: depth + 1, part: part, hasBlue: hasBlue, hasRed: hasRed)
        }
    }

    /// transform_tree (7.3.8.8).
    private func transformTree(_ tree: Tree, block: TransformBlock) {
        let contexts = memory.contexts
        let (log, depth) = (block.log, block.depth)
        var isSplit = log > sequence.logMaxTransform || tree.isDivided && depth == 0
        if !isSplit, log > sequence.logMinTransform, depth < tree.maximumDepth {
            isSplit = entropy.pointee.bit(contexts + HEVCContext.splitsTransform + 5 - log) == 1
        }
        var (blue, red) = (block.hasBlue, block.hasRed)
        if log > 2 {
            if blue { blue = entropy.pointee.bit(contexts + HEVCContext.hasChroma + depth) == 1 }
            if red { red = entropy.pointee.bit(contexts + HEVCContext.hasChroma + depth) == 1 }
        }
        guard isSplit else {
            let luma = entropy.pointee.bit(contexts + HEVCContext.hasLuma + (depth == 0 ? 1 : 0)) == 1
            return transformUnit(tree, block: block, luma: luma, blue: blue, red: red)
        }
        for part in 0..<4 { transformTree(tree, block: block.quarter(part, hasBlue: blue, hasRed: red)) }
    }

    /// transform_unit (7.3.8.10).
    ///
    /// - Parameter luma: Whether the block has coefficients of luma; `blue` and `red` tell it of chroma.
    private func transformUnit(_ tree: Tree, block unit: TransformBlock, luma: Bool, blue: Bool, red: Bool) {
        let (x, y, log) = (unit.x, unit.y, unit.log)
        if luma || blue || red, parameters.quantizerDepth != nil, !isStepCoded { readStep() }
        let mode = Int(memory.modes[self.unit(x, y)])
        block(0, x: x, y: y, log: log, mode: mode, hasResidual: luma)
        finish(x, y, log: log)
        if log > 2 {
            block(1, x: x / 2, y: y / 2, log: log - 1, mode: tree.chromaMode, hasResidual: blue)
            block(2, x: x / 2, y: y / 2, log: log - 1, mode: tree.chromaMode, hasResidual: red)
        } else if unit.part == 3 {
            // Blocks of chroma are not smaller than 4: the last of four parts has that of all.
            let (x, y) = (unit.baseX / 2, unit.baseY / 2)
            block(1, x: x, y: y, log: 2, mode: tree.chromaMode, hasResidual: blue)
            block(2, x: x, y: y, log: 2, mode: tree.chromaMode, hasResidual: red)
        }
    }

    /// Reads cu_qp_delta_abs and its sign (7.3.8.14, 9.3.3.10).
    private func readStep() {
        isStepCoded = true
        let context = memory.contexts + HEVCContext.quantizerStep
        var step = entropy.pointee.bit(context)
        if step == 1 {
            while step < 5, entropy.pointee.bit(context + 1) == 1 { step += 1 }
        }
        if step == 5 {
            var zeros = 0
            while zeros < 8, entropy.pointee.equal(1) == 1 {
                step += 1 << zeros
                zeros += 1
            }
            step += entropy.pointee.equal(zeros)
        }
        if step > 0, entropy.pointee.equal(1) == 1 { step = -step }
        if !(-26...25).contains(step) { isMalformed = true }
        quantizer = (predictedQuantizer + max(-26, min(step, 25)) + 52) % 52
    }

    /// Predicts a block of one channel and adds its residual.
    private func block(_ channel: Int, x: Int, y: Int, log: Int, mode: Int, hasResidual: Bool) {
        let stride = memory.planes.bytesPerRow(channel)
        let target = memory.planes.samples(channel) + (y &* stride &+ x)
        fillBorder(channel, x: x, y: y, log: log, target: target, stride: stride)
        cpixels_hevc_predict(
            memory.border, UInt32(truncatingIfNeeded: log), UInt32(truncatingIfNeeded: mode), channel == 0 ? 1 : 0,
            sequence.smoothsStrongly ? 1 : 0, target, stride)
        guard hasResidual else { return }
        var order = 0
        if log == 2 || log == 3 && channel == 0 {
            order = (6...14).contains(mode) ? 2 : (22...30).contains(mode) ? 1 : 0
        }
        let offset = channel == 1 ? slice.chromaOffsets.blue : slice.chromaOffsets.red
        let block = HEVCResidual.Block(
            log: log, isLuma: channel == 0, order: order,
            quantizer: channel == 0 ? quantizer : Self.chromaQuantizer(max(0, min(quantizer + offset, 57))),
            factors: memory.factors.map { UnsafePointer($0) + ((log &- 2) &* 3 &+ channel) &* 1024 },
            isBypass: isBypass, hidesSigns: parameters.hidesSigns && !isBypass,
            maySkipTransform: parameters.skipsTransforms && !isBypass && log == 2)
        let extent = HEVCResidual.read(
            &entropy.pointee, contexts: memory.contexts, scan: tables.scans, block: block,
            coefficients: memory.coefficients, positions: memory.positions)
        guard let extent else {
            isMalformed = true
            memory.coefficients.update(repeating: 0, count: 32 * 32)
            return
        }
        let kind =
            isBypass ? CPIXELS_HEVC_BYPASS
            : extent.skipsTransform ? CPIXELS_HEVC_SKIP
            : channel == 0 && log == 2 ? CPIXELS_HEVC_SINE : CPIXELS_HEVC_COSINE
        cpixels_hevc_add(
            memory.coefficients, UInt32(truncatingIfNeeded: log), kind, UInt32(truncatingIfNeeded: extent.rows),
            UInt32(truncatingIfNeeded: extent.columns), target, stride)
    }

    /// The quantizer of chroma by its index (8.6.1, table 8-10).
    static func chromaQuantizer(_ index: Int) -> Int {
        index < 30 ? index : index < 34 ? index - 1 : index < 43 ? (index + 32) / 2 : index - 6
    }

    /// Collects the samples beside a block (8.4.4.2.2).
    @inline(__always)
    private func fillBorder(
        _ channel: Int, x: Int, y: Int, log: Int, target: UnsafeMutablePointer<UInt8>, stride: Int
    ) {
        let n = 1 &<< log
        let border = memory.border
        // Samples of this channel in a unit of 4 × 4 samples of luma.
        let unitLog = channel == 0 ? 2 : 1
        let count = n &>> unitLog
        let perRow = memory.unitsPerRow
        let first = memory.regions + ((y &>> unitLog &+ 1) &* perRow &+ x &>> unitLog &+ 1)
        let region = region
        let hasLeft = first[-1] == region, hasAbove = first[-perRow] == region
        let hasCorner = first[-perRow &- 1] == region
        var below = 0
        if hasLeft {
            var at = first + (count &* perRow &- 1)
            while below < count, at.pointee == region {
                below &+= 1
                at += perRow
            }
        }
        var right = 0
        while right < count, first[count &+ right &- perRow] == region { right &+= 1 }
        below = below &<< unitLog
        right = right &<< unitLog

        if hasLeft {
            var from = UnsafePointer(target) - 1
            var to = border + (2 &* n &- 1)
            for _ in 0..<(n &+ below) {
                to.pointee = from.pointee
                from += stride
                to -= 1
            }
        }
        let middle = border + (2 &* n)
        let top = UnsafePointer(target) - stride
        if hasCorner { middle.pointee = top[-1] }
        if hasAbove { (middle + 1).update(from: top, count: n) }
        if right > 0 { (middle + 1 + n).update(from: top + n, count: right) }

        // What is missing repeats what comes before it; in front, what comes first.
        let known = hasLeft ? n &- below : hasCorner ? 2 &* n : hasAbove ? 2 &* n &+ 1 : right > 0 ? 3 &* n &+ 1 : -1
        guard known >= 0 else {
            border.update(repeating: 128, count: 4 &* n &+ 1)
            return
        }
        if known > 0 { border.update(repeating: border[known], count: known) }
        if !hasCorner, known < 2 &* n { middle.pointee = middle[-1] }
        if !hasAbove, known < 2 &* n &+ 1 { (middle + 1).update(repeating: middle.pointee, count: n) }
        if right < n { (middle + 1 + n + right).update(repeating: middle[n &+ right], count: n &- right) }
    }
}
