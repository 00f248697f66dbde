import Synchronization
import VitrineCore

/// The decoders of ``ImageDecoder/register(_:)``, the latest first.
package final class RegisteredDecoders: Sendable {
    package static let shared = RegisteredDecoders()

    /// Bytes that ``ImageFormatDecoder/recognizes(_:)`` is given.
    private static let prefixLength = 4_096

    private let decoders = Locked<[RegisteredDecoder]>([])
    /// Programs without registered decoders pay one load.
    private let isUsed = Atomic<Bool>(false)

    package var all: [RegisteredDecoder] {
        isUsed.load(ordering: .acquiring) ? decoders.withLock { $0 } : []
    }

    package func add(_ decoder: any ImageFormatDecoder) throws(ImageError) {
        let added = RegisteredDecoder(decoder)
        guard !added.format.rawValue.isEmpty else {
            throw .invalidRequest(reason: "the format of a registered decoder needs a name")
        }
        guard !added.format.isBuiltIn else {
            throw .invalidRequest(
                reason: "the format “\(added.format)” is built in: give the registered format another name")
        }
        replace { [added] + $0.filter { $0.format != added.format } }
        isUsed.store(true, ordering: .releasing)
    }

    package func remove(_ format: ImageFormat) -> Bool {
        replace { $0.filter { $0.format != format } }.contains { $0.format == format }
    }

    package func decoder(for name: String) -> RegisteredDecoder? {
        all.first { $0.format.rawValue == name }
    }

    /// The first decoder that recognizes the input.
    package func decoder(recognizing reader: ByteReader) throws(ImageError) -> RegisteredDecoder? {
        let decoders = all
        guard !decoders.isEmpty, reader.count > 0 else { return nil }
        let prefix = try reader.bytes(0..<min(reader.count, RegisteredDecoders.prefixLength))
        return decoders.first { $0.decoder.recognizes(prefix) }
    }

    /// - Returns: The decoders before the change. The caller releases them, so that no decoder is deinitialized under
    ///   the lock.
    @discardableResult
    private func replace(_ change: ([RegisteredDecoder]) -> [RegisteredDecoder]) -> [RegisteredDecoder] {
        decoders.withLock { decoders in
            let before = decoders
            decoders = change(before)
            return before
        }
    }
}

/// Adapts a decoder of a user to the decoders of the package, and checks its headers and images.
package struct RegisteredDecoder: ImageDecoding {
    /// No header of a built-in format holds larger numbers, so that no caller computes with them.
    private static let maximumNumber = Int(Int32.max)

    package let format: ImageFormat
    package let decoder: any ImageFormatDecoder
    /// Whether the decoder may run; false with ``Isolation/always``.
    package var isAllowed = true

    package var formats: Set<ImageFormat> { [format] }

    package init(_ decoder: any ImageFormatDecoder) {
        format = decoder.format
        self.decoder = decoder
    }

    // MARK: Header

    package func header(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let info = try calling(reader.name) { try decoder.info(of: reader.source) }
        guard !info.storedSize.isEmpty, info.storedSize.longestSide <= RegisteredDecoder.maximumNumber else {
            throw failure(reader.name, "it announces a size of \(info.storedSize)")
        }
        var header = ImageHeader(info: info)
        header.info.format = format
        header.info.colorProfile = nil
        header.info.colorProfileName = nil
        header.setProfile(info.colorProfile, limits)
        header.info.frameCount = max(1, min(info.frameCount, RegisteredDecoder.maximumNumber))
        header.info.bitDepth = max(1, min(info.bitDepth, 64))
        header.info.duration = info.duration.flatMap { $0.isFinite && $0 >= 0 ? $0 : nil }
        header.info.loopCount = info.loopCount.flatMap { $0 >= 0 ? $0 : nil }
        header.info.embeddedPreviews = info.embeddedPreviews.filter {
            $0.count > 0 && (try? reader.range(at: $0.offset, count: $0.count)) != nil
        }
        return header
    }

    // MARK: Pixels

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard isAllowed else {
            throw .unsupported(
                input: source.name,
                reason: "Isolation.always decodes in workers; the decoder of \(format) is registered in this process")
        }
        let image = try calling(source.name) { try decoder.decode(source, request) }
        if request.cancellation.isCancelled { throw .cancelled(input: source.name) }
        let announced = request.info.storedSize
        guard RegisteredDecoder.isReduction(image.size, of: announced, atLeast: request.target ?? announced) else {
            throw failure(source.name, "it announces \(announced) and delivers \(image.size)")
        }
        let plane = PixelPlane(
            width: image.width, height: image.height, channels: 4, bytesPerRow: image.bytesPerRow,
            storage: image.storage)
        // The fourth channel of an opaque image is 255, which reads the same either way.
        return DecodedImage(planes: [plane], model: .rgb, alpha: image.alpha == .straight ? .straight : .premultiplied)
    }

    /// Whether `size` has the shape of `whole`, is not larger, and has at least the pixels of `target` or of `whole`.
    private static func isReduction(_ size: PixelSize, of whole: PixelSize, atLeast target: PixelSize) -> Bool {
        if size == whole { return true }
        guard size.width <= whole.width, size.height <= whole.height, size.width >= min(target.width, whole.width),
            size.height >= min(target.height, whole.height)
        else { return false }
        // One scale must explain both sides, each rounded up or down.
        func scales(_ side: Int, _ whole: Int) -> ClosedRange<Double> {
            (Double(side) - 1) / Double(whole)...(Double(side) + 1) / Double(whole)
        }
        return scales(size.width, whole.width).overlaps(scales(size.height, whole.height))
    }

    // MARK: Errors

    /// Calls the user's decoder, whose errors of other types become ``ImageError/decoderFailed(input:format:reason:)``.
    private func calling<R>(_ input: String, _ body: () throws -> R) throws(ImageError) -> R {
        do {
            return try body()
        } catch let error as ImageError {
            throw error
        } catch is CancellationError {
            throw .cancelled(input: input)
        } catch {
            throw failure(input, String(describing: error))
        }
    }

    private func failure(_ input: String, _ reason: String) -> ImageError {
        .decoderFailed(input: input, format: format, reason: reason)
    }
}
