/// What all processors check of their parameters, and how they write them into identifiers.
enum ProcessorCheck {
    /// - Throws: ``ImageError/invalidRequest(reason:)`` unless `value` is a number within `range`.
    static func value(_ value: Double, in range: ClosedRange<Double>, _ name: String) throws(ImageError) {
        guard range.contains(value) else {
            throw .invalidRequest(reason: "\(name) must be \(range.lowerBound)…\(range.upperBound), not \(value)")
        }
    }

    /// - Throws: ``ImageError/invalidRequest(reason:)`` unless `value` is within `range`.
    static func value(_ value: Int, in range: ClosedRange<Int>, _ name: String) throws(ImageError) {
        guard range.contains(value) else {
            throw .invalidRequest(reason: "\(name) must be \(range.lowerBound)…\(range.upperBound), not \(value)")
        }
    }

    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` when a result that is larger than its input
    ///   would break the default ``ImageLimits/maximumOutputSide``.
    static func outputSide(_ size: PixelSize, _ operation: String) throws(ImageError) {
        let allowed = ImageLimits.standard.maximumOutputSide
        guard size.longestSide <= allowed else {
            throw .limitExceeded(input: operation, limit: .outputSide, actual: size.longestSide, allowed: allowed)
        }
    }

    /// Text from elsewhere, preceded by its length in bytes.
    static func delimited(_ text: String) -> String { "\(text.utf8.count):\(text)" }
}
