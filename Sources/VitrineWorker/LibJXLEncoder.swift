import CVitrineJXL
import VitrineImaging

/// Writes JPEG XL by libjxl.
struct LibJXLEncoder: ImageEncoding {
    let format = ImageFormat.jxl

    func encode(_ image: Image, quality: Double, options: EncodeOptions) throws(ImageError) -> [UInt8] {
        let rowBytes = image.width * Image.bytesPerPixel
        guard image.bytesPerRow == rowBytes, image.alpha != .premultiplied else {
            throw .encodingFailed(format: .jxl, reason: "needs straight alpha and rows without gaps")
        }
        guard let width = UInt32(exactly: image.width), let height = UInt32(exactly: image.height) else {
            throw .encodingFailed(format: .jxl, reason: "\(image.size) is too large")
        }
        var file: UnsafeMutablePointer<UInt8>?
        var count = 0
        let percent = quality.isFinite ? Int32(max(0, min(100, (quality * 100).rounded()))) : 75
        let status = image.withUnsafeBytes { pixels in
            cjxl_encode(
                pixels.bindMemory(to: UInt8.self).baseAddress, width, height, image.hasAlpha, percent, &file, &count)
        }
        guard status == CJXL_OK, let file else {
            throw .encodingFailed(format: .jxl, reason: "libjxl gave status \(status.rawValue)")
        }
        defer { cjxl_free(file) }
        return [UInt8](UnsafeBufferPointer(start: file, count: count))
    }
}
