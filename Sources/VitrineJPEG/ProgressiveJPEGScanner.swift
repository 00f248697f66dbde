import VitrineCore
import VitrineImageCore

/// Images of a JPEG file that is still arriving.
///
/// Feed it the bytes as they come and ask for an image after each piece:
///
/// ```swift
/// var scanner = ProgressiveJPEGScanner(name: "photo.jpg", target: PixelSize(width: 400, height: 300))
/// for chunk in chunks {
///     try scanner.append(chunk)
///     if let image = try scanner.nextImage() { show(image) }
/// }
/// ```
///
/// A progressive file gives its image at an eighth as soon as the DC scans are whole (about a twentieth of the
/// bytes), then a finer one with every further scan, if libjpeg-turbo is linked. Any other file gives its upper part,
/// again whenever a tenth more of the height is there. All of them are marked partial. Once the end of the file has
/// arrived there are no more: the whole file is for the ordinary decoders.
///
/// Damage does not throw here. It ends the previews; the ordinary decoder throws the error.
package struct ProgressiveJPEGScanner: ArrivalDecoding {
    /// How much more of the height makes a new image of a file that is not progressive.
    package static let minimumGrowth = 0.1
    /// Finer images given of one progressive file. Each decodes all scans so far, so a file of hundreds would take
    /// hundreds of times as long as one decode; ordinary ones have about ten.
    package static let maximumFinerPictures = 12

    private let name: String
    private let target: PixelSize?
    private let limits: ImageLimits
    private var cancellation: CancellationToken
    private var bytes: [UInt8] = []
    private var index = JPEGScanIndex()
    /// Scans whose image has been given.
    private var givenScans = 0
    private var finerPictures = 0
    /// How much of the height has been given, from 0 to 1.
    private var givenHeight = 0.0
    /// Bytes at which the next try of a file that is not progressive is worth its time.
    private var nextTry = 0
    private var hasFailed = false

    /// - Parameters:
    ///   - name: The name of the input in errors.
    ///   - target: The size the images will be scaled to, in the orientation the file stores; nil when it is not
    ///     known, which gives an eighth first and every pixel later.
    package init(
        name: String, target: PixelSize? = nil, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) {
        self.name = name
        self.target = target
        self.limits = limits
        self.cancellation = cancellation
    }

    /// Whether ``nextImage()`` will never give another image.
    package var isFinished: Bool { hasFailed || index.isAtEnd || index.isHopeless }

    /// Takes the next bytes of the file.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` with ``ImageLimits/Kind/inputBytes``.
    package mutating func append(_ chunk: [UInt8]) throws(ImageError) {
        let (total, overflow) = bytes.count.addingReportingOverflow(chunk.count)
        guard !overflow, total <= limits.maximumInputBytes else {
            throw .limitExceeded(input: name, limit: .inputBytes, actual: total, allowed: limits.maximumInputBytes)
        }
        guard !isFinished else { return }
        bytes.append(contentsOf: chunk)
        bytes.withUnsafeBufferPointer { index.advance(over: $0) }
        // A finished scanner needs its bytes no more.
        if isFinished { bytes = [] }
    }

    /// The next better image that the bytes so far give, or nil.
    ///
    /// The first of a progressive file is always the one at an eighth, which is by far the fastest to be had; ask again
    /// for the best one if several scans have come at once.
    /// Takes as long as decoding does; call it where blocking is allowed.
    ///
    /// - Parameter token: Cancels this call; nil for the scanner's own token.
    /// - Throws: ``ImageError/cancelled(input:)`` and nothing else.
    package mutating func nextImage(until token: CancellationToken? = nil) throws(ImageError) -> DecodedImage? {
        let own = cancellation
        cancellation = token ?? own
        defer { cancellation = own }
        if cancellation.isCancelled { throw .cancelled(input: name) }
        guard !isFinished, let frame = index.frame else { return nil }
        do throws(ImageError) {
            return frame.isProgressive ? try nextScan(frame) : try nextPart(frame)
        } catch {
            if case .cancelled = error { throw error }
            hasFailed = true
            bytes = []
            return nil
        }
    }

    private func request(_ frame: JPEGFrame) -> DecodeRequest {
        let info = ImageInfo(format: .jpeg, storedSize: PixelSize(width: frame.width, height: frame.height))
        return DecodeRequest(
            info: info, target: target,
            options: DecodeOptions(allowsPartial: true), limits: limits, cancellation: cancellation)
    }

    // MARK: Progressive

    private mutating func nextScan(_ frame: JPEGFrame) throws(ImageError) -> DecodedImage? {
        guard let scansToMeans = index.scansToMeans, index.completeScans > givenScans else { return nil }
        var image: DecodedImage?
        if givenScans == 0 {
            givenScans = scansToMeans
            image = try BlockMeanDecoder().decode(
                ByteSource(bytes: bytes, name: name), at: .eighth, limits: limits, cancellation: cancellation)
        } else {
            givenScans = index.completeScans
            #if SystemCodecs
            guard finerPictures < ProgressiveJPEGScanner.maximumFinerPictures else { return nil }
            finerPictures += 1
            let prefix = ByteSource(bytes: Array(bytes[..<index.completeEnd]), name: name)
            image = try LibJPEGDecoder().decode(prefix, request(frame))
            #endif
        }
        image?.isPartial = true
        return image
    }

    // MARK: Baseline

    private mutating func nextPart(_ frame: JPEGFrame) throws(ImageError) -> DecodedImage? {
        guard let start = index.firstScanOffset, bytes.count >= max(nextTry, start + 1024) else { return nil }
        var reader = BlockMeanReader(
            ByteSource(bytes: bytes, name: name), scale: scale(frame), limits: limits, allowsPartial: true,
            cancellation: cancellation)
        reader.refinesColor = target != nil && request(frame).reduction < Double(2 * reader.scale.rawValue)
        let result: BlockMeanReader.Result
        do throws(ImageError) {
            result = try reader.decode()
        } catch {
            // Not a single row yet.
            guard case .truncated = error else { throw error }
            nextTry = bytes.count * 2
            return nil
        }
        let height = result.completeness
        let growth = (height + ProgressiveJPEGScanner.minimumGrowth) / max(height, 0.01)
        nextTry = start + Int(Double(bytes.count - start) * min(growth, 4))
        guard height >= givenHeight + ProgressiveJPEGScanner.minimumGrowth else { return nil }
        givenHeight = height
        var image = result.image
        image.isPartial = true
        return image
    }

    /// An eighth where that is fine enough, else the most that block means give.
    private func scale(_ frame: JPEGFrame) -> BlockMeanScale {
        let request = request(frame)
        if target == nil { return frame.width * frame.height >= 1_000_000 ? .eighth : .quarter }
        return request.reduction >= BlockMeanDecoder.minimumEighthReduction ? .eighth : .quarter
    }
}
