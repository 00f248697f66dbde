/// Decodes Windows and OS/2 bitmaps, in Swift alone.
///
/// All header versions, 1 to 32 bits a pixel, RLE4, RLE8 and colour masks with alpha. Rows are averaged while they are
/// read, so memory does not grow with the picture. Huffman, RLE24 and embedded JPEG or PNG are refused.
package struct BMPDecoder: ImageDecoding {
    package let formats: Set<ImageFormat> = [.bmp]
    package let needsIsolation = false

    package init() {}

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        guard request.page == 0 else { throw .invalidRequest(reason: "page \(request.page) of a still picture") }
        let head = BMPReader(bytes: try source.bytes(at: 0, count: 14))
        guard head.count > 0 else { throw .empty(input: source.name) }
        guard head[0] == 0x42, head[1] == 0x4D else { throw .notAnImage(input: source.name) }
        guard head.count == 14 else { throw .truncated(input: source.name) }
        let stated = Int(head.u32(10))
        let header = try BMPHeader(source, at: 14, pixels: stated == 0 ? nil : stated, isIcon: false)
        let bitmap = BMPBitmap(
            source: source, header: header, offset: stated == 0 ? header.end : stated, request: request)
        return try bitmap.decode()
    }
}
