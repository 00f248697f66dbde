/// What a helper for documents does: `vitrine-pdf` and `vitrine-video` have one each.
///
/// Called on one thread. May keep what it has opened, and with it the source, from one request to the next: the
/// requests of one document come to the same helper as far as possible. A source is the same document as an earlier
/// one when device, inode, size and time of change are the same.
package protocol DocumentRendering {
    /// What the document holds, in a form of the renderer's own.
    ///
    /// - Throws: ``ImageError``; the input's name is filled in on the client's side.
    func describe(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> [UInt8]

    /// One page or frame, upright, not smaller than the request's target unless it is smaller itself.
    func render(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> DecodedImage
}
