import VitrineCore
@_spi(JPEGRows) import VitrineImageCore

/// Takes the index that a decode has made, as of ``DecodedImage/rowIndex``. For one thread.
final class RowNotes {
    var index: [UInt8]?
}

@_spi(JPEGRows)
extension ImageDecoder {
    /// Decodes a JPEG at a size, and notes in the same pass where its rows begin.
    ///
    /// - Parameters:
    ///   - input: The file.
    ///   - size: The size of the result. At a quarter or an eighth of the sides or less, its pixels are means of those
    ///     of the file, as in pyramids.
    /// - Returns: The image, and the bytes of a `JPEGRowIndex` of the file; nil if it has none or is decoded in
    ///   another way.
    /// - Throws: ``ImageError``, or `CancellationError` if the task is cancelled, as ``image(from:at:options:)``.
    public func survey(
        _ input: ImageInput, at size: PixelSize
    ) async throws -> (image: PixelImage, rowIndex: [UInt8]?) {
        var options = DecodeOptions()
        (options.acceptsMeans, options.notesRows) = (true, true)
        let (token, resizer) = (CancellationToken(), ImageResizer(size: size, mode: .stretch, allowsUpscaling: true))
        do {
            return try await withTaskCancellationHandler {
                try await BlockingExecutor.shared.run {
                    [options] () throws(ImageError) -> (image: PixelImage, rowIndex: [UInt8]?) in
                    let notes = RowNotes()
                    let images = try decode(input, at: [resizer], options: options, token, rows: notes)
                    return (images[0], notes.index)
                }
            } onCancel: {
                token.cancel()
            }
        } catch ImageError.cancelled {
            throw CancellationError()
        }
    }
}
