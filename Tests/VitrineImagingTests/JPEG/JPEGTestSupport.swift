import TestSupport
import Foundation
import VitrineCore
import VitrineImaging

/// What the tests of JPEG share.
enum JPEG {
    /// Every small file that block means must read, and whose DC is exact.
    static let baselineFixtures = [
        "sampling-1x1", "sampling-2x1", "sampling-1x2", "sampling-2x2", "sampling-4x1", "sampling-1x4", "sampling-4x2",
        "sampling-2x4", "sampling-4x2-2x1-1x2", "sampling-4x4",
        "sampling-2x2-1x2-2x1", "sampling-1x1-2x2-2x2", "restart-row",
        "restart-3-mcus", "restart-gray", "gray", "optimized", "coarse", "red-green-blue", "one-scan-a-component",
        "two-scans",
    ]
    static let progressiveFixtures = [
        "gray-progressive", "progressive", "progressive-restart", "progressive-separate-dc",
    ]

    static func fixture(_ name: String) throws -> ByteSource {
        ByteSource(bytes: try Fixture.bytes("JPEG/\(name).jpg"), name: name)
    }

    static func request(
        _ size: PixelSize, target: PixelSize?, allowsPartial: Bool = false, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) -> DecodeRequest {
        DecodeRequest(
            info: ImageInfo(format: .jpeg, storedSize: size), target: target,
            options: DecodeOptions(allowsPartial: allowsPartial),
            limits: limits, cancellation: cancellation)
    }

    /// The parts of a file: the start, each segment, and all from the first scan on.
    static func segments(_ file: [UInt8]) -> [[UInt8]] {
        var parts = [Array(file.prefix(2))]
        var at = 2
        while at + 4 <= file.count, file[at + 1] != 0xDA {
            let count = 2 + Int(file[at + 2]) << 8 + Int(file[at + 3])
            parts.append(Array(file[at..<(at + count)]))
            at += count
        }
        return parts + [Array(file[at...])]
    }

    /// A grey picture of many pixels and four bytes for each 256 of them.
    static func large(_ width: Int, _ height: Int) throws -> [UInt8] {
        var parts = segments(try Fixture.bytes("JPEG/sampling-2x2.jpg"))
        for index in parts.indices where parts[index][1] == 0xC0 {
            let size = [height >> 8, height & 255, width >> 8, width & 255].map { UInt8($0) }
            parts[index].replaceSubrange(5..<9, with: size)
        }
        let scan = parts.removeLast()
        var file = parts.flatMap { $0 } + scan.prefix(2 + Int(scan[3]))
        // In the tables of ITU-T T.81 annex K: no difference and no further coefficient, for four blocks of luma and
        // two of chroma.
        let unit: [UInt8] = [0b0010_1000, 0b1010_0010, 0b1000_1010, 0]
        let count = ((width + 15) / 16) * ((height + 15) / 16)
        file.reserveCapacity(file.count + 4 * count + 2)
        for _ in 0..<count { file.append(contentsOf: unit) }
        return file + [0xFF, 0xD9]
    }

    /// The samples of a plane row by row, without padding.
    static func samples(_ plane: PixelPlane) -> [UInt8] {
        plane.storage.withUnsafeBytes { bytes in
            (0..<plane.height).flatMap { y in
                bytes[(y * plane.bytesPerRow)..<(y * plane.bytesPerRow + plane.width * plane.channels)]
            }
        }
    }

    /// The largest difference between two planes; 256 when their sizes differ.
    static func difference(_ a: PixelPlane, _ b: PixelPlane) -> Int {
        guard a.width == b.width, a.height == b.height, a.channels == b.channels else { return 256 }
        return zip(samples(a), samples(b)).reduce(0) { max($0, abs(Int($1.0) - Int($1.1))) }
    }

    /// What `body` throws; nil when it does not.
    static func error(_ body: () throws -> Void) -> ImageError? {
        do {
            try body()
            return nil
        } catch {
            return error as? ImageError
        }
    }

    static func isUnsupported(_ error: ImageError?) -> Bool {
        if case .unsupported = error { true } else { false }
    }

    /// `bytes` with up to eight of them changed, and now and then cut short.
    static func mutate(_ bytes: [UInt8], with numbers: inout SeededGenerator) -> [UInt8] {
        var result = bytes
        for _ in 0..<Int.random(in: 1...8, using: &numbers) {
            let i = Int.random(in: 2..<result.count, using: &numbers)
            switch Int.random(in: 0..<4, using: &numbers) {
            case 0: result[i] = 0xFF
            case 1: result[i] ^= 1 << UInt8.random(in: 0...7, using: &numbers)
            default: result[i] = UInt8.random(in: 0...255, using: &numbers)
            }
        }
        if Int.random(in: 0..<6, using: &numbers) == 0 {
            result.removeLast(Int.random(in: 0..<(result.count - 2), using: &numbers))
        }
        return result
    }
}
