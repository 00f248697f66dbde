#if os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing
import VitrineImaging

/// Raw files without a preview: refused, or developed by LibRaw where that is chosen.
@Suite(.serialized) struct RawDevelopmentTests {
    private static let hasLibRaw = [20, 23].contains { version in
        guard let library = dlopen("libraw_r.so.\(version)", RTLD_NOW) else { return false }
        dlclose(library)
        return true
    }

    private static let size = PixelSize(width: 320, height: 240)

    /// A Digital Negative of sensor data alone: one orange colour behind red, green and blue filters.
    private static func negative(orientation: Int = 1) -> [UInt8] {
        func bytes(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        func longs(_ values: [Int]) -> [UInt8] { values.flatMap { bytes($0, 4) } }
        let matrix = [9_000, -2_000, -1_000, -4_000, 12_000, 2_000, -1_000, 2_000, 6_000]
        let place = 2_000
        let fields: [(tag: Int, type: Int, count: Int, value: [UInt8])] = [
            (0x00FE, 4, 1, bytes(0, 4)), (0x0100, 4, 1, bytes(size.width, 4)), (0x0101, 4, 1, bytes(size.height, 4)),
            (0x0102, 3, 1, bytes(16, 2)), (0x0103, 3, 1, bytes(1, 2)), (0x0106, 3, 1, bytes(32_803, 2)),
            (0x010F, 2, 6, Array("Maker\0".utf8)), (0x0110, 2, 6, Array("Model\0".utf8)),
            (0x0111, 4, 1, bytes(place, 4)), (0x0112, 3, 1, bytes(orientation, 2)), (0x0115, 3, 1, bytes(1, 2)),
            (0x0116, 4, 1, bytes(size.height, 4)), (0x0117, 4, 1, bytes(2 * size.pixelCount, 4)),
            (0x011C, 3, 1, bytes(1, 2)), (0x828D, 3, 2, bytes(2, 2) + bytes(2, 2)), (0x828E, 1, 4, [0, 1, 1, 2]),
            (0xC612, 1, 4, [1, 4, 0, 0]), (0xC613, 1, 4, [1, 1, 0, 0]), (0xC614, 2, 12, Array("Maker Model\0".utf8)),
            (0xC61D, 3, 1, bytes(16_383, 2)), (0xC621, 10, 9, longs(matrix.flatMap { [$0, 10_000] })),
            (0xC628, 5, 3, longs([1, 1, 1, 1, 1, 1])), (0xC65A, 3, 1, bytes(21, 2)),
        ]
        var file = Array("II*\0".utf8) + bytes(8, 4) + bytes(fields.count, 2)
        let end = file.count + 12 * fields.count + 4
        var tail: [UInt8] = []
        for field in fields {
            file += bytes(field.tag, 2) + bytes(field.type, 2) + bytes(field.count, 4)
            if field.value.count <= 4 {
                file += field.value + [UInt8](repeating: 0, count: 4 - field.value.count)
            } else {
                file += bytes(end + tail.count, 4)
                tail += field.value + (field.value.count % 2 == 1 ? [0] : [])
            }
        }
        file += bytes(0, 4) + tail
        file += [UInt8](repeating: 0, count: place - file.count)
        for y in 0..<size.height {
            for x in 0..<size.width { file += bytes([12_000, 6_000, 6_000, 3_000][y % 2 * 2 + x % 2], 2) }
        }
        return file
    }

    private func reason(_ file: [UInt8], _ decoder: ImageDecoder = ImageDecoder()) -> String? {
        do {
            _ = try decoder.decode(.bytes(file), at: .fit(40))
            return nil
        } catch {
            return error.caseName + ": " + error.reason
        }
    }

    @Test func fileWithoutAPreviewIsRefusedUnlessDevelopmentIsChosen() throws {
        #expect(!ImageDecoder.developsRawFiles)
        #expect(reason(Self.negative())?.hasPrefix("unsupported: no preview") == true)
        #expect(throws: ImageError.self) { try ImageInfo(of: .bytes(Self.negative())) }
        ImageDecoder.developsRawFiles = true
        defer { ImageDecoder.developsRawFiles = false }
        // A helper is needed.
        let local = reason(Self.negative(), ImageDecoder(isolation: .inProcess))
        #expect(local?.hasPrefix("unsupported: no preview") == true)
        // Nor are files with a preview, or of other kinds, its business.
        #expect(reason(Array("no picture at all".utf8))?.hasPrefix("notAnImage") == true)
    }

    @Test(.enabled(if: hasLibRaw, "needs LibRaw"))
    func sensorDataIsDevelopedUprightAtTheRequestedSize() throws {
        ImageDecoder.developsRawFiles = true
        defer { ImageDecoder.developsRawFiles = false }
        let decoder = ImageDecoder()
        for (resizer, size) in [
            (ImageResizer.fit(80), PixelSize(width: 80, height: 60)), (.none, Self.size),
            (.crop(width: 50, height: 50), PixelSize(width: 50, height: 50)),
        ] {
            let image = try decoder.decode(.bytes(Self.negative()), at: resizer)
            #expect(image.size == size)
            let color = image.withUnsafeBytes { bytes in
                let middle = image.height / 2 * image.bytesPerRow + image.width / 2 * 4
                return (0..<3).map { Int(bytes[middle + $0]) }
            }
            #expect(color[0] > color[1] + 50 && color[1] > color[2] + 30, "\(color)")
        }
        let turned = try decoder.decode(.bytes(Self.negative(orientation: 6)), at: .fit(80))
        #expect(turned.size == PixelSize(width: 60, height: 80))
    }

    @Test(.enabled(if: hasLibRaw, "needs LibRaw"))
    func damagedSensorDataIsATypedError() throws {
        ImageDecoder.developsRawFiles = true
        defer { ImageDecoder.developsRawFiles = false }
        let file = Self.negative()
        for count in [600, 1_990, 2_100, file.count / 2] {
            // LibRaw fills up what is missing of the rows, or refuses.
            _ = reason(Array(file.prefix(count)))
        }
        var limits = ImageLimits.standard
        limits.maximumPixels = 10_000
        #expect(reason(file, ImageDecoder(limits: limits))?.hasPrefix("limitExceeded") == true)
        #expect(reason(file) == nil)
    }
}
#endif
