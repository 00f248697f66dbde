import Foundation
import Testing
import VitrineCore
import VitrineImaging

/// The worker built beside the tests, and requests for pictures whose headers no parser has to read.
enum WorkerFixture {
    /// Where it and its like stand: in the folder of `$VITRINE_WORKER`, which names workers without instrumentation when
    /// the tests have some, else beside the tests.
    private static let directory =
        ProcessInfo.processInfo.environment["VITRINE_WORKER"].map { URL(filePath: $0).deletingLastPathComponent() }
        ?? Bundle.module.bundleURL.deletingLastPathComponent()

    static let executable = directory.appending(path: "vitrine-worker").path
    /// A program that is its own worker; see its main.
    static let host = directory.appending(path: "WorkerTestHost").path

    static func pool(_ maximumWorkers: Int? = nil) -> WorkerPool {
        WorkerPool(
            program: "vitrine-worker", location: .executable(executable), maximumWorkers: maximumWorkers,
            // Its own: pools of other tests would end its idle workers where the shared budget is spent.
            memory: HelperMemory(total: 64 << 30))
    }

    static func source(_ name: String) throws -> ByteSource {
        try ByteSource(.file(Fixture.path("worker/\(name)")))
    }

    static func request(
        _ format: ImageFormat, _ width: Int, _ height: Int, target: PixelSize? = nil, orientation: Orientation = .up,
        page: Int = 0, allowsPartial: Bool = false, allowsEmbeddedPreview: Bool = false,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) -> DecodeRequest {
        var info = ImageInfo(format: format, storedSize: PixelSize(width: width, height: height))
        info.orientation = orientation
        return DecodeRequest(
            info: info, target: target,
            options: DecodeOptions(
                page: page, allowsEmbeddedPreview: allowsEmbeddedPreview, allowsPartial: allowsPartial), limits: limits,
            cancellation: cancellation)
    }

    /// A document that takes librsvg many seconds.
    static func slowRequest(
        deadline: Double = 60, cancellation: CancellationToken = CancellationToken()
    ) -> DecodeRequest {
        var limits = ImageLimits()
        limits.deadline = deadline
        return request(.svg, 1_600, 1_600, limits: limits, cancellation: cancellation)
    }
}

extension DecodedImage {
    /// The first three channels of the sample nearest to a point given in fractions of the picture.
    func sample(_ x: Double, _ y: Double) -> [Int] {
        let plane = planes[0]
        let offset =
            Int(y * plane.extentHeight) * plane.bytesPerRow + Int(x * plane.extentWidth) * plane.channels
        return plane.storage.withUnsafeBytes { bytes in
            (0..<min(3, plane.channels)).map { Int(bytes[offset + $0]) }
        }
    }

    /// All samples of the first plane.
    var firstPlane: [UInt8] { planes[0].storage.withUnsafeBytes { [UInt8]($0) } }

    /// Whether the four quadrants have the given colours (left to right, top to bottom), within `tolerance`.
    func shows(_ colors: [[Int]], tolerance: Int) -> Bool {
        let points = [(0.2, 0.2), (0.8, 0.2), (0.2, 0.8), (0.8, 0.8)]
        return zip(points, colors).allSatisfy { point, color in
            zip(sample(point.0, point.1), color).allSatisfy { abs($0 - $1) <= tolerance }
        }
    }

    /// Red, green, blue, white: the quadrants of every fixture.
    static let quadrants = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]
}

/// The name of an error's case.
func caseName(_ error: ImageError) -> String {
    Mirror(reflecting: error).children.first?.label ?? "unknown"
}

/// Whether two errors are the same case.
func isSameCase(_ error: ImageError, _ other: ImageError) -> Bool {
    caseName(error) == caseName(other)
}

extension Codecs {
    /// All codecs, with other decoders.
    static func standard(decoding decoders: [any ImageDecoding]) -> Codecs {
        Codecs(
            standard.all.map { codec in
                var codec = codec
                codec.decoders = []
                return codec
            }
        ).adding(decoders)
    }
}
