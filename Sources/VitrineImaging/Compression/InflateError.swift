/// Why a deflate stream could not be decoded.
package enum InflateError: Error, Sendable, Hashable {
    /// The input ends before the stream does.
    case truncated
    /// The stream breaks a rule of RFC 1950 or RFC 1951; the text says which.
    case invalid(String)
    /// The source of compressed bytes failed.
    case source(ImageError)
}
