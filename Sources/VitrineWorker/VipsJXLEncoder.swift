import CVips
import VitrineImaging

/// Writes JPEG XL by libvips.
struct VipsJXLEncoder: ImageEncoding {
    let format = ImageFormat.jxl

    func encode(_ image: Image, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        let rowBytes = image.width * Image.bytesPerPixel
        guard image.bytesPerRow == rowBytes, image.alpha != .premultiplied else {
            throw .encodingFailed(format: .jxl, reason: "needs straight alpha and rows without gaps")
        }
        guard let width = Int32(exactly: image.width), let height = Int32(exactly: image.height) else {
            throw .encodingFailed(format: .jxl, reason: "\(image.size) is too large")
        }
        var file: UnsafeMutableRawPointer?
        var count = 0
        var text = [CChar](repeating: 0, count: 400)
        let percent = quality.isFinite ? Int32(max(0, min(100, (quality * 100).rounded()))) : 75
        let status = image.withUnsafeBytes { pixels in
            cvips_encode_jxl(
                pixels.baseAddress, width, height, image.hasAlpha, percent, &file, &count, &text, text.count)
        }
        guard status == CVIPS_OK, let file else {
            let reason = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw .encodingFailed(format: .jxl, reason: reason)
        }
        defer { cvips_free(file) }
        return [UInt8](UnsafeRawBufferPointer(start: file, count: count))
    }
}
