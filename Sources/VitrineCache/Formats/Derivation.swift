/// How far a format's values are a reduction of the original, so that smaller ones can be made from larger ones
/// instead of asking the source again.
///
/// ```swift
/// small.derivation = Derivation(family: "fit", magnitude: 100)
/// large.derivation = Derivation(family: "fit", magnitude: 400)   // "small" may be made from it
/// ```
///
/// A format is made from a stored entry of another only if both are of one family and the other's magnitude is at
/// least twice its own: below that a reduction of a reduction would show.
public struct Derivation: Sendable, Hashable {
    /// What kind of reduction it is; only formats of one family are made from each other. Two formats belong to one
    /// family if taking the larger first changes nothing but rounding: the same crop, for example.
    public var family: String
    /// How large the values are, in any unit the family shares: for pictures the longer side in pixels.
    public var magnitude: Int

    public init(family: String, magnitude: Int) {
        self.family = family
        self.magnitude = magnitude
    }

    /// Whether values of this derivation can be made from values of `other`.
    public func canDerive(from other: Derivation) -> Bool {
        guard family == other.family, magnitude > 0 else { return false }
        let (double, overflow) = magnitude.multipliedReportingOverflow(by: 2)
        return !overflow && other.magnitude >= double
    }
}
