extension ImageDecoder {
    /// The smallest preview inside the file that can stand in for the picture at the size asked for, decoded; nil when
    /// there is none or it cannot be read, in which case the picture itself is decoded. Its samples are stored like the
    /// picture's, whatever its own header says of orientation.
    func embeddedPreview(in source: ByteSource, _ request: DecodeRequest) -> DecodedImage? {
        guard request.allowsEmbeddedPreview, request.page == 0, let target = request.target else { return nil }
        let candidates = request.info.embeddedPreviews.reversed().filter { preview in
            guard let size = preview.size else { return false }
            return size.width >= target.width && size.height >= target.height
                && preview.hasShape(of: request.info.storedSize)
        }
        for preview in candidates {
            guard let bytes = try? source.bytes(at: preview.offset, count: preview.count) else { continue }
            let inner = ByteSource(bytes: bytes, name: source.name)
            guard var info = try? ImageInfo(reading: inner, limits: limits), info.format == .jpeg,
                (try? limits.check(info, source: inner)) != nil
            else { continue }
            info.colorProfile = info.colorProfile ?? request.info.colorProfile
            var part = request
            part.info = info
            part.page = 0
            if let image = try? DecoderRegistry.decode(inner, part, with: decoders(for: .jpeg)) {
                return image
            }
        }
        return nil
    }
}
