#if SystemCodecs
import CVitrineJPEG
import VitrineCore
@_spi(JPEGRows) import VitrineImageCore

/// Decodes JPEG by libjpeg-turbo, scaled down in the transform where the request allows it.
///
/// A request that allows it is scaled row by row, so that the larger image is never in memory: red, green and blue
/// exactly as the library makes them, whose rounding the scaling averages out. Otherwise, reduced images whose planes
/// of colour are smaller than that of brightness come as these planes, neither upsampled nor converted, in half the
/// memory; that happens after scaling, to far fewer samples.
package struct LibJPEGDecoder: ImageDecoding {
    /// Scans decoded of one file. Real encoders write about ten; thousands of them are an attack on the clock.
    package static let maximumScans = 200
    /// How many times the size asked for the scaled image is at least.
    package static let oversampling = 1.6

    package init() {}

    package var formats: Set<ImageFormat> { [.jpeg] }
    package var library: String? { "libjpeg" }

    /// Decodes at the smallest of 1/8, 1/4, 1/2 and 1/1 that is at least ``oversampling`` times the requested size.
    ///
    /// - Throws: Damage is an error unless the request allows a partial image. A progressive file that needs too many
    ///   coefficients breaks the limit ``ImageLimits/Kind/memory``. Processes that the library does not have are
    ///   ``ImageError/unsupported(input:reason:)``. A cancellation takes effect within a row of blocks.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        var options = Options(
            eighths: LibJPEGDecoder.eighths(for: request),
            output: request.reduction < 1.25 || request.allowsScaling ? .pixels : .smallerPlanes,
            limits: request.limits, allowsPartial: request.options.allowsPartial, cancellation: request.cancellation)
        options.memory = request.resultBuffer
        options.target = request.allowsScaling ? request.target : nil
        options.region = request.region
        options.margin = request.options.acceptsMeans ? JPEGRegion.marginOfMeans : JPEGRegion.margin
        var image = try decode(source, options)
        image.colorProfile = request.info.colorProfile
        return image
    }

    /// The scale for a reduction, in eighths.
    static func eighths(for reduction: Double) -> Int {
        for eighths in [1, 2, 4] where reduction * Double(eighths) / 8 >= oversampling { return eighths }
        return 8
    }

    /// The scale for a request. The library's samples at 1/2, 1/4 and 1/8 are means of pixels.
    private static func eighths(for request: DecodeRequest) -> Int {
        for eighths in [1, 2, 4] where request.acceptsMeans(of: 8 / Double(eighths)) { return eighths }
        return eighths(for: request.reduction)
    }

    /// How Y′CbCr comes out of the library.
    private enum Output: Int32 {
        /// As red, green and blue.
        case pixels = 0
        /// As it is stored, neither upsampled nor converted.
        case planes = 1
        /// As it is stored if the planes of colour are smaller than that of brightness.
        case smallerPlanes = 2
    }

    /// Decodes at a given scale.
    ///
    /// - Parameters:
    ///   - eighths: 1, 2, 4 or 8.
    ///   - isPlanar: Whether Y′CbCr comes as it is stored; otherwise it is upsampled and converted.
    package func decode(
        _ source: ByteSource, eighths: Int, isPlanar: Bool, limits: ImageLimits = .standard,
        allowsPartial: Bool = false, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> DecodedImage {
        try decode(
            source,
            Options(
                eighths: eighths, output: isPlanar ? .planes : .pixels, limits: limits, allowsPartial: allowsPartial,
                cancellation: cancellation))
    }

    /// The part of a file that is decoded, and the form of the result.
    private struct Options {
        /// The scale: 1, 2, 4 or 8.
        let eighths: Int
        let output: Output
        let limits: ImageLimits
        let allowsPartial: Bool
        let cancellation: CancellationToken
        /// Where the planes are put; nil for memory of their own.
        var memory: SharedBuffer?
        /// The size to which pixels are scaled while they are decoded; nil if they are not.
        var target: PixelSize?
        /// The part that is decoded, at least; nil for everything.
        var region: PixelRect?
        /// The pixels around the region.
        var margin = 0

        init(
            eighths: Int, output: Output, limits: ImageLimits, allowsPartial: Bool, cancellation: CancellationToken
        ) {
            self.eighths = eighths
            self.output = output
            self.limits = limits
            self.allowsPartial = allowsPartial
            self.cancellation = cancellation
        }
    }

    private func decode(_ source: ByteSource, _ choice: Options) throws(ImageError) -> DecodedImage {
        let (eighths, limits) = (choice.eighths, choice.limits)
        guard source.count > 0 else { throw .empty(input: source.name) }
        let input = LibJPEGInput(source, choice.cancellation)
        guard let decoder = input.makeDecoder() else {
            throw .limitExceeded(input: source.name, limit: .memory, actual: 0, allowed: 0)
        }
        defer {
            cjpeg_decoder_destroy(decoder)
            withExtendedLifetime(input) {}
        }
        var header = cjpeg_header()
        func check(_ status: cjpeg_status) throws(ImageError) {
            guard status != CJPEG_OK else { return }
            // Bytes that end before the first scan are no damage.
            if status == CJPEG_CORRUPT, cjpeg_decoder_reached_end(decoder) != 0 { throw .truncated(input: source.name) }
            throw input.error(status, limits, needed: header.coefficient_bytes)
        }
        try check(cjpeg_decoder_read_header(decoder, &header))
        let size = PixelSize(width: Int(header.width), height: Int(header.height))
        guard size.pixelCount <= limits.maximumPixels else {
            throw .limitExceeded(
                input: source.name, limit: .pixels, actual: size.pixelCount, allowed: limits.maximumPixels)
        }
        var options = cjpeg_decode_options()
        options.eighths = Int32(eighths)
        // The library crops rows of pixels only.
        let wanted = choice.region.flatMap { JPEGRegion($0, of: size, eighths: eighths, margin: choice.margin) }
        options.planar = wanted == nil ? choice.output.rawValue : Output.pixels.rawValue
        options.maximum_coefficient_bytes = UInt64(clamping: limits.maximumCoefficientBytes)
        options.maximum_scans = Int32(LibJPEGDecoder.maximumScans)
        var layout = cjpeg_layout()
        try check(cjpeg_decoder_start(decoder, &options, &layout))
        let planes: [PixelPlane]
        var shown: PixelRect?
        if let wanted {
            var crop = wanted
            try check(
                cjpeg_decoder_crop(decoder, &crop.x, crop.y, &crop.width, crop.height, &layout))
            shown = crop.stored(of: size, eighths: eighths)
            let (part, status) = rows(
                decoder, layout: layout, crop: crop, of: size, eighths: eighths, memory: choice.memory)
            try check(status)
            planes = [part]
        } else if let target = choice.target, let rows = ScaledRows(layout, to: target) {
            let (scaled, status) = rows.scale(decoder)
            try check(status)
            guard let scaled else { throw .cancelled(input: source.name) }
            planes = [scaled]
        } else {
            planes = makePlanes(layout, choice.memory)
            try check(finish(decoder, planes))
        }
        let isTruncated = cjpeg_decoder_is_truncated(decoder) != 0
        let isDamaged = cjpeg_decoder_is_damaged(decoder) != 0
        if !choice.allowsPartial {
            if isTruncated { throw .truncated(input: source.name) }
            if isDamaged { throw .undecodable(.jpeg, input: source.name) }
        }
        let filled = Int(cjpeg_decoder_filled_rows(decoder))
        guard filled > 0 else { throw .truncated(input: source.name) }
        var image = DecodedImage(
            planes: planes, model: model(layout, header), isPartial: isTruncated || isDamaged)
        image.region = shown
        let (top, height) = shown.map { ($0.y, $0.size.height) } ?? (0, size.height)
        image.filledHeight = max(0, min(1, Double(filled - top) / Double(height)))
        return image
    }

    /// The rows of a part, behind which nothing is decoded.
    private func rows(
        _ decoder: OpaquePointer, layout: cjpeg_layout, crop: JPEGRegion, of size: PixelSize, eighths: Int,
        memory: SharedBuffer?
    ) -> (PixelPlane, cjpeg_status) {
        var plane = makePlanes(layout, memory)[0]
        // The last block of a row may reach beyond the image.
        let right = Double(size.width * eighths) / 8 - Double(crop.x)
        let bottom = Double(size.height * eighths) / 8 - Double(crop.y)
        plane.extentWidth = min(plane.extentWidth, right)
        plane.extentHeight = min(plane.extentHeight, bottom)
        var (status, decoded) = (CJPEG_OK, 0)
        while status == CJPEG_OK, decoded < plane.height {
            let count = min(64, plane.height - decoded)
            let start = plane.storage.bytes.baseAddress.map { $0 + decoded * plane.bytesPerRow }
            status = cjpeg_decoder_next_rows(
                decoder, start?.assumingMemoryBound(to: UInt8.self), plane.bytesPerRow, UInt32(count))
            decoded += count
        }
        return (plane, status)
    }

    private func finish(_ decoder: OpaquePointer, _ planes: [PixelPlane]) -> cjpeg_status {
        let bases = planes.map { $0.storage.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) }
        return bases.withUnsafeBufferPointer { bases in
            planes.map(\.bytesPerRow).withUnsafeBufferPointer { rows in
                cjpeg_decoder_finish(decoder, bases.baseAddress, rows.baseAddress)
            }
        }
    }

    private func model(_ layout: cjpeg_layout, _ header: cjpeg_header) -> DecodedImage.Model {
        switch layout.model {
        case CJPEG_GRAY: .gray
        case CJPEG_YCBCR: .yCbCr(.bt601, fullRange: true)
        // Also without Adobe's marker: every writer of CMYK follows Photoshop, and every reader expects that.
        case CJPEG_CMYK: .cmyk(inverted: true)
        default: .rgb
        }
    }

    /// Memory for the planes, with the rows and columns that the library writes beyond the image.
    private func makePlanes(_ layout: cjpeg_layout, _ memory: SharedBuffer?) -> [PixelPlane] {
        let described = [layout.planes.0, layout.planes.1, layout.planes.2]
        return described.prefix(Int(layout.plane_count)).map { plane in
            let channels = Int(layout.channels)
            let bytesPerRow = Int(plane.padded_width) * channels
            let count = bytesPerRow * Int(plane.padded_height)
            return PixelPlane(
                width: Int(plane.width), height: Int(plane.height), channels: channels, bytesPerRow: bytesPerRow,
                extent: (plane.extent_width, plane.extent_height),
                storage: memory?.storage(byteCount: count) ?? PixelStorage(zeroedByteCount: count))
        }
    }
}

/// Columns and rows of a scaled image that hold a region of it.
private struct JPEGRegion {
    /// Pixels around a region from which the library may interpolate colour, and the scaler pixels.
    static let margin = 64
    /// The same for results that are hardly scaled.
    static let marginOfMeans = 16

    var x: UInt32
    var y: UInt32
    var width: UInt32
    var height: UInt32

    /// nil for a region that is most of the image, which costs less in one go.
    init?(_ region: PixelRect, of size: PixelSize, eighths: Int, margin: Int) {
        guard let region = region.clipped(to: size) else { return nil }
        let scaled = PixelSize(width: (size.width * eighths + 7) / 8, height: (size.height * eighths + 7) / 8)
        let left = max(0, region.x - margin) * eighths / 8
        let top = max(0, region.y - margin) * eighths / 8
        let right = min(scaled.width, ((region.x + region.size.width + margin) * eighths + 7) / 8)
        let bottom = min(scaled.height, ((region.y + region.size.height + margin) * eighths + 7) / 8)
        let isMost = (right - left) * (bottom - top) * 10 >= 9 * scaled.pixelCount
        guard left < right, top < bottom, !isMost else { return nil }
        (x, y) = (UInt32(left), UInt32(top))
        (width, height) = (UInt32(right - left), UInt32(bottom - top))
    }

    /// The same in stored pixels.
    func stored(of size: PixelSize, eighths: Int) -> PixelRect? {
        let factor = 8 / eighths
        return PixelRect(
            x: Int(x) * factor, y: Int(y) * factor, width: Int(width) * factor, height: Int(height) * factor
        ).clipped(to: size)
    }
}

/// Rows of pixels that are scaled as soon as they are decoded.
private struct ScaledRows {
    /// Rows decoded at a time: as many as a row of blocks has at most, except of files with rare sampling factors.
    private static let stripHeight = 16

    private let plane: cjpeg_plane
    private let channels: Int
    private let target: PixelSize

    /// nil for several planes, and unless the image is reduced in both directions, by less than the resampler's boxes.
    init?(_ layout: cjpeg_layout, to target: PixelSize) {
        plane = layout.planes.0
        channels = Int(layout.channels)
        self.target = target
        let across = plane.extent_width / Double(target.width), down = plane.extent_height / Double(target.height)
        guard layout.plane_count == 1, !target.isEmpty, min(across, down) > 1,
            max(across, down) < Resampler.boxThreshold
        else { return nil }
    }

    /// The scaled plane, nil after a failure. All rows are decoded, also those below the last one that is needed:
    /// damage is found wherever it is.
    func scale(_ decoder: OpaquePointer) -> (PixelPlane?, cjpeg_status) {
        let height = Int(plane.height), bytesPerRow = Int(plane.width) * channels
        let strip = PixelStorage(zeroedByteCount: bytesPerRow * Self.stripHeight)
        defer { withExtendedLifetime(strip) {} }
        guard let base = strip.bytes.bindMemory(to: UInt8.self).baseAddress else { return (nil, CJPEG_MEMORY) }
        var status = CJPEG_OK
        var decoded = 0
        func decodeStrip() -> Bool {
            status = cjpeg_decoder_next_rows(decoder, base, bytesPerRow, UInt32(Self.stripHeight))
            decoded = min(height, decoded + Self.stripHeight)
            return status == CJPEG_OK
        }
        let scaled = Resampler.resample(
            width: Int(plane.width), height: height, channels: channels,
            extent: (plane.extent_width, plane.extent_height), to: target
        ) { row in
            while decoded <= row { guard decodeStrip() else { return nil } }
            return UnsafePointer(base + row % Self.stripHeight * bytesPerRow)
        }
        while status == CJPEG_OK, decoded < height { _ = decodeStrip() }
        return (status == CJPEG_OK ? scaled : nil, status)
    }
}

/// The input, the cancellation and the read error of the shim's callbacks.
///
/// Not sendable: lives in one decode, on one thread.
private final class LibJPEGInput {
    let source: ByteSource
    let cancellation: CancellationToken
    /// The error of a failed read; the shim itself only has the failure.
    private(set) var readError: ImageError?

    init(_ source: ByteSource, _ cancellation: CancellationToken) {
        self.source = source
        self.cancellation = cancellation
    }

    private func read(_ buffer: UnsafeMutableRawPointer, _ count: Int, at offset: Int) -> Int {
        guard offset >= 0 else { return 0 }
        do throws(ImageError) {
            return try source.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: count), at: offset)
        } catch {
            readError = error
            return -1
        }
    }

    /// A decoder of the shim that calls back here; nil when there is no memory. `self` must outlive it.
    func makeDecoder() -> OpaquePointer? {
        cjpeg_decoder_create(
            { context, buffer, count, offset in
                guard let context, let buffer else { return -1 }
                let input = Unmanaged<LibJPEGInput>.fromOpaque(context).takeUnretainedValue()
                return input.read(buffer, count, at: Int(truncatingIfNeeded: offset))
            },
            { context in
                guard let context else { return 0 }
                return Unmanaged<LibJPEGInput>.fromOpaque(context).takeUnretainedValue().cancellation.isCancelled
                    ? 1 : 0
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    /// The error a status of the shim stands for.
    func error(_ status: cjpeg_status, _ limits: ImageLimits, needed: UInt64) -> ImageError {
        let name = source.name
        switch status {
        case CJPEG_CANCELLED: return .cancelled(input: name)
        case CJPEG_READ: return readError ?? .unreadable(input: name, reason: "read error")
        case CJPEG_MEMORY:
            return .limitExceeded(
                input: name, limit: .memory, actual: Int(clamping: needed), allowed: limits.maximumCoefficientBytes)
        case CJPEG_SCANS:
            return .corrupt(input: name, reason: "more than \(LibJPEGDecoder.maximumScans) scans")
        case CJPEG_UNSUPPORTED:
            return .unknownKind(of: .jpeg, input: name)
        default: return .undecodable(.jpeg, input: name)
        }
    }
}
#endif
