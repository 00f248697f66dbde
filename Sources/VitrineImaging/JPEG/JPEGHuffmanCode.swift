/// Where the tables of one Huffman code lie: what a decoding loop carries in registers.
struct JPEGHuffmanCode {
    /// Bits that one look-up of ``fast`` covers.
    static let fastBits = 10

    /// By the next 10 bits: length << 8 | symbol; 0 for a longer or undefined code.
    let fast: UnsafePointer<UInt16>
    /// Smallest code, largest code and index of the first value minus its code, each by length 0...16.
    let limits: UnsafePointer<Int32>
    /// Symbols in the order of their codes, 256 entries.
    let values: UnsafePointer<UInt8>

    /// Length << 8 | symbol of the code that `window` (16 bits) starts with; 0 if there is none.
    @inline(__always)
    func symbol(_ window: UInt32) -> UInt32 {
        let entry = UInt32(fast[Int(window &>> UInt32(16 - JPEGHuffmanCode.fastBits))])
        return entry != 0 ? entry : longSymbol(window)
    }

    @inline(never)
    private func longSymbol(_ window: UInt32) -> UInt32 {
        for length in (JPEGHuffmanCode.fastBits + 1)...16 {
            let code = Int32(window >> UInt32(16 - length))
            guard code >= limits[length], code <= limits[17 + length] else { continue }
            return UInt32(length) << 8 | UInt32(values[Int(code &+ limits[34 + length]) & 255])
        }
        return 0
    }
}
