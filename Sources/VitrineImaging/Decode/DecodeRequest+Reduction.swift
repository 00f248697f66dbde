extension DecodeRequest {
    /// ``reduction`` for a picture stored with `size`, by a parser other than the one that read ``info``.
    func reduction(of size: PixelSize) -> Double {
        guard let target, !target.isEmpty else { return 1 }
        return max(1, min(Double(size.width) / Double(target.width), Double(size.height) / Double(target.height)))
    }

    /// The side of the blocks to average of a picture stored with `size`, which leaves at least twice the target.
    func blockSide(for size: PixelSize) -> Int { max(1, Int(reduction(of: size) / 2)) }
}
