import VitrineCore

extension ImageDecoder {
    /// Decodes one picture at several sizes, on the calling thread, which it blocks. The file is decoded once.
    ///
    /// Each picture is made from the decoder's samples, or from a larger one of the same call that has at least
    /// `ResizedImages.reduction` times its pixels in both directions, which looks the same and costs a fraction.
    ///
    /// - Returns: The pictures in the order of `resizers`; each has the size it has when asked for alone.
    /// - Throws: As ``decode(_:at:options:cancellation:)-(_,ImageResizer,_,_)``: one error for all.
    public func decode(
        _ input: ImageInput, at resizers: [ImageResizer], options: DecodeOptions = DecodeOptions(),
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> [Image] {
        guard !resizers.isEmpty else { return [] }
        var source = try ByteSource(input)
        var info = try ImageInfo(reading: source, limits: limits)
        try limits.check(info, source: source, frames: options.page &+ 1)
        if info.format == .svg {
            (source, info) = try checkedDrawing(source, frames: options.page &+ 1)
        }
        return try Deadline.run(seconds: limits.deadline, input: source.name, cancellation: cancellation) {
            token throws(ImageError) in
            try decode(source, info, at: resizers, options: options, cancellation: token)
        }
    }

    private func decode(
        _ source: ByteSource, _ info: ImageInfo, at resizers: [ImageResizer], options: DecodeOptions,
        cancellation: CancellationToken
    ) throws(ImageError) -> [Image] {
        guard options.page >= 0 && options.page < max(1, info.frameCount) else {
            throw .invalidRequest(
                reason: "page \(options.page) of \(source.name), which has \(info.frameCount), counted from 0")
        }
        let request = DecodeRequest(
            info: info, target: try target(of: resizers, for: info, input: source.name), page: options.page,
            allowPartial: options.allowPartial, allowsEmbeddedPreview: options.embeddedPreview == .whenLargeEnough,
            limits: limits, cancellation: cancellation)
        let decoded: DecodedImage
        if let preview = try embeddedPreview(in: source, request) {
            decoded = preview
        } else {
            decoded = try DecoderRegistry.decode(source, request, with: decoders(for: info.format))
        }
        var page = info
        if options.page > 0, let other = info.ofPage(decoded) { page = other }
        return try ResizedImages(
            decoded: decoded, info: page, limits: limits, cancellation: cancellation, inputName: source.name
        ).images(resizers)
    }

    /// The size to ask a decoder for that serves each of `resizers`; nil for every pixel.
    private func target(
        of resizers: [ImageResizer], for info: ImageInfo, input: String
    ) throws(ImageError) -> PixelSize? {
        var largest = PixelSize.zero
        for resizer in resizers {
            guard let target = try DecodePlan(resizer, for: info, limits: limits, input: input).target else {
                return nil
            }
            largest.width = max(largest.width, target.width)
            largest.height = max(largest.height, target.height)
        }
        return largest
    }
}
