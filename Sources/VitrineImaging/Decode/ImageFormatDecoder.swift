/// A decoder for a file format that the package does not read.
///
/// ``ImageInfo``, ``ImageDecoder``, image pipelines, stores and views all use registered decoders.
///
/// ```swift
/// struct FarbfeldDecoder: ImageFormatDecoder {
///     let format = ImageFormat("farbfeld", mediaTypes: ["image/x-farbfeld"], fileExtensions: ["ff"])
///
///     func recognizes(_ prefix: [UInt8]) -> Bool { prefix.starts(with: Array("farbfeld".utf8)) }
///
///     func info(of source: ByteSource) throws -> ImageInfo {
///         let sides = try source.bytes(at: 8, count: 8)
///         guard sides.count == 8 else { throw ImageError.truncated(input: source.name) }
///         let width = sides[..<4].reduce(0) { $0 << 8 | Int($1) }
///         let height = sides[4...].reduce(0) { $0 << 8 | Int($1) }
///         return ImageInfo(format: format, storedSize: PixelSize(width: width, height: height))
///     }
///
///     func decode(_ source: ByteSource, _ request: DecodeRequest) throws -> Image {
///         let size = request.info.storedSize
///         let samples = try source.bytes(at: 16, count: 8 * size.pixelCount)
///         return try Image(
///             width: size.width, height: size.height, layout: .rgba16BigEndian, alpha: .straight, bytes: samples)
///     }
/// }
///
/// try ImageDecoder.register(FarbfeldDecoder())
/// ```
///
/// The methods may block. They are called concurrently, and the library holds no lock during a call. The input is
/// foreign: check every number, and throw an ``ImageError`` for damaged bytes. Any other error becomes
/// ``ImageError/decoderFailed(input:format:reason:)``.
public protocol ImageFormatDecoder: Sendable {
    /// The format, with a name that no built-in format has. Read once, by ``ImageDecoder/register(_:)``.
    var format: ImageFormat { get }

    /// Returns whether a file that begins with these bytes has the format.
    ///
    /// - Parameter prefix: The first 4,096 bytes, or all bytes of a shorter file.
    func recognizes(_ prefix: [UInt8]) -> Bool

    /// Reads the header: at least the size, without decoding pixels.
    ///
    /// The library sets ``ImageInfo/format`` and drops values that cannot be right. It checks the size against
    /// ``ImageLimits/maximumSide`` and ``ImageLimits/maximumWholeImagePixels`` before it calls ``decode(_:_:)``.
    ///
    /// - Throws: ``ImageError/truncated(input:)`` or ``ImageError/corrupt(input:reason:)`` for a header that cannot be
    ///   read. The header of a file that is still arriving is read again when more bytes are there.
    func info(of source: ByteSource) throws -> ImageInfo

    /// Decodes one frame to sRGB pixels, as stored: the library applies ``ImageInfo/orientation``.
    ///
    /// The image has the announced size, or a smaller one of the same shape that is at least
    /// ``DecodeRequest/target``; the library scales it. An image of any other size is an error. Long work polls
    /// ``DecodeRequest/cancellation``.
    ///
    /// - Throws: ``ImageError/truncated(input:)`` for missing bytes, unless ``DecodeRequest/allowPartial`` is set.
    func decode(_ source: ByteSource, _ request: DecodeRequest) throws -> Image
}

extension ImageDecoder {
    /// Adds a decoder for a further file format, for the whole process and at once.
    ///
    /// Registered decoders are asked before the built-in formats, the latest first. A decoder can therefore claim a
    /// variety of a built-in container, such as camera files in TIFF. A decoder replaces an earlier one of the same
    /// format name. Running decodes finish with the decoder they began with, and cached results are kept.
    ///
    /// Registered decoders run in this process. With ``Isolation/always``, decoding their formats throws
    /// ``ImageError/unsupported(input:reason:)``. Can be called from any thread.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for a format without a name or with the name of a built-in one.
    public static func register(_ decoder: some ImageFormatDecoder) throws(ImageError) {
        try RegisteredDecoders.shared.add(decoder)
    }

    /// Removes the decoder of a format.
    ///
    /// - Returns: Whether a decoder was registered.
    @discardableResult
    public static func unregister(_ format: ImageFormat) -> Bool {
        RegisteredDecoders.shared.remove(format)
    }

    /// The formats of registered decoders, in the order in which the decoders are asked.
    package static var registeredFormats: [ImageFormat] { RegisteredDecoders.shared.all.map(\.format) }
}
