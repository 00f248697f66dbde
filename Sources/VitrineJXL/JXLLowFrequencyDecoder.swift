import VitrineCore
import VitrineImageCore

/// Makes small images of large JPEG XL files from their low-frequency sections alone: one sample a block of 8 × 8
/// pixels, which the format stores apart and first, in a tenth of the file.
///
/// Reads lossy images (VarDCT) in the format's own colours and JPEG files recompressed without loss, when the target
/// is at most a twelfth of the image. Everything else (lossless images, alpha, layers, patches, splines, later
/// frames, images for brighter screens) it calls unsupported, whereupon the worker decodes every pixel.
package struct JXLLowFrequencyDecoder: ImageDecoding {
    /// How many pixels must fall on one of the result.
    static let minimumReduction = 12.0

    package let formats: Set<ImageFormat> = [.jxl]

    package init() {}

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        func refusal(_ reason: String) -> ImageError { .unsupported(input: source.name, reason: reason) }
        guard request.reduction >= JXLLowFrequencyDecoder.minimumReduction, request.options.page == 0 else {
            throw refusal("nothing to gain from low frequencies alone")
        }
        guard source.count <= request.limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: source.count, allowed: request.limits.maximumInputBytes)
        }
        let source = ByteSource(source, polling: request.cancellation)
        let codestream = try JXLCodestream(ByteReader(source))
        let start = try JXLFrameStart(codestream)
        try check(start, request: request, name: source.name)
        // Behind the sections needed there is more in any complete file.
        let end = start.sections &+ start.contents.total
        let isPartial = end > codestream.count
        if isPartial, !request.options.allowsPartial { throw .truncated(input: source.name) }
        var planes = JXLLowFrequencyPlanes(start.frame)
        try read(&planes, start: start, codestream: codestream, request: request, name: source.name)
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

    /// Whether the first frame is the whole image, in a variety that is read here.
    private func check(_ start: JXLFrameStart, request: DecodeRequest, name: String) throws(ImageError) {
        let (image, frame) = (start.image, start.frame)
        let special = JXLFrameHeader.Flag.patches | JXLFrameHeader.Flag.splines
            | JXLFrameHeader.Flag.usesLowFrequencyFrame
        let isWhole = frame.kind == .regular && !frame.hasCrop && frame.blendMode == 0 && frame.upsampling == 1
            && (frame.isLast || frame.duration > 0) && !image.hasPreview
        guard isWhole, !frame.isModular, frame.flags & special == 0, image.extraChannels == 0,
            start.contents.sizes.count > 1
        else {
            throw .unsupported(input: name, reason: "no low frequencies of the whole image")
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
        _ planes: inout JXLLowFrequencyPlanes, start: JXLFrameStart, codestream: JXLCodestream,
        request: DecodeRequest, name: String
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

/// The common parameters of a frame's low-frequency sections.
///
/// Source: ISO/IEC 18181-1 annex G.1 (LfGlobal).
private struct JXLLowFrequencyGlobals {
    /// The step of each channel in the order X, Y, B (or Cb, Y, Cr).
    var steps: [Float]
    /// How much of Y is in the other two.
    var correlation: (x: Float, b: Float)
    /// Tree and codes that sections may share.
    var shared: (tree: JXLModularTree, code: JXLEntropyCode)?

    init(_ bits: inout JXLBits, _ frame: JXLFrameHeader) throws(JXLFault) {
        if frame.flags & JXLFrameHeader.Flag.noise != 0 { bits.skip(80) }
        var quantizers: [Float] = [1 / 4096, 1 / 512, 1 / 256]
        if !bits.bool() { for c in 0..<3 { quantizers[c] = try bits.f16() / 128 } }
        let scale = bits.u32(a: (1, 11), b: (2049, 11), c: (4097, 12), d: (8193, 16))
        let quantizer = bits.u32(a: (16, 0), b: (1, 5), c: (1, 8), d: (1, 16))
        steps = quantizers.map { $0 * 65_536 / Float(scale) / Float(quantizer) }
        guard steps.allSatisfy({ $0 > 0 && $0.isFinite }) else { throw .corrupt("quantizer") }
        try JXLLowFrequencyGlobals.skipBlockContexts(&bits)
        correlation = (0, 1)
        if !bits.bool() {
            let factor = Float(bits.u32(a: (84, 0), b: (256, 0), c: (2, 8), d: (258, 16)))
            let (x, b) = (try bits.f16(), try bits.f16())
            correlation = (x + Float(bits.bits(8) - 128) / factor, b + Float(bits.bits(8) - 128) / factor)
        }
        if bits.bool() {
            let tree = try JXLModularTree(&bits)
            shared = (tree, try JXLEntropyCode(&bits, contexts: tree.leafCount))
        }
        try bits.check()
    }

    private static func skipBlockContexts(_ bits: inout JXLBits) throws(JXLFault) {
        if bits.bool() { return }
        var contexts = 39
        for _ in 0..<3 {
            let count = bits.bits(4)
            for _ in 0..<count { _ = bits.u32(a: (0, 4), b: (16, 8), c: (272, 16), d: (65_808, 32)) }
            contexts *= count + 1
        }
        let count = bits.bits(4)
        for _ in 0..<count { _ = bits.u32(a: (0, 2), b: (4, 3), c: (12, 5), d: (44, 8)) }
        contexts *= count + 1
        guard contexts <= 39 * 64 else { throw .corrupt("block contexts") }
        _ = try JXLEntropyCode.clusters(&bits, contexts: contexts)
    }
}

/// The low-frequency samples of a frame: one a block of 8 × 8 pixels and channel, fewer where chroma is subsampled.
private struct JXLLowFrequencyPlanes: ~Copyable {
    struct Plane {
        var samples: UnsafeMutablePointer<Float>
        var width: Int
        var height: Int
        var shiftX: Int
        var shiftY: Int
    }

    /// X, Y, B or Cb, Y, Cr.
    private(set) var planes: [Plane] = []
    let isSubsampled: Bool

    init(_ frame: JXLFrameHeader) {
        let across = frame.sampling.map { $0 == 1 || $0 == 2 ? 1 : 0 }
        let down = frame.sampling.map { $0 == 1 || $0 == 3 ? 1 : 0 }
        let (mostX, mostY) = (across.max() ?? 0, down.max() ?? 0)
        isSubsampled = across.contains { $0 != mostX } || down.contains { $0 != mostY }
        func blocks(_ side: Int, _ shift: Int) -> Int { ((side + (8 << shift) - 1) / (8 << shift)) << shift }
        let (width, height) = (blocks(frame.width, mostX), blocks(frame.height, mostY))
        for c in 0..<3 {
            let (x, y) = (mostX - across[c], mostY - down[c])
            let samples = UnsafeMutablePointer<Float>.allocate(capacity: (width >> x) * (height >> y))
            samples.initialize(repeating: 0, count: (width >> x) * (height >> y))
            planes.append(Plane(samples: samples, width: width >> x, height: height >> y, shiftX: x, shiftY: y))
        }
    }

    deinit { for plane in planes { plane.samples.deallocate() } }

    /// Reads the section of one area of at most 256 × 256 blocks.
    func read(
        _ bits: inout JXLBits, section: Int, columns: Int, _ globals: JXLLowFrequencyGlobals
    ) throws(JXLFault) {
        let precision = 1 / Float(1 << bits.bits(2))
        let (left, top) = (section % columns * 256, section / columns * 256)
        // Y comes first.
        let areas = [1, 0, 2].map { c in
            let plane = planes[c]
            let (x, y) = (left >> plane.shiftX, top >> plane.shiftY)
            return (
                x: x, y: y, width: min(plane.width - x, 256 >> plane.shiftX),
                height: min(plane.height - y, 256 >> plane.shiftY)
            )
        }
        guard areas.allSatisfy({ $0.width > 0 && $0.height > 0 }) else { throw .corrupt("section") }
        let scratch = UnsafeMutablePointer<Int32>.allocate(capacity: 3 * 65_536)
        defer { scratch.deallocate() }
        var stream = try JXLModularStream(&bits, stream: 1 + section, global: globals.shared)
        var channels: [JXLModularStream.Channel] = []
        for (index, area) in areas.enumerated() {
            let channel = JXLModularStream.Channel(
                samples: scratch + index * 65_536, width: area.width, height: area.height, stride: area.width)
            let previous = channels.reversed().filter { $0.width == area.width && $0.height == area.height }
            try stream.read(&bits, channel, index: index, previous: previous)
            channels.append(channel)
        }
        try stream.finish(bits)
        for (index, area) in areas.enumerated() {
            let c = [1, 0, 2][index]
            let plane = planes[c]
            let step = globals.steps[c] * precision
            for y in 0..<area.height {
                let from = channels[index].samples + y * area.width
                let to = plane.samples + (area.y + y) * plane.width + area.x
                for x in 0..<area.width { to[x] = Float(from[x]) * step }
                guard !isSubsampled, c != 1 else { continue }
                let share = c == 0 ? globals.correlation.x : globals.correlation.b
                let luma = planes[1].samples + (area.y + y) * plane.width + area.x
                for x in 0..<area.width { to[x] += luma[x] * share }
            }
        }
    }

    /// Evens out steps that quantization made (annex G.2.3): a sample moves towards the weighted mean of its
    /// neighbourhood if that is within about one step.
    mutating func smooth(_ steps: [Float]) {
        let (width, height) = (planes[1].width, planes[1].height)
        guard width > 2, height > 2 else { return }
        let (side, corner): (Float, Float) = (0.203_451_397_572_315_78, 0.033_482_918_596_873_9)
        let own = 1 - 4 * (side + corner)
        let (x, y, b) = (planes[0].samples, planes[1].samples, planes[2].samples)
        let results = (0..<3).map { c in
            let copy = UnsafeMutablePointer<Float>.allocate(capacity: width * height)
            copy.initialize(from: planes[c].samples, count: width * height)
            return copy
        }
        let (toX, toY, toB) = (results[0], results[1], results[2])
        let (perX, perY, perB) = (1 / steps[0], 1 / steps[1], 1 / steps[2])
        @inline(__always) func mean(_ p: UnsafeMutablePointer<Float>) -> Float {
            let sides = p[-1] + p[1] + p[-width] + p[width]
            let corners = p[-width - 1] + p[-width + 1] + p[width - 1] + p[width + 1]
            return own * p[0] + side * sides + corner * corners
        }
        for row in 1..<(height - 1) {
            for i in (row * width + 1)..<(row * width + width - 1) {
                let (meanX, meanY, meanB) = (mean(x + i), mean(y + i), mean(b + i))
                let (byX, byY, byB) = (meanX - x[i], meanY - y[i], meanB - b[i])
                let gap = max(0.5, max(abs(byX) * perX, max(abs(byY) * perY, abs(byB) * perB)))
                let factor = max(0, 3 - 4 * gap)
                toX[i] += byX * factor
                toY[i] += byY * factor
                toB[i] += byB * factor
            }
        }
        for c in 0..<3 {
            planes[c].samples.deallocate()
            planes[c].samples = results[c]
        }
    }
}

extension JXLLowFrequencyPlanes {
    /// The encoded sRGB level for linear light of `(i / 4095)²`: finer in the dark, where the curve is steep.
    private static let levels: [UInt8] = (0..<4096).map { i in
        let root = Float(i) / 4095
        return SRGB.level(root * root)
    }

    /// The samples as sRGB, one pixel a block.
    ///
    /// Source: ISO/IEC 18181-1 annex L.2 (XYB, inverse opsin matrix and bias).
    func rgb(_ width: Int, _ height: Int, brightness: Float) -> PixelPlane {
        let columns = (width + 7) / 8
        let rows = (height + 7) / 8
        let storage = PixelStorage(zeroedByteCount: columns * rows * 3)
        let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        let stride = planes[1].width
        let bias: Float = 0.003_793_073_255_275_449_3
        let root: Float = 0.155_954_2  // the bias's cube root
        let first = SIMD4<Float>(11.031_566_9, -3.254_147_38, -3.658_851_29, 0) * brightness
        let second = SIMD4<Float>(-9.866_943_92, 4.418_770_39, 2.712_923_05, 0) * brightness
        let third = SIMD4<Float>(-0.164_622_997, -0.164_622_997, 1.945_928_24, 0) * brightness
        JXLLowFrequencyPlanes.levels.withUnsafeBufferPointer { levels in
            for row in 0..<rows {
                let x = planes[0].samples + row * stride
                let y = planes[1].samples + row * stride
                let b = planes[2].samples + row * stride
                let to = target + row * columns * 3
                for i in 0..<columns {
                    // Kept where cubes stay finite: damaged files have any number.
                    let l = max(-8, min(8, y[i] + x[i] + root))
                    let m = max(-8, min(8, y[i] - x[i] + root))
                    let s = max(-8, min(8, b[i] + root))
                    let linear = first * (l * l * l - bias) + second * (m * m * m - bias) + third * (s * s * s - bias)
                    let clamped = linear.clamped(lowerBound: SIMD4(), upperBound: SIMD4(repeating: 1))
                    let index = SIMD4<Int32>(clamped.squareRoot() * 4095 + 0.5)
                    to[3 * i] = levels[Int(index[0]) & 4095]
                    to[3 * i + 1] = levels[Int(index[1]) & 4095]
                    to[3 * i + 2] = levels[Int(index[2]) & 4095]
                }
            }
        }
        return PixelPlane(
            width: columns, height: rows, channels: 3, extent: (Double(width) / 8, Double(height) / 8),
            storage: storage)
    }

    /// The samples as planes of Y′CbCr, chroma as subsampled as it is.
    func yCbCr(_ width: Int, _ height: Int) -> [PixelPlane] {
        [1, 0, 2].map { c in
            let plane = planes[c]
            let (stepX, stepY) = (8 << plane.shiftX, 8 << plane.shiftY)
            let (columns, rows) = ((width + stepX - 1) / stepX, (height + stepY - 1) / stepY)
            let storage = PixelStorage(zeroedByteCount: columns * rows)
            let target = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
            for row in 0..<rows {
                let from = plane.samples + row * plane.width
                for i in 0..<columns {
                    target[row * columns + i] = UInt8(max(0, min(255, from[i] * 255 + 128.5)))
                }
            }
            return PixelPlane(
                width: columns, height: rows, channels: 1,
                extent: (Double(width) / Double(stepX), Double(height) / Double(stepY)), storage: storage)
        }
    }
}
