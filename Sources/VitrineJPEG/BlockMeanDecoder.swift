import VitrineCore
@_spi(JPEGRows) import VitrineImageCore

/// Decodes JPEG at 1/8, 1/4 or, in 4:2:2, 1/2 of its size without a library and without most of the work.
///
/// A thumbnail needs little more than the mean of each 8×8 block, which is the block's DC coefficient. This decoder
/// passes over the AC coefficients several codes a look-up and transforms nothing, which takes about a third of the
/// time of a library that decodes at 1/8. Of a progressive file it reads only the first scans: for 1/8 about a
/// twentieth of the bytes.
///
/// Memory is the planes of the result and 250 KiB, for any size of the file. A large file of the baseline process is
/// decoded on several threads if nothing else uses the processors; the planes are the same, and memory is at most
/// twice as large.
///
/// At 1/2, rows are scaled as soon as they are decoded, and the planes are never in memory.
///
/// It refuses with ``ImageError/unsupported(input:reason:)``, so that the next decoder is asked: reductions below 6,
/// except of 4:2:2, reductions below 8 of progressive files with reduced colour, CMYK, arithmetic coding, lossless and
/// hierarchical processes, and samples of more than 8 bits.
package struct BlockMeanDecoder: ImageDecoding {
    /// From this reduction on the 1/8 image is at least 1.5 times the size asked for, and equal in quality to better
    /// paths (study: PSNR 50 dB at 200 px against a Lanczos3 reduction of every pixel).
    package static let minimumEighthReduction = 12.0
    /// The same for the 1/4 image.
    package static let minimumQuarterReduction = 6.0
    /// The same for the 1/2 image of 4:2:2, which the library makes from this reduction on as well.
    package static let minimumHalfReduction = 3.2

    private let cores: IdleCores
    private let minimumPieceBytes: Int
    private let minimumBlockBytes: Int

    /// - Parameters:
    ///   - cores: The processors that a decode may use beside the calling thread. Files with more than
    ///     `minimumPieceBytes` for each are decoded on several threads while processors are idle.
    ///   - minimumPieceBytes: The fewest bytes that are worth a thread.
    ///   - minimumBlockBytes: The fewest bytes of a block, on average, that are worth threads.
    package init(
        cores: IdleCores = .shared, minimumPieceBytes: Int = BlockMeanDecoder.minimumPieceBytes,
        minimumBlockBytes: Int = BlockMeanDecoder.minimumBlockBytes
    ) {
        self.cores = cores
        self.minimumPieceBytes = minimumPieceBytes
        self.minimumBlockBytes = minimumBlockBytes
    }

    /// The fewest bytes that are worth a thread, by default: about two milliseconds of work.
    package static let minimumPieceBytes = 512 << 10
    /// The fewest bytes of a block that are worth threads, by default: photos have about ten.
    package static let minimumBlockBytes = 1

    package var formats: Set<ImageFormat> { [.jpeg] }

    /// Decodes at the coarsest scale that is good enough for the request.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` for varieties that other decoders read.
    ///   ``ImageError/truncated(input:)`` and ``ImageError/corrupt(input:reason:)`` unless the request allows a partial
    ///   image and a row of blocks is there. ``ImageError/limitExceeded(input:limit:actual:allowed:)`` and
    ///   ``ImageError/cancelled(input:)``.
    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard request.reduction >= BlockMeanDecoder.minimumQuarterReduction || request.acceptsMeans(of: 4) else {
            if let scaled = try decodeScaled(source, request) { return scaled }
            throw .unsupported(input: source.name, reason: "block means are too coarse for this size")
        }
        let isEighth = request.reduction >= BlockMeanDecoder.minimumEighthReduction || request.acceptsMeans(of: 8)
        let scale: BlockMeanScale = isEighth ? .eighth : .quarter
        var reader = BlockMeanReader(
            source, scale: scale, limits: request.limits, allowsPartial: request.options.allowsPartial,
            cancellation: request.cancellation)
        // Color at half the size would have fewer samples than the result.
        reader.refinesColor = !request.options.acceptsMeans && request.reduction < Double(2 * scale.rawValue)
        (reader.cores, reader.minimumPieceBytes) = (cores, minimumPieceBytes)
        reader.minimumBlockBytes = minimumBlockBytes
        if request.options.notesRows { reader.recorder = JPEGRowRecorder() }
        var image = try reader.decode().image
        image.colorProfile = request.info.colorProfile
        if request.options.notesRows { image.rowIndex = try JPEGRowIndex(reader, of: source)?.bytes }
        return image
    }

    /// Decodes 4:2:2 at one half and scales the rows.
    ///
    /// - Returns: nil for other requests, other varieties, and damage, which the library's decoder judges.
    private func decodeScaled(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage? {
        guard request.reduction >= Self.minimumHalfReduction, request.allowsScaling, !request.options.acceptsMeans,
            let target = request.target
        else { return nil }
        var reader = BlockMeanReader(
            source, scale: .half, limits: request.limits, allowsPartial: false, cancellation: request.cancellation)
        reader.target = target
        do {
            var image = try reader.decode().image
            image.colorProfile = request.info.colorProfile
            return image
        } catch {
            switch error {
            case .unsupported, .corrupt, .truncated: return nil
            default: throw error
            }
        }
    }

    /// Decodes at a given scale, for previews.
    package func decode(
        _ source: ByteSource, at scale: BlockMeanScale, limits: ImageLimits = .standard, allowsPartial: Bool = false,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> DecodedImage {
        var reader = BlockMeanReader(
            source, scale: scale, limits: limits, allowsPartial: allowsPartial, cancellation: cancellation)
        return try reader.decode().image
    }
}

/// How much a block-mean decode reduces.
package enum BlockMeanScale: Int, Sendable {
    /// One sample a block of 8×8: the DC coefficient.
    case eighth = 8
    /// Four samples a block: DC and the three lowest AC coefficients.
    case quarter = 4
    /// Sixteen samples a block: its 4 × 4 lowest coefficients.
    case half = 2

    /// Samples a block, along one side.
    var samplesPerBlock: Int { 8 / rawValue }
}

/// The samples of one component of a block-mean decode, as they come into being.
struct BlockMeanPlane {
    /// Samples a block, along one side.
    let perBlock: Int
    /// Whether one row of MCUs is in memory at a time, in 16 bits a sample.
    let isStrip: Bool
    /// Bytes from one row in memory to the next, whole MCUs.
    let bytesPerRow: Int
    /// Samples that belong to the image.
    let size: PixelSize
    let extentWidth: Double
    let extentHeight: Double
    let storage: PixelStorage

    /// Memory for a component, all of it mid-grey, which missing data of damaged files shows.
    ///
    /// - Parameters:
    ///   - perBlock: Samples a block, along one side: 1, 2 or 4.
    ///   - isStrip: Whether one row of MCUs is in memory at a time, in 16 bits a sample.
    init(_ frame: JPEGFrame, component: Int, perBlock: Int, isStrip: Bool) {
        let c = frame.components[component]
        let blocks = frame.blocks(of: component)
        self.perBlock = perBlock
        self.isStrip = isStrip
        extentWidth = Double(frame.width * c.horizontal * perBlock) / Double(frame.maximumHorizontal * 8)
        extentHeight = Double(frame.height * c.vertical * perBlock) / Double(frame.maximumVertical * 8)
        size = PixelSize(
            width: min(blocks.width * perBlock, Int(extentWidth.rounded(.up))),
            height: min(blocks.height * perBlock, Int(extentHeight.rounded(.up))))
        bytesPerRow = frame.mcuColumns * c.horizontal * perBlock * (isStrip ? 2 : 1)
        let count = bytesPerRow * (isStrip ? 1 : frame.mcuRows) * c.vertical * perBlock
        storage = PixelStorage(zeroedByteCount: count)
        storage.bytes.initializeMemory(as: UInt8.self, repeating: isStrip ? 0 : 128)
    }

    var bytesPerSample: Int { isStrip ? 2 : 1 }

    /// The first sample. Never nil: a component has at least one block.
    var base: UnsafeMutablePointer<UInt8> { storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self) }

    /// The samples as a plane of a ``DecodedImage``.
    var plane: PixelPlane {
        PixelPlane(
            width: size.width, height: size.height, channels: 1, bytesPerRow: bytesPerRow,
            extent: (extentWidth, extentHeight), storage: storage)
    }
}

/// One block of an MCU: which tables it uses and where its samples go.
struct BlockMeanSlot {
    let dc: JPEGHuffmanCode
    let ac: JPEGHuffmanCode
    /// ``JPEGHuffmanTable/skip(bits:)`` of the AC table; unused in DC scans.
    let skip: UnsafePointer<UInt16>
    /// Which predictor it shares with the other blocks of its component.
    let predictor: Int
    /// Samples a block, along one side: 1, 2 or 4.
    let side: Int
    /// Quantisation steps of coefficients (0,0), (0,1), (1,0) and (1,1).
    let steps: SIMD4<Int32>
    /// The first 32 quantisation steps by zigzag index; for ``BlockMeanLoop/halves(_:_:until:)`` 64 with their places.
    let allSteps: UnsafePointer<Int32>
    /// Where the next block's samples go.
    var output: UnsafeMutablePointer<UInt8>
    /// From one MCU to the next, from one row of MCUs to the next, and from one row of samples to the next, in bytes.
    let advance: Int
    let rowAdvance: Int
    let bytesPerRow: Int
}
