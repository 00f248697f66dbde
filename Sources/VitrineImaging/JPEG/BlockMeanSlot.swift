/// One block of an MCU: which tables it uses and where its samples go.
struct BlockMeanSlot {
    let dc: JPEGHuffmanCode
    let ac: JPEGHuffmanCode
    /// ``JPEGHuffmanTable/skip(bits:)`` of the AC table; unused in DC scans.
    let skip: UnsafePointer<UInt16>
    /// Which predictor it shares with the other blocks of its component.
    let predictor: Int
    /// Quantisation steps of coefficients (0,0), (0,1), (1,0) and (1,1).
    let steps: SIMD4<Int32>
    /// Where the next block's samples go.
    var output: UnsafeMutablePointer<UInt8>
    /// From one MCU to the next, from one row of MCUs to the next, and from one row of samples to the next, in bytes.
    let advance: Int
    let rowAdvance: Int
    let bytesPerRow: Int
}
