/// How much a block-mean decode reduces.
package enum BlockMeanScale: Int, Sendable {
    /// One sample a block of 8×8: the DC coefficient.
    case eighth = 8
    /// Four samples a block: DC and the three lowest AC coefficients.
    case quarter = 4

    /// Samples a block, along one side.
    var samplesPerBlock: Int { 8 / rawValue }
}
