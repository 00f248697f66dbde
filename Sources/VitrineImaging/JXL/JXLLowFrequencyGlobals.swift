/// What the low-frequency sections of a frame have in common.
///
/// Source: ISO/IEC 18181-1 annex G.1 (LfGlobal).
struct JXLLowFrequencyGlobals {
    /// The step of each channel in the order X, Y, B (or Cb, Y, Cr).
    var steps: [Float]
    /// How much of Y is in the other two.
    var correlation: (x: Float, b: Float)
    /// Tree and codes that sections may share.
    var shared: (tree: JXLModularTree, code: JXLEntropyCode)?

    init(_ bits: inout JXLBits, _ frame: JXLFrameHeader) throws(JXLFault) {
        if frame.flags & JXLFrameHeader.Flag.noise != 0 { bits.skip(80) }
        var quantizers: [Float] = [1 / 4096, 1 / 512, 1 / 256]
        if !bits.bool() { for c in 0..<3 { quantizers[c] = try bits.f16() / 128 } }
        let scale = bits.u32((1, 11), (2049, 11), (4097, 12), (8193, 16))
        let quantizer = bits.u32((16, 0), (1, 5), (1, 8), (1, 16))
        steps = quantizers.map { $0 * 65_536 / Float(scale) / Float(quantizer) }
        guard steps.allSatisfy({ $0 > 0 && $0.isFinite }) else { throw .corrupt("quantizer") }
        try JXLLowFrequencyGlobals.skipBlockContexts(&bits)
        correlation = (0, 1)
        if !bits.bool() {
            let factor = Float(bits.u32((84, 0), (256, 0), (2, 8), (258, 16)))
            let (x, b) = (try bits.f16(), try bits.f16())
            correlation = (x + Float(bits.bits(8) - 128) / factor, b + Float(bits.bits(8) - 128) / factor)
        }
        if bits.bool() {
            let tree = try JXLModularTree(&bits)
            shared = (tree, try JXLEntropyCode(&bits, contexts: tree.leafCount))
        }
        try bits.check()
    }

    private static func skipBlockContexts(_ bits: inout JXLBits) throws(JXLFault) {
        if bits.bool() { return }
        var contexts = 39
        for _ in 0..<3 {
            let count = bits.bits(4)
            for _ in 0..<count { _ = bits.u32((0, 4), (16, 8), (272, 16), (65_808, 32)) }
            contexts *= count + 1
        }
        let count = bits.bits(4)
        for _ in 0..<count { _ = bits.u32((0, 2), (4, 3), (12, 5), (44, 8)) }
        contexts *= count + 1
        guard contexts <= 39 * 64 else { throw .corrupt("block contexts") }
        _ = try JXLEntropyCode.clusters(&bits, contexts: contexts)
    }
}
