/// Compressed bytes in a part of a source.
package struct InflaterRange: InflaterSource {
    /// How many times its compressed size a range can inflate to, above ``ratioFloor``.
    private static let maximumRatio = 200
    private static let ratioFloor = 1 << 20

    private let source: ByteSource
    private var range: Range<Int>

    package init(_ source: ByteSource, _ range: Range<Int>) {
        self.source = source
        self.range = range
    }

    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(ImageError) -> Int {
        let wanted = min(buffer.count, range.count)
        guard wanted > 0 else { return 0 }
        let n = try source.read(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[0..<wanted]), at: range.lowerBound)
        range = Range(from: range.lowerBound &+ n, to: range.upperBound)
        return n
    }
}

extension InflaterRange {
    /// Inflates a range of a source, counting the result.
    ///
    /// - Parameters:
    ///   - claimed: Bytes that are expected; room is made for no more than the limits allow.
    ///   - maximum: Bytes that can come out.
    package static func inflate(
        _ range: Range<Int>, _ source: ByteSource, wrapper: Inflater<InflaterRange>.Wrapper, claimed: Int, maximum: Int
    ) throws(ImageError) -> [UInt8] {
        let (multiple, overflow) = range.count.multipliedReportingOverflow(by: maximumRatio)
        let allowed = min(maximum, overflow ? maximum : max(ratioFloor, multiple))
        var inflater = Inflater(
            InflaterRange(source, range), wrapper: wrapper, chunk: min(max(claimed, 1 << 10), 64 << 10),
            inputCapacity: min(max(range.count, 256), 32 << 10))
        var result: [UInt8] = []
        result.reserveCapacity(max(0, min(claimed, allowed)))
        do throws(InflateError) {
            while true {
                let piece = try inflater.next()
                if piece.isEmpty { return result }
                if result.count + piece.count > allowed { break }
                result.append(contentsOf: piece)
            }
        } catch {
            switch error {
            case .truncated: throw .truncated(input: source.name)
            case .invalid(let reason): throw .corrupt(input: source.name, reason: reason)
            case .source(let error): throw error
            }
        }
        throw .limitExceeded(input: source.name, limit: .documentBytes, actual: allowed + 1, allowed: allowed)
    }
}
