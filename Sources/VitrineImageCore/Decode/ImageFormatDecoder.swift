/// A decoder for a file format that the package does not read.
///
/// ``ImageInfo``, ``ImageDecoder``, image pipelines, stores and views all use registered decoders.
///
/// ```swift
/// /// Sun raster files of the kind that stores 32 bits a pixel as unused, red, green, blue.
/// struct SunRasterDecoder: ImageFormatDecoder {
///     let format = ImageFormat("sun-raster", mediaTypes: ["image/x-sun-raster"], fileExtensions: ["ras", "sun"])
///
///     func recognizes(_ prefix: [UInt8]) -> Bool { prefix.starts(with: [0x59, 0xA6, 0x6A, 0x95]) }
///
///     func info(of source: ByteSource) throws -> ImageInfo {
///         let header = try source.bytes(at: 0, count: 32)
///         guard header.count == 32 else { throw ImageError.truncated(input: source.name) }
///         func number(_ at: Int) -> Int { header[at..<at + 4].reduce(0) { $0 << 8 | Int($1) } }
///         guard number(12) == 32, number(20) == 3, number(28) == 0 else {
///             throw ImageError.unsupported(input: source.name, reason: "a Sun raster of another kind")
///         }
///         return ImageInfo(format: format, storedSize: PixelSize(width: number(4), height: number(8)))
///     }
///
///     func decode(_ source: ByteSource, _ request: DecodeRequest) throws -> Image {
///         let size = request.info.storedSize
///         let pixels = try source.bytes(at: 32, count: 4 * size.pixelCount)
///         guard pixels.count == 4 * size.pixelCount else { throw ImageError.truncated(input: source.name) }
///         return try Image(width: size.width, height: size.height, layout: .xrgb8, alpha: .opaque, bytes: pixels)
///     }
/// }
///
/// try ImageDecoder.register(SunRasterDecoder())
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
    /// - Throws: ``ImageError/truncated(input:)`` for missing bytes, unless ``DecodeOptions/allowsPartial`` is set.
    func decode(_ source: ByteSource, _ request: DecodeRequest) throws -> Image
}
