/// What becomes of a transfer when the last one who waited for it leaves (R87).
///
/// Whoever leaves hears nothing more, whatever the policy. Bytes that have arrived are stored in any case, but not made
/// into a value. What has not been asked of the source yet is not asked any more.
public enum CancellationPolicy: Sendable, Hashable, CaseIterable {
    /// It goes on, and its bytes are stored: who asks while it runs joins it, who asks later finds them. Only decoding
    /// is saved.
    case processing
    /// It ends unless the head of the response is there.
    case beforeResponse
    /// It ends unless the first bytes of the body are there.
    case beforeBody
    /// It ends.
    case unconditional
}
