import VitrineCore

extension ImageDecoder {
    /// Returns the small image that a camera stored in the file; nil if none shows the same section.
    ///
    /// A preview fills the time until the image itself is decoded. The call blocks, and never decodes the image itself.
    ///
    /// - Parameters:
    ///   - input: A file or bytes.
    ///   - resizer: Size and mode, as for the image. A smaller preview is not enlarged, but has the same shape.
    ///   - cancellation: Stops the decode.
    /// - Throws: ``ImageError`` as ``decode(_:at:options:cancellation:)``. A damaged preview is
    ///   not an error.
    package func embeddedPreview(
        of input: ImageInput, at resizer: ImageResizer, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> PixelImage? {
        let opened = try ByteSource(input)
        return try Deadline.run(seconds: limits.deadline, input: opened.name, cancellation: cancellation) {
            token throws(ImageError) in
            let source = ByteSource(opened, polling: token)
            let info = try header(of: source, until: token).info
            try limits.check(info, source: source)
            guard !info.embeddedPreviews.isEmpty else { return nil }
            let plan = try DecodePlan(resizer, for: info, limits: limits, input: source.name)
            let request = DecodeRequest(info: info, target: plan.target, limits: limits, cancellation: token)
            let wanted = plan.target ?? info.storedSize
            // The smallest that is large enough, else the largest.
            let (large, small) = (
                info.embeddedPreviews.filter { $0.covers(wanted) }, info.embeddedPreviews.filter { !$0.covers(wanted) }
            )
            for preview in large.reversed() + small {
                guard let decoded = try decodePreview(preview, in: source, request) else { continue }
                return try render(decoded, plan: plan, resizer: resizer, info: info, cancellation: token)
            }
            return nil
        }
    }

    /// A preview as `plan` has it, without enlarging it.
    private func render(
        _ decoded: DecodedImage, plan: DecodePlan, resizer: ImageResizer, info: ImageInfo,
        cancellation: CancellationToken
    ) throws(ImageError) -> PixelImage {
        let (plane, region) = (decoded.planes[0], plan.region ?? .full)
        let scale = min(
            1, plane.extentWidth * region.width / Double(plan.rendered.width),
            plane.extentHeight * region.height / Double(plan.rendered.height))
        func scaled(_ size: PixelSize) -> PixelSize {
            PixelSize(
                width: max(1, Int((Double(size.width) * scale).rounded())),
                height: max(1, Int((Double(size.height) * scale).rounded())))
        }
        let image = try DecodedImageRenderer.image(
            from: decoded, size: scaled(plan.rendered), region: plan.region, orientation: info.orientation,
            cancellation: cancellation, inputName: "preview")
        guard plan.needsPixels else { return image }
        return try ImageResizer(size: scaled(resizer.outputSize(for: info.size)), mode: resizer.mode).resize(image)
    }

    /// The smallest preview inside the file that can replace the image at the requested size; nil if the image itself
    /// has to be decoded.
    ///
    /// - Throws: As ``decodePreview(_:in:_:)``.
    func embeddedPreview(in source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage? {
        guard request.options.allowsEmbeddedPreview, let target = request.target else { return nil }
        for preview in request.info.embeddedPreviews.reversed() {
            guard preview.covers(target) else { continue }
            if let image = try decodePreview(preview, in: source, request) { return image }
        }
        return nil
    }

    /// One preview inside the file; nil if it shows another section than the image, breaks a limit or cannot be read.
    /// Without a profile of its own it has the one of the image.
    ///
    /// Its samples are stored like those of the image, so the orientation in its own header is ignored: the renderer
    /// turns them like the image, once.
    ///
    /// - Parameters:
    ///   - source: The file, or its first part that has arrived.
    ///   - request: The request for the image.
    /// - Throws: ``ImageError/cancelled(input:)`` and ``ImageError/timedOut(input:)``, which concern the whole work.
    func decodePreview(
        _ preview: ImageInfo.EmbeddedPreview, in source: ByteSource, _ request: DecodeRequest
    ) throws(ImageError) -> DecodedImage? {
        guard request.options.page == 0, preview.hasShape(of: request.info.storedSize) else { return nil }
        do throws(ImageError) {
            let bytes = try source.bytes(at: preview.offset, count: preview.count)
            let inner = ByteSource(bytes: bytes, name: source.name)
            var info = try ImageInfo(reading: inner, limits: limits)
            try limits.check(info, source: inner)
            guard info.format == .jpeg, info.storedSize == preview.size else { return nil }
            info.colorProfile = info.colorProfile ?? request.info.colorProfile
            var part = request
            part.info = info
            part.options.allowsEmbeddedPreview = false
            // Half a preview is worse than the image.
            part.options.allowsPartial = false
            return try decoders(for: .jpeg).decode(inner, part)
        } catch {
            switch error {
            case .cancelled, .timedOut: throw error
            default: return nil
            }
        }
    }
}
