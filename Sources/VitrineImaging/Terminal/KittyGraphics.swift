/// Writes a picture in the kitty graphics protocol.
enum KittyGraphics {
    /// Characters of payload in one escape sequence, as the protocol bounds them.
    private static let chunk = 4_096

    /// - Parameter image: Opaque or with straight alpha.
    static func render(_ image: Image, registry: EncoderRegistry) -> [UInt8] {
        let payload: [UInt8], format: String
        if let png = try? image.encoded(as: .png, options: EncodeOptions(), registry: registry) {
            payload = Base64.encode(png)
            format = "f=100"
        } else {
            payload = Base64.encode(rgba(image))
            format = "f=32,s=\(image.width),v=\(image.height)"
        }
        var text: [UInt8] = []
        text.reserveCapacity(payload.count + payload.count / chunk * 16 + 64)
        for start in stride(from: 0, to: payload.count, by: chunk) {
            let end = min(payload.count, start + chunk)
            // a=T: transmit and display. q=2: no answers, which would appear as typed text.
            let control = start == 0 ? "a=T,q=2,\(format)," : ""
            text += Array("\u{1b}_G\(control)m=\(end < payload.count ? 1 : 0);".utf8)
            text += payload[start..<end]
            text += Array("\u{1b}\\".utf8)
        }
        text.append(UInt8(ascii: "\n"))
        return text
    }

    private static func rgba(_ image: Image) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(image.width * image.height * 4)
        image.withUnsafeBytes { source in
            for y in 0..<image.height {
                let start = y * image.bytesPerRow
                bytes.append(contentsOf: source[start..<(start + image.width * 4)])
            }
        }
        return bytes
    }
}
