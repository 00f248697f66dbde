import VitrineCore

/// Makes small pictures of large JPEG XL files from their low-frequency sections alone: one sample a block of 8 × 8
/// pixels, which the format stores apart and first, in a tenth of the file.
///
/// Reads lossy pictures (VarDCT) in the format's own colours and JPEG files recompressed without loss, when the target
/// is at most a twelfth of the picture. Everything else (lossless pictures, alpha, layers, patches, splines, later
/// frames, pictures for brighter screens) it calls unsupported, whereupon the worker decodes every pixel.
package struct JXLLowFrequencyDecoder: ImageDecoding {
    /// How many pixels must fall on one of the result.
    static let minimumReduction = 12.0

    package let formats: Set<ImageFormat> = [.jxl]
    package let needsIsolation = false

    package init() {}

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        func refusal(_ reason: String) -> ImageError { .unsupported(input: source.name, reason: reason) }
        guard request.reduction >= JXLLowFrequencyDecoder.minimumReduction, request.page == 0 else {
            throw refusal("nothing to gain from low frequencies alone")
        }
        guard source.count <= request.limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: source.count, allowed: request.limits.maximumInputBytes)
        }
        let codestream = try JXLCodestream(ByteReader(source))
        let start = try JXLFrameStart(codestream)
        try check(start, request, source.name)
        // Behind the sections needed there is more in any complete file.
        let end = start.sections &+ start.contents.total
        let isPartial = end > codestream.count
        if isPartial, !request.allowPartial { throw .truncated(input: source.name) }
        var planes = JXLLowFrequencyPlanes(start.frame)
        try read(&planes, start, codestream, request, source.name)
        let (width, height) = (start.frame.width, start.frame.height)
        if start.frame.isYCbCr {
            return DecodedImage(
                planes: planes.yCbCr(width, height), model: .yCbCr(.bt601, fullRange: true),
                colorProfile: start.image.info.colorModel == .gray ? nil : start.profile, isPartial: isPartial,
                samplesAreMeans: true)
        }
        let plane = planes.rgb(width, height, brightness: 255 / start.image.intensityTarget)
        return DecodedImage(planes: [plane], model: .rgb, isPartial: isPartial, samplesAreMeans: true)
    }

    /// Whether the first frame is the whole picture, in a variety that is read here.
    private func check(_ start: JXLFrameStart, _ request: DecodeRequest, _ name: String) throws(ImageError) {
        let (image, frame) = (start.image, start.frame)
        let special = JXLFrameHeader.Flag.patches | JXLFrameHeader.Flag.splines
            | JXLFrameHeader.Flag.usesLowFrequencyFrame
        let isWhole = frame.kind == .regular && !frame.hasCrop && frame.blendMode == 0 && frame.upsampling == 1
            && (frame.isLast || frame.duration > 0) && !image.hasPreview
        guard isWhole, !frame.isModular, frame.flags & special == 0, image.extraChannels == 0,
            start.contents.sizes.count > 1
        else {
            throw .unsupported(input: name, reason: "no low frequencies of the whole picture")
        }
        let isKnownColor = image.isXYB
            ? !image.hasCustomTransform && image.transfer != 16 && image.transfer != 18
                && image.intensityTarget > 0 && image.intensityTarget <= 400
            : frame.isYCbCr && (image.hasProfile ? start.profile != nil : image.isSRGB)
        guard isKnownColor else { throw .unsupported(input: name, reason: "its colours") }
        guard image.info.storedSize == request.info.storedSize else {
            throw .corrupt(input: name, reason: "its header changed")
        }
    }

    private func read(
        _ planes: inout JXLLowFrequencyPlanes, _ start: JXLFrameStart, _ codestream: JXLCodestream,
        _ request: DecodeRequest, _ name: String
    ) throws(ImageError) {
        let contents = start.contents
        func section<R>(
            _ index: Int, _ body: (inout JXLBits) throws(JXLFault) -> R
        ) throws(ImageError) -> R {
            let bytes = try codestream.bytes(
                at: start.sections &+ contents.offsets[index], count: contents.sizes[index])
            switch JXLBits.read(bytes, body) {
            case .success(let value): return value
            case .failure(let fault): throw fault.error(name)
            }
        }
        let globals = try section(0) { bits throws(JXLFault) in try JXLLowFrequencyGlobals(&bits, start.frame) }
        for index in 0..<(contents.lowFrequencyColumns * contents.lowFrequencyRows) {
            if request.cancellation.isCancelled { throw .cancelled(input: name) }
            try section(1 + index) { bits throws(JXLFault) in
                try planes.read(&bits, section: index, columns: contents.lowFrequencyColumns, globals)
            }
        }
        if !planes.isSubsampled, start.frame.flags & JXLFrameHeader.Flag.skipsSmoothing == 0 {
            planes.smooth(globals.steps)
        }
    }
}
