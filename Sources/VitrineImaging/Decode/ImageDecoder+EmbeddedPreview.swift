extension ImageDecoder {
    /// The smallest preview inside the file that can stand in for the picture at the size asked for; nil when the
    /// picture itself has to be decoded.
    ///
    /// - Throws: What ``decodePreview(_:in:_:)`` throws.
    func embeddedPreview(in source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage? {
        guard request.allowsEmbeddedPreview, let target = request.target else { return nil }
        for preview in request.info.embeddedPreviews.reversed() {
            guard let size = preview.size, size.width >= target.width, size.height >= target.height else { continue }
            if let image = try decodePreview(preview, in: source, request) { return image }
        }
        return nil
    }

    /// One preview inside the file; nil when it shows another section than the picture, breaks a limit or cannot be
    /// read. Without a profile of its own it has the picture's.
    ///
    /// Its samples are stored like the picture's, whatever its own header says of orientation: who renders them turns
    /// them like the picture, once.
    ///
    /// - Parameters:
    ///   - source: The file, or as much of it as has arrived.
    ///   - request: What the picture is asked for.
    /// - Throws: ``ImageError/cancelled(input:)`` and ``ImageError/timedOut(input:)``, which concern the whole work.
    func decodePreview(
        _ preview: ImageInfo.EmbeddedPreview, in source: ByteSource, _ request: DecodeRequest
    ) throws(ImageError) -> DecodedImage? {
        guard request.page == 0, preview.hasShape(of: request.info.storedSize) else { return nil }
        do throws(ImageError) {
            let bytes = try source.bytes(at: preview.offset, count: preview.count)
            let inner = ByteSource(bytes: bytes, name: source.name)
            var info = try ImageInfo(reading: inner, limits: limits)
            try limits.check(info, source: inner)
            guard info.format == .jpeg, info.storedSize == preview.size else { return nil }
            info.colorProfile = info.colorProfile ?? request.info.colorProfile
            var part = request
            part.info = info
            part.allowsEmbeddedPreview = false
            // Half a preview is worse than the picture.
            part.allowPartial = false
            return try DecoderRegistry.decode(inner, part, with: decoders(for: .jpeg))
        } catch {
            switch error {
            case .cancelled, .timedOut: throw error
            default: return nil
            }
        }
    }
}
