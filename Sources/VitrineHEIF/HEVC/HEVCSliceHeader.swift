import VitrineImageCore

/// The header of a slice segment, as far as intra pictures need it (§7.3.6).
struct HEVCSliceHeader {
    /// The number of the parameters of its picture.
    var parameters = 0
    /// Begins with a state of its own: not a dependent slice segment.
    var isIndependent = true
    /// The first coding tree block.
    var address = 0
    var quantizer = 0
    var chromaOffsets = (blue: 0, red: 0)
    var hasLumaOffsets = false
    var hasChromaOffsets = false
    /// Nil: the slice has no deblocking filter.
    var deblocking: HEVCDeblocking?
    var filtersAcross = false
    /// Where the data of the blocks begin, in bytes of the payload.
    var dataStart = 0

    init() {}

    /// - Parameters:
    ///   - previous: The slice segment before this one in the picture; nil for the first.
    init(_ bytes: [UInt8], _ sets: HEVCParameterSets, previous: HEVCSliceHeader?) throws(HEVCFault) {
        var bits = HEVCBits(bytes, at: 2)
        let isFirst = bits.flag()
        bits.skip(1)
        parameters = try bits.number(0...63, "slice_pic_parameter_set_id")
        let (picture, sequence) = try sets.parameters(parameters)
        guard isFirst == (previous == nil), parameters == previous?.parameters ?? parameters else {
            throw .corrupt("slices of two pictures")
        }
        if !isFirst {
            isIndependent = !(picture.hasDependentSlices && bits.flag())
            let count = sequence.widthInTreeBlocks * sequence.heightInTreeBlocks
            address = bits.bits(Int.bitWidth - (count - 1).leadingZeroBitCount)
            guard address < count else { throw .corrupt("slice_segment_address") }
        }
        if isIndependent {
            bits.skip(picture.extraHeaderBits)
            guard bits.number() == 2 else { throw .unsupported("a slice that is not intra") }
            if picture.hasOutputFlag { bits.skip(1) }
            if sequence.hasSampleOffsets { (hasLumaOffsets, hasChromaOffsets) = (bits.flag(), bits.flag()) }
            quantizer = picture.quantizer + bits.signed()
            guard (0...51).contains(quantizer) else { throw .corrupt("slice_qp_delta") }
            chromaOffsets = picture.chromaOffsets
            if picture.hasSliceChromaOffsets {
                chromaOffsets.blue += try bits.signed(-12...12, "slice_cb_qp_offset")
                chromaOffsets.red += try bits.signed(-12...12, "slice_cr_qp_offset")
            }
            deblocking = picture.deblocking
            if picture.overridesDeblocking, bits.flag() { deblocking = try HEVCDeblocking.read(&bits) }
            filtersAcross = picture.filtersAcrossSlices
            if filtersAcross, hasLumaOffsets || hasChromaOffsets || deblocking != nil { filtersAcross = bits.flag() }
        } else if let previous {
            let address = address
            self = previous
            (self.address, isIndependent) = (address, false)
        }
        if picture.tiles != nil || picture.resetsEachRow {
            // Each part begins where the one before it ends, so that the offsets are not needed.
            let count = try bits.number(0...440 * 135, "num_entry_point_offsets")
            if count > 0 { bits.skip(count * (try bits.number(0...31, "offset_len_minus1") + 1)) }
        }
        if picture.hasHeaderExtension {
            bits.skip(8 * (try bits.number(0...256, "slice_segment_header_extension_length")))
        }
        guard bits.flag() else { throw .corrupt("the end of a slice header") }
        try bits.check()
        dataStart = (bits.position + 7) / 8
    }
}
