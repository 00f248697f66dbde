import VitrineCore

/// Makes the finished picture out of a decoder's samples: scaled, in sRGB, upright.
package enum DecodedImageRenderer {
    /// Scales `decoded` (or a region of it) to `size`, converts it to sRGB and turns it upright.
    ///
    /// Samples are scaled in their own colour model, so that conversion and profile work on the small picture. The
    /// result is premultiplied if any pixel is not opaque. A profile that is malformed, or for another colour model
    /// than the samples, is not applied.
    ///
    /// - Parameters:
    ///   - size: Width and height in the orientation the file stores; the result has ``Orientation/upright(_:)`` of it.
    ///   - region: The part to show, in the stored orientation as well. nil for everything.
    ///   - orientation: How stored pixels must be turned; applied here and nowhere else.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for an empty size or region,
    ///   ``ImageError/corrupt(input:reason:)`` if the planes do not fit the model, ``ImageError/cancelled(input:)``.
    package static func image(
        from decoded: DecodedImage, size: PixelSize, region: UnitRect? = nil, orientation: Orientation,
        cancellation: CancellationToken, inputName: String
    ) throws(ImageError) -> Image {
        guard !size.isEmpty, size.pixelCount <= Int.max / 64 else {
            throw .invalidRequest(reason: "a picture cannot be \(size)")
        }
        var area: UnitRect?
        if let region {
            guard let clipped = region.clipped else {
                throw .invalidRequest(reason: "the region lies outside the picture")
            }
            area = clipped == .full ? nil : clipped
        }
        let job = RenderJob(
            decoded: decoded, size: size, region: area, cancellation: cancellation, inputName: inputName)
        return try job.run().oriented(orientation)
    }
}
