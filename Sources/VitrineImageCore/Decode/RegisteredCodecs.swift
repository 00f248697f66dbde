import Synchronization
import VitrineCore

extension Codec {
    /// Creates a codec for a file format that the package does not read.
    ///
    /// The closures may block. They are called concurrently, and the library holds no lock during a call. The input is
    /// foreign: check every number, and throw an ``ImageError`` for damaged bytes. Any other error becomes
    /// ``ImageError/decoderFailed(input:format:reason:)``.
    ///
    /// - Parameters:
    ///   - format: Has a name that no built-in format has.
    ///   - recognizes: Returns whether a file that begins with the given bytes has the format. They are its first 4,096
    ///     bytes, or all bytes of a shorter file.
    ///   - info: Reads the header: at least the size, without decoding pixels. The library sets ``ImageInfo/format``
    ///     and drops values that cannot be right. It checks the size against ``ImageLimits/maximumSide`` and
    ///     ``ImageLimits/maximumWholeImagePixels`` before it calls `decode`. Throw ``ImageError/truncated(input:)`` or
    ///     ``ImageError/corrupt(input:reason:)`` for a header that cannot be read. The header of a file that is still
    ///     arriving is read again when more bytes are there.
    ///   - decode: Decodes one frame to sRGB pixels, as stored: the library applies ``ImageInfo/orientation``. The
    ///     image has the announced size, or a smaller one of the same shape that is at least ``DecodeRequest/target``; the
    ///     library scales it. An image of any other size is an error. Long work polls ``DecodeRequest/cancellation``.
    ///     Throw ``ImageError/truncated(input:)`` for missing bytes, unless ``DecodeOptions/allowsPartial`` is set.
    public init(
        _ format: ImageFormat, recognizes: @escaping @Sendable (_ prefix: [UInt8]) -> Bool,
        info: @escaping @Sendable (ByteSource) throws -> ImageInfo,
        decode: @escaping @Sendable (ByteSource, DecodeRequest) throws -> PixelImage
    ) {
        self.init(RegisteredDecoder(format: format, recognizes: recognizes, info: info, pixels: decode))
    }
}

/// The codecs of ``ImageDecoder/register(_:)``, the latest first.
package final class RegisteredCodecs: Sendable {
    package static let shared = RegisteredCodecs()

    private let codecs = Locked<[Codec]>([])
    /// Programs without registered codecs pay one load.
    private let isUsed = Atomic<Bool>(false)

    package var all: [Codec] {
        isUsed.load(ordering: .acquiring) ? codecs.withLock { $0 } : []
    }

    /// The formats, in the order in which they are recognized.
    package var formats: [ImageFormat] { all.flatMap(\.formats) }

    package func add(_ codec: Codec) throws(ImageError) {
        for format in codec.formats {
            guard !format.rawValue.isEmpty else {
                throw .invalidRequest(reason: "the format of a registered codec needs a name")
            }
            guard format.module == nil else {
                throw .invalidRequest(
                    reason: "the format “\(format)” is built in: give the registered format another name")
            }
        }
        replace { [codec] + $0.filter { $0.formats != codec.formats } }
        isUsed.store(true, ordering: .releasing)
    }

    package func remove(_ format: ImageFormat) -> Bool {
        replace { $0.filter { $0.formats != [format] } }.contains { $0.formats == [format] }
    }

    /// - Returns: The codecs before the change. The caller releases them, so that no closure of a user is deinitialized
    ///   under the lock.
    @discardableResult
    private func replace(_ change: ([Codec]) -> [Codec]) -> [Codec] {
        codecs.withLock { codecs in
            let before = codecs
            codecs = change(before)
            return before
        }
    }
}

/// Adapts the closures of a user to the decoders of the package, and checks their headers and images.
struct RegisteredDecoder: ImageDecoding {
    /// Bytes that ``recognizes`` is given.
    private static let prefixLength = 4_096
    /// No header of a built-in format holds larger numbers, so that no caller computes with them.
    private static let maximumNumber = Int(Int32.max)

    let format: ImageFormat
    let recognizes: @Sendable ([UInt8]) -> Bool
    let info: @Sendable (ByteSource) throws -> ImageInfo
    let pixels: @Sendable (ByteSource, DecodeRequest) throws -> PixelImage

    var formats: Set<ImageFormat> { [format] }

    func signature(_ reader: ByteReader) throws(ImageError) -> ImageFormat? {
        guard reader.count > 0 else { return nil }
        return recognizes(try reader.bytes(0..<min(reader.count, Self.prefixLength))) ? format : nil
    }

    // MARK: Header

    func header(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let info = try calling(reader.name) { try self.info(reader.source) }
        guard !info.storedSize.isEmpty, info.storedSize.longestSide <= RegisteredDecoder.maximumNumber else {
            throw failure(reader.name, "it announces a size of \(info.storedSize)")
        }
        var header = ImageHeader(info: info)
        header.info.format = format
        header.info.colorProfile = nil
        header.info.colorProfileName = nil
        header.setProfile(info.colorProfile, limits)
        header.info.frameCount = max(1, min(info.frameCount, RegisteredDecoder.maximumNumber))
        header.info.duration = info.duration.flatMap { $0.isFinite && $0 >= 0 ? $0 : nil }
        header.info.loopCount = info.loopCount.flatMap { $0 >= 0 ? $0 : nil }
        header.info.embeddedPreviews = info.embeddedPreviews.filter {
            $0.count > 0 && (try? reader.range(at: $0.offset, count: $0.count)) != nil
        }
        return header
    }

    // MARK: Pixels

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        let image = try calling(source.name) { try pixels(source, request) }
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

    /// Calls a user's closure, whose errors of other types become ``ImageError/decoderFailed(input:format:reason:)``.
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
