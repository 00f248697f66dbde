import VitrineCore

/// Turns a cancelled token into the error of the input being decoded.
struct JPEGCancellation {
    let token: CancellationToken
    let input: String

    /// - Throws: ``ImageError/cancelled(input:)`` once the token is cancelled.
    func check() throws(ImageError) {
        if token.isCancelled { throw .cancelled(input: input) }
    }
}
