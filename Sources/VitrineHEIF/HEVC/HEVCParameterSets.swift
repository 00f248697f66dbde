import VitrineImageCore

/// The parameter sets of a configuration (hvcC, ISO/IEC 14496-15 §8.3.3). Of several with one number, the last counts.
struct HEVCParameterSets {
    /// The bytes of the length in front of each NAL unit.
    let lengthSize: Int
    private var sequences: [HEVCSequence] = []
    private var pictures: [HEVCPictureParameters] = []

    init(_ configuration: [UInt8], maximumSide: Int) throws(HEVCFault) {
        guard configuration.count >= 23 else { throw .corrupt("the configuration") }
        lengthSize = Int(configuration[21] & 3) + 1
        var (sequences, pictures): ([HEVCSequence], [HEVCPictureParameters]) = ([], [])
        try Self.forEachUnit(of: configuration) { (type, bytes) throws(HEVCFault) in
            switch type {
            case 33: sequences.append(try HEVCSequence(bytes, maximumSide: maximumSide))
            case 34: pictures.append(try HEVCPictureParameters(bytes))
            default: break
            }
        }
        (self.sequences, self.pictures) = (sequences, pictures)
    }

    /// Calls `body` with the type and the payload of each NAL unit of a configuration.
    private static func forEachUnit(
        of configuration: [UInt8], _ body: (UInt8, [UInt8]) throws(HEVCFault) -> Void
    ) throws(HEVCFault) {
        guard configuration.count >= 23 else { throw .corrupt("the configuration") }
        var at = 23
        for _ in 0..<configuration[22] {
            guard at + 3 <= configuration.count else { throw .corrupt("the configuration") }
            let type = configuration[at] & 0x3F
            let count = Int(configuration[at + 1]) << 8 | Int(configuration[at + 2])
            at += 3
            for _ in 0..<count {
                guard at + 2 <= configuration.count else { throw .corrupt("the configuration") }
                let length = Int(configuration[at]) << 8 | Int(configuration[at + 1])
                at += 2
                guard length >= 3, at + length <= configuration.count else { throw .corrupt("the configuration") }
                let bytes = configuration[at..<(at + length)].withUnsafeBufferPointer(HEVCBits.payload)
                at += length
                try body(type, bytes)
            }
        }
    }

    /// The colour space that the sequence names, of pictures of any depth and chroma; nil if it names none, and for
    /// damaged configurations.
    static func colors(_ configuration: [UInt8]) -> (primaries: Int, transfer: Int)? {
        // A configuration has the sequences of one picture, which agree.
        var found: (primaries: Int, transfer: Int)?
        try? forEachUnit(of: configuration) { (type, bytes) throws(HEVCFault) in
            guard type == 33, found == nil else { return }
            found = try HEVCSequence(bytes, maximumSide: 1 << 16, anyVariety: true).colors
        }
        return found
    }

    /// The parameters of a picture, and those of its sequence.
    func parameters(_ id: Int) throws(HEVCFault) -> (picture: HEVCPictureParameters, sequence: HEVCSequence) {
        guard let picture = pictures.last(where: { $0.id == id }),
            let sequence = sequences.last(where: { $0.id == picture.sequence })
        else { throw .corrupt("parameters that are missing") }
        return (picture, sequence)
    }
}

/// The sequence parameter set, as far as intra pictures need it (SPS, ITU-T H.265 §7.3.2.2).
struct HEVCSequence: Sendable {
    let id: Int
    /// The samples of luma that are coded, multiples of the smallest coding block.
    let width: Int
    let height: Int
    /// The samples of luma that are shown.
    let shown: (x: Range<Int>, y: Range<Int>)
    let logMinCodingBlock: Int
    let logCodingTreeBlock: Int
    let logMinTransform: Int
    let logMaxTransform: Int
    let maxTransformDepth: Int
    /// Nil: all factors are 16.
    let scaling: HEVCScaling?
    let hasSampleOffsets: Bool
    let pcm: PCM?
    let smoothsStrongly: Bool
    /// The code point of the colour matrix, and the range of the samples.
    private(set) var matrix = 2
    private(set) var isFullRange = false
    /// The code points of the primaries and of the transfer function; nil without them.
    private(set) var colors: (primaries: Int, transfer: Int)?

    /// Blocks with samples as they are.
    struct PCM: Sendable {
        let lumaBits: Int
        let chromaBits: Int
        let sizes: ClosedRange<Int>
        let isFiltered: Bool
    }

    var widthInTreeBlocks: Int { (width - 1) >> logCodingTreeBlock + 1 }
    var heightInTreeBlocks: Int { (height - 1) >> logCodingTreeBlock + 1 }

    /// - Parameters:
    ///   - bytes: The payload of the NAL unit, with its header.
    ///   - maximumSide: The most samples of a side.
    ///   - anyVariety: Whether sequences are read that this decoder does not decode: other chroma, and more bits.
    init(_ bytes: [UInt8], maximumSide: Int, anyVariety: Bool = false) throws(HEVCFault) {
        var bits = HEVCBits(bytes, at: 2)
        bits.skip(4)
        let layers = bits.bits(3)
        bits.skip(1)
        Self.skipProfile(&bits, layers: layers)
        id = try bits.number(0...15, "sps_seq_parameter_set_id")
        let chroma = bits.number()
        guard chroma == 1 || anyVariety else { throw .unsupported("chroma that is not 4:2:0") }
        if chroma == 3 { bits.skip(1) }
        width = try bits.number(1...maximumSide, "pic_width_in_luma_samples")
        height = try bits.number(1...maximumSide, "pic_height_in_luma_samples")
        var window = (left: 0, right: 0, top: 0, bottom: 0)
        if bits.flag() {
            window.left = try bits.number(0...maximumSide, "conf_win_left_offset") * 2
            window.right = try bits.number(0...maximumSide, "conf_win_right_offset") * 2
            window.top = try bits.number(0...maximumSide, "conf_win_top_offset") * 2
            window.bottom = try bits.number(0...maximumSide, "conf_win_bottom_offset") * 2
        }
        guard window.left + window.right < width, window.top + window.bottom < height else {
            throw .corrupt("the conformance window")
        }
        shown = (window.left..<(width - window.right), window.top..<(height - window.bottom))
        let depths = (bits.number(), bits.number())
        guard depths == (0, 0) || anyVariety else { throw .unsupported("not 8 bits") }
        let logMaxOrder = try bits.number(0...12, "log2_max_pic_order_cnt_lsb_minus4") + 4
        for _ in (bits.flag() ? 0 : layers)...layers {
            for _ in 0..<3 { _ = bits.number() }
        }
        logMinCodingBlock = try bits.number(0...3, "log2_min_luma_coding_block_size_minus3") + 3
        logCodingTreeBlock = try bits.number(0...3, "log2_diff_max_min_luma_coding_block_size") + logMinCodingBlock
        logMinTransform = try bits.number(0...3, "log2_min_luma_transform_block_size_minus2") + 2
        logMaxTransform = try bits.number(0...3, "log2_diff_max_min_luma_transform_block_size") + logMinTransform
        guard (4...6).contains(logCodingTreeBlock), logMinTransform < logMinCodingBlock,
            logMaxTransform <= min(logCodingTreeBlock, 5), width % (1 << logMinCodingBlock) == 0,
            height % (1 << logMinCodingBlock) == 0
        else { throw .corrupt("the sizes of blocks") }
        _ = bits.number()
        maxTransformDepth = try bits.number(
            0...(logCodingTreeBlock - logMinTransform), "max_transform_hierarchy_depth_intra")
        scaling = try bits.flag() ? (bits.flag() ? HEVCScaling(&bits) : .standard) : nil
        bits.skip(1)
        hasSampleOffsets = bits.flag()
        pcm = try bits.flag()
            ? Self.pcm(
                &bits, largest: min(logCodingTreeBlock, 5), smallest: logMinCodingBlock, depth: anyVariety ? 16 : 8)
            : nil
        try Self.skipReferences(&bits, logMaxOrder: logMaxOrder)
        bits.skip(1)
        smoothsStrongly = bits.flag()
        if bits.flag() { try readUsability(&bits, layers: layers) }
        if !anyVariety { try bits.checkExtensions() }
        try bits.check()
    }

    /// Skips profile_tier_level (§7.3.3).
    private static func skipProfile(_ bits: inout HEVCBits, layers: Int) {
        bits.skip(96)
        guard layers > 0 else { return }
        var present: [(profile: Bool, level: Bool)] = []
        for _ in 0..<layers { present.append((bits.flag(), bits.flag())) }
        bits.skip(2 * (8 - layers))
        for layer in present { bits.skip((layer.profile ? 88 : 0) + (layer.level ? 8 : 0)) }
    }

    private static func pcm(
        _ bits: inout HEVCBits, largest: Int, smallest: Int, depth: Int
    ) throws(HEVCFault) -> PCM {
        let (luma, chroma) = (bits.bits(4) + 1, bits.bits(4) + 1)
        let low = try bits.number(0...2, "log2_min_pcm_luma_coding_block_size_minus3") + 3
        let high = try bits.number(0...2, "log2_diff_max_min_pcm_luma_coding_block_size") + low
        let isFiltered = !bits.flag()
        guard luma <= depth, chroma <= depth, low >= min(smallest, 5), high <= largest else {
            throw .corrupt("sizes of PCM blocks")
        }
        return PCM(lumaBits: luma, chromaBits: chroma, sizes: low...high, isFiltered: isFiltered)
    }

    /// Skips the sets of reference pictures, which intra pictures do not use (§7.3.7).
    private static func skipReferences(_ bits: inout HEVCBits, logMaxOrder: Int) throws(HEVCFault) {
        let count = try bits.number(0...64, "num_short_term_ref_pic_sets")
        var previous: [Int] = []
        for i in 0..<count {
            var offsets: [Int] = []
            if i > 0, bits.flag() {
                let isNegative = bits.flag()
                let distance = try bits.number(0...32_767, "abs_delta_rps_minus1") + 1
                let offset = isNegative ? -distance : distance
                for j in 0...previous.count {
                    let isKept = bits.flag() || bits.flag()
                    let sum = (j < previous.count ? previous[j] : 0) + offset
                    if isKept, sum != 0 { offsets.append(sum) }
                }
                guard offsets.count <= 16 else { throw .corrupt("sets of reference pictures") }
            } else {
                let negative = try bits.number(0...16, "num_negative_pics")
                let positive = try bits.number(0...(16 - negative), "num_positive_pics")
                for (number, sign) in [(negative, -1), (positive, 1)] {
                    var sum = 0
                    for _ in 0..<number {
                        sum += sign * (try bits.number(0...32_767, "delta_poc_minus1") + 1)
                        bits.skip(1)
                        offsets.append(sum)
                    }
                }
            }
            try bits.check()
            // The order in which a set is predicted from: nearest first, negative ones before positive ones.
            previous = offsets.filter { $0 < 0 }.sorted(by: >) + offsets.filter { $0 > 0 }.sorted()
        }
        if bits.flag() {
            let count = try bits.number(0...32, "num_long_term_ref_pics_sps")
            bits.skip(count * (logMaxOrder + 1))
        }
    }

    /// Reads vui_parameters (§E.2.1).
    private mutating func readUsability(_ bits: inout HEVCBits, layers: Int) throws(HEVCFault) {
        if bits.flag(), bits.bits(8) == 255 { bits.skip(32) }
        if bits.flag() { bits.skip(1) }
        if bits.flag() {
            bits.skip(3)
            isFullRange = bits.flag()
            if bits.flag() {
                colors = (bits.bits(8), bits.bits(8))
                matrix = bits.bits(8)
            }
        }
        if bits.flag() { (_, _) = (bits.number(), bits.number()) }
        bits.skip(3)
        if bits.flag() {
            for _ in 0..<4 { _ = bits.number() }
        }
        if bits.flag() {
            bits.skip(64)
            if bits.flag() { _ = bits.number() }
            if bits.flag() { try Self.skipReferenceDecoder(&bits, layers: layers) }
        }
        if bits.flag() {
            bits.skip(3)
            for _ in 0..<5 { _ = bits.number() }
        }
    }

    /// Skips hrd_parameters (§E.2.2).
    private static func skipReferenceDecoder(_ bits: inout HEVCBits, layers: Int) throws(HEVCFault) {
        let kinds = (bits.flag() ? 1 : 0) + (bits.flag() ? 1 : 0)
        var hasParts = false
        if kinds > 0 {
            hasParts = bits.flag()
            bits.skip((hasParts ? 19 : 0) + 8 + (hasParts ? 4 : 0) + 15)
        }
        for _ in 0...layers {
            let isFixed = bits.flag()
            var isLowDelay = false
            var count = 1
            if isFixed || bits.flag() { _ = bits.number() } else { isLowDelay = bits.flag() }
            if !isLowDelay { count = try bits.number(0...31, "cpb_cnt_minus1") + 1 }
            for _ in 0..<(kinds * count) {
                for _ in 0..<(hasParts ? 4 : 2) { _ = bits.number() }
                bits.skip(1)
            }
            try bits.check()
        }
    }
}

/// Factors of coefficients for intra blocks (scaling_list_data, §7.3.4 and §7.4.5).
struct HEVCScaling: Sendable {
    /// The factors row by row, for sizes 4, 8, 16 and 32 and for Y, Cb and Cr: `[size][channel]`.
    let factors: [[[UInt8]]]

    static let standard = HEVCScaling(
        lists: (0..<4).map { size in Array(repeating: size == 0 ? flat : intra, count: 3) },
        means: Array(repeating: [16, 16, 16], count: 4))

    private static let flat = [UInt8](repeating: 16, count: 16)
    /// Table 7-6, of intra blocks.
    private static let intra: [UInt8] = [
        16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17, 16, 17, 16, 17, 18, 17, 18, 18, 17, 18, 21, 19, 20, 21, 20, 19, 21,
        24, 22, 22, 24, 24, 22, 22, 24, 25, 25, 27, 30, 27, 25, 25, 29, 31, 35, 35, 31, 29, 36, 41, 44, 41, 36, 47, 54,
        54, 47, 65, 70, 65, 88, 88, 115,
    ]

    init(_ bits: inout HEVCBits) throws(HEVCFault) {
        var lists = Array(repeating: Array(repeating: [UInt8](), count: 6), count: 4)
        var means = Array(repeating: Array(repeating: UInt8(16), count: 6), count: 4)
        for size in 0..<4 {
            for matrix in stride(from: 0, to: 6, by: size == 3 ? 3 : 1) {
                if !bits.flag() {
                    let step = try bits.number(0...matrix, "scaling_list_pred_matrix_id_delta") * (size == 3 ? 3 : 1)
                    guard step <= matrix else { throw .corrupt("scaling_list_pred_matrix_id_delta") }
                    lists[size][matrix] = step == 0 ? (size == 0 ? Self.flat : Self.intra) : lists[size][matrix - step]
                    means[size][matrix] = step == 0 ? 16 : means[size][matrix - step]
                    continue
                }
                var next = 8
                if size > 1 {
                    next = try bits.signed(-7...247, "scaling_list_dc_coef_minus8") + 8
                    means[size][matrix] = UInt8(next)
                }
                for _ in 0..<(size == 0 ? 16 : 64) {
                    next = (next + (try bits.signed(-128...127, "scaling_list_delta_coef")) + 256) & 255
                    lists[size][matrix].append(UInt8(next))
                }
                try bits.check()
            }
        }
        // Chroma of 4:2:0 has no blocks of 32.
        lists[3] = [lists[3][0], lists[3][0], lists[3][0]]
        self.init(lists: lists.map { Array($0.prefix(3)) }, means: means.map { Array($0.prefix(3)) })
    }

    private init(lists: [[[UInt8]]], means: [[UInt8]]) {
        factors = (0..<4).map { size in
            (0..<3).map { channel in
                let side = 4 << size
                let logList = size == 0 ? 2 : 3
                let scan = HEVCScan.diagonal(side: 1 << logList)
                var table = [UInt8](repeating: 16, count: side * side)
                var square = [UInt8](repeating: 16, count: 1 << (2 * logList))
                for (i, at) in scan.enumerated() { square[at.y << logList + at.x] = lists[size][channel][i] }
                let shift = size + 2 - logList
                for y in 0..<side {
                    for x in 0..<side { table[y * side + x] = square[(y >> shift) << logList + x >> shift] }
                }
                if size > 1 { table[0] = means[size][channel] }
                return table
            }
        }
    }
}

/// The picture parameter set, as far as intra pictures need it (PPS, §7.3.2.3).
struct HEVCPictureParameters: Sendable {
    let id: Int
    let sequence: Int
    let hasDependentSlices: Bool
    let hasOutputFlag: Bool
    let extraHeaderBits: Int
    let hidesSigns: Bool
    let quantizer: Int
    let skipsTransforms: Bool
    /// How often a coding tree block is divided down to the blocks that have a quantizer of their own; nil if none has.
    let quantizerDepth: Int?
    let chromaOffsets: (blue: Int, red: Int)
    let hasSliceChromaOffsets: Bool
    let allowsBypass: Bool
    let tiles: HEVCTileGrid?
    let resetsEachRow: Bool
    let filtersAcrossSlices: Bool
    let overridesDeblocking: Bool
    let deblocking: HEVCDeblocking?
    let scaling: HEVCScaling?
    let hasHeaderExtension: Bool

    init(_ bytes: [UInt8]) throws(HEVCFault) {
        var bits = HEVCBits(bytes, at: 2)
        id = try bits.number(0...63, "pps_pic_parameter_set_id")
        sequence = try bits.number(0...15, "pps_seq_parameter_set_id")
        hasDependentSlices = bits.flag()
        hasOutputFlag = bits.flag()
        extraHeaderBits = bits.bits(3)
        hidesSigns = bits.flag()
        bits.skip(1)
        (_, _) = (bits.number(), bits.number())
        quantizer = try bits.signed(-26...25, "init_qp_minus26") + 26
        // Restricts the samples beside blocks that are not intra.
        bits.skip(1)
        skipsTransforms = bits.flag()
        quantizerDepth = try bits.flag() ? bits.number(0...3, "diff_cu_qp_delta_depth") : nil
        chromaOffsets = (try bits.signed(-12...12, "pps_cb_qp_offset"), try bits.signed(-12...12, "pps_cr_qp_offset"))
        hasSliceChromaOffsets = bits.flag()
        bits.skip(2)
        allowsBypass = bits.flag()
        let hasTiles = bits.flag()
        resetsEachRow = bits.flag()
        tiles = hasTiles ? try HEVCTileGrid(&bits) : nil
        filtersAcrossSlices = bits.flag()
        let hasControl = bits.flag()
        overridesDeblocking = hasControl && bits.flag()
        deblocking = try hasControl ? HEVCDeblocking.read(&bits) : HEVCDeblocking(beta: 0, tc: 0)
        scaling = bits.flag() ? try HEVCScaling(&bits) : nil
        bits.skip(1)
        _ = bits.number()
        hasHeaderExtension = bits.flag()
        try bits.checkExtensions()
        try bits.check()
    }
}

/// Offsets of the thresholds of the deblocking filter (§7.4.7.1).
struct HEVCDeblocking: Sendable {
    var beta: Int
    var tc: Int

    /// Reads whether the filter is disabled, and its offsets if it is not; nil where it is.
    static func read(_ bits: inout HEVCBits) throws(HEVCFault) -> HEVCDeblocking? {
        if bits.flag() { return nil }
        let beta = try bits.signed(-6...6, "beta_offset_div2") * 2
        return HEVCDeblocking(beta: beta, tc: try bits.signed(-6...6, "tc_offset_div2") * 2)
    }
}

/// How the picture is divided into tiles of coding tree blocks (§6.5.1). These are not the tiles of HEIC.
struct HEVCTileGrid: Sendable {
    private let columns: Int
    private let rows: Int
    /// All but the last; nil: as even as possible.
    private let sides: (widths: [Int], heights: [Int])?
    let filtersAcross: Bool

    init(_ bits: inout HEVCBits) throws(HEVCFault) {
        // The most that level 6.2 allows (table A.8).
        columns = try bits.number(0...19, "num_tile_columns_minus1") + 1
        rows = try bits.number(0...21, "num_tile_rows_minus1") + 1
        if bits.flag() {
            sides = nil
        } else {
            var (widths, heights): ([Int], [Int]) = ([], [])
            for _ in 1..<columns { widths.append(try bits.number(0...65_535, "column_width_minus1") + 1) }
            for _ in 1..<rows { heights.append(try bits.number(0...65_535, "row_height_minus1") + 1) }
            sides = (widths, heights)
        }
        filtersAcross = bits.flag()
    }

    /// The first column or row of each tile, and the end.
    func bounds(width: Int, height: Int) throws(HEVCFault) -> (columns: [Int], rows: [Int]) {
        (try Self.bounds(columns, sides?.widths, of: width), try Self.bounds(rows, sides?.heights, of: height))
    }

    private static func bounds(_ count: Int, _ sides: [Int]?, of total: Int) throws(HEVCFault) -> [Int] {
        var bounds = [0]
        for i in 0..<(count - 1) {
            bounds.append(sides.map { bounds[i] + $0[i] } ?? (i + 1) * total / count)
        }
        bounds.append(total)
        guard zip(bounds, bounds.dropFirst()).allSatisfy(<) else { throw .corrupt("tiles without blocks") }
        return bounds
    }
}
