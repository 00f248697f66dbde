import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePNG

/// Shorthands of the PNG tests.
enum PNGSupport {
    /// Decodes without knowing the header: every pixel, or towards a target.
    static func decode(
        _ bytes: [UInt8], size: PixelSize = PixelSize(1), target: PixelSize? = nil, page: Int = 0,
        allowsPartial: Bool = false, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> DecodedImage {
        let request = DecodeRequest(
            info: ImageInfo(format: .png, storedSize: size), target: target,
            options: DecodeOptions(page: page, allowsPartial: allowsPartial),
            limits: limits, cancellation: cancellation)
        return try PNGDecoder().decode(ByteSource(bytes: bytes, name: "test"), request)
    }

    /// The samples of a plane without padding.
    static func samples(_ image: DecodedImage) -> [UInt8] {
        let plane = image.planes[0]
        return plane.storage.withUnsafeBytes { bytes in
            (0..<plane.height).flatMap { y in
                bytes[(y * plane.bytesPerRow)..<(y * plane.bytesPerRow + plane.width * plane.channels)]
            }
        }
    }

    /// `width height channels crc`, as the digest files have it.
    static func digest(_ image: DecodedImage) -> String {
        let plane = image.planes[0]
        let crc = String(CRC32.checksum(samples(image)), radix: 16)
        return "\(plane.width) \(plane.height) \(plane.channels) "
            + String(repeating: "0", count: 8 - crc.count) + crc
    }

    /// Names and digests of a digest file among the fixtures.
    static func digests(_ file: String) throws -> [(name: String, digest: String)] {
        String(decoding: try Fixture.bytes(file), as: UTF8.self).split(separator: "\n").map { line in
            let parts = line.split(separator: " ", maxSplits: 1)
            return (String(parts[0]), String(parts[1]))
        }
    }

    /// A chunk with its checksum.
    static func chunk(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        let body = Array(type.utf8) + payload
        return big(payload.count) + body + big(Int(CRC32.checksum(body)))
    }

    static func big(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - $0 * 8)) } }

    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    static func header(
        _ width: Int, _ height: Int, type: UInt8, depth: UInt8 = 8, interlaced: Bool = false
    ) -> [UInt8] {
        chunk("IHDR", big(width) + big(height) + [depth, type, 0, 0, interlaced ? 1 : 0])
    }

    /// A zlib stream of stored blocks.
    static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = [0x78, 0x01]
        var at = 0
        repeat {
            let n = min(65_535, bytes.count - at)
            let last: UInt8 = at + n == bytes.count ? 1 : 0
            out += [last, UInt8(n & 255), UInt8(n >> 8), UInt8(~n & 255), UInt8(~n >> 8 & 255)] + bytes[at..<(at + n)]
            at += n
        } while at < bytes.count
        return out + big(Int(Adler32.checksum(bytes)))
    }

    /// A file of unfiltered 8-bit rows.
    static func file(_ width: Int, _ height: Int, type: UInt8, _ pixels: [UInt8], extra: [UInt8] = []) -> [UInt8] {
        let row = pixels.count / height
        let data = (0..<height).flatMap { [0] + pixels[($0 * row)...].prefix(row) }
        return signature + header(width, height, type: type) + extra + chunk("IDAT", stored(data)) + chunk("IEND", [])
    }
}
