/// Ranges and slices whose ends come from a file.
///
/// `a..<b` ends the process when `b` is less than `a`, and a slice ends it outside of its array. Parsers make ranges by
/// these functions, which accept any numbers. `Scripts/check-parsers` finds those that do not.
extension Range<Int> {
    /// The range from `lower` to `upper`; empty at `lower` when `upper` lies before it.
    package init(from lower: Int, to upper: Int) {
        self = lower..<Swift.max(lower, upper)
    }

    /// The range of `count` numbers from `lower`, cut at `end`; empty at `lower` when nothing of it lies before `end`.
    package init(from lower: Int, count: Int, end: Int) {
        let (upper, overflow) = lower.addingReportingOverflow(count)
        self.init(from: lower, to: overflow ? end : Swift.min(upper, end))
    }
}

extension ByteReader {
    /// The range from `lower` to `upper`, which must be in this order and lie inside the input.
    ///
    /// - Throws: ``ImageError/truncated(input:)``.
    package func range(from lower: Int, to upper: Int) throws(ImageError) -> Range<Int> {
        guard lower >= 0, lower <= upper, upper <= count else { throw .truncated(input: name) }
        return Range(from: lower, to: upper)
    }

    /// A copy of the bytes from `lower` to `upper`, which must be in this order and lie inside the input.
    package func bytes(from lower: Int, to upper: Int) throws(ImageError) -> [UInt8] {
        try bytes(range(from: lower, to: upper))
    }
}

extension Collection where Index == Int {
    /// The elements of `range` that exist.
    package func slice(_ range: Range<Int>) -> SubSequence {
        self[range.clamped(to: startIndex..<endIndex)]
    }
}
