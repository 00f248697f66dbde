/// What the application segments of a JPEG file say about its colour model.
struct JPEGColorHints {
    var hasJFIF = false
    /// The transform flag of an Adobe segment: 0 none, 1 Y′CbCr, 2 YCCK.
    var adobeTransform: UInt8?

    /// Reads APP0 or APP14; other segments and other owners of these are passed over.
    mutating func read(marker: UInt8, _ body: UnsafeBufferPointer<UInt8>) {
        if marker == JPEGMarker.application0, body.count >= 5, body.prefix(5).elementsEqual("JFIF\0".utf8) {
            hasJFIF = true
        } else if marker == JPEGMarker.application14, body.count >= 12, body.prefix(5).elementsEqual("Adobe".utf8) {
            adobeTransform = body[11]
        }
    }

    /// Whether three components are red, green and blue rather than Y′CbCr.
    ///
    /// The order of precedence is that of libjpeg (`jdapimin.c`, `default_decompress_parms`), which every viewer
    /// follows: JFIF means Y′CbCr, then Adobe's flag counts, then the components' names.
    func isRGB(_ components: [JPEGFrame.Component]) -> Bool {
        guard components.count == 3, !hasJFIF else { return false }
        if let adobeTransform { return adobeTransform == 0 }
        return components.map(\.id).elementsEqual("RGB".utf8)
    }
}
