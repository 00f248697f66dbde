import Foundation
import TestSupport
import VitrineImaging
import VitrinePipeline

extension FuzzTargets {
    /// Whole files of every kind, on the way that a program takes: the kind, the header, and a small picture of each.
    static var corpus: [FuzzTarget] {
        [
            corpus("raw", ["corpus/raw"]), corpus("recordings", ["corpus/audio"]),
            corpus("books", ["corpus/ebook", "corpus/comic", "corpus/archive"]),
            corpus("documents", ["corpus/odf", "corpus/ooxml", "corpus/iwork", "corpus/ole"]),
            corpus("drawings", ["corpus/layered", "corpus/model", "corpus/vector", "corpus/cad"]),
            corpus("images", ["corpus/img", "corpus/hdrimg"]),
            corpus("others", ["corpus/font", "corpus/text", "corpus/desktop", "corpus/other"]),
            corpus("hostile", ["hostile"]),
        ]
    }

    /// More pixels than elsewhere, as real files have previews of a camera's size.
    private static let limits: ImageLimits = {
        var limits = ImageLimits()
        limits.maximumPixels = 1 << 18
        limits.maximumInterlacedPixels = 1 << 16
        limits.maximumWholeImagePixels = 1 << 16
        limits.maximumCoefficientBytes = 1 << 20
        limits.maximumFrames = 16
        limits.deadline = 5
        return limits
    }()

    private static func corpus(_ name: String, _ folders: [String]) -> FuzzTarget {
        FuzzTarget("corpus-\(name)", seeds: { Seeds.whole(in: folders.map { "anything/\($0)" }) }) { bytes in
            let input = ImageInput.bytes(bytes, name: "corpus")
            switch try FileKind(of: input) {
            case .image?:
                _ = try ImageMetadata(reading: ByteSource(bytes: bytes, name: "corpus"))
                _ = try ImageDecoder(limits: limits, isolation: .inProcess)
                    .decode(input, at: .limit(width: 32, height: 32))
            case .media?:
                let source = ByteSource(bytes: bytes, name: "corpus")
                if try RecordingCover(of: source, limits: limits) == nil { throw FuzzRefusal() }
            case .pdf?, .font?, .text?: break
            case nil: throw FuzzRefusal()
            }
        }
    }

    /// Formats that workers read, in a worker of this program and in this process, which must answer alike.
    static let isolated: FuzzTarget = {
        let here = ImageDecoder(limits: limits, isolation: .inProcess)
        let none = WorkerPool(program: "none", location: .executable("/nonexistent"))
        var there = ImageDecoder(limits: limits, isolation: .always, codecs: .standard, pool: none)
        there.ownPool = .own
        // Those that only vitrine-worker decodes are left out.
        let formats = Codecs.standard.formats.filter { here.canDecode($0) && there.isIsolated($0) }
        return FuzzTarget(
            "isolated", seeds: { formats.flatMap { Seeds.pictures($0, 12, upTo: 9 << 10) + Seeds.made($0) } },
            pixels: limits.maximumPixels
        ) { [there] bytes -> [[UInt8]] in
            let input = ImageInput.bytes(bytes, name: "isolated")
            let format = try ImageFormat.detect(ByteReader(ByteSource(bytes: bytes, name: "isolated")))
            guard let format, formats.contains(format) else { throw FuzzRefusal() }
            let resizer = bytes.count & 1 == 0 ? ImageResizer.none : .limit(width: 32, height: 32)
            let options = DecodeOptions(allowsPartial: bytes.count & 2 != 0)
            let expected = Result { try here.decode(input, at: resizer, options: options) }
            let found = Result { try there.decode(input, at: resizer, options: options) }
            switch (expected, found) {
            case (.success(let expected), .success(let found)):
                let rows = FuzzDigests.rows(of: found)
                guard rows == FuzzDigests.rows(of: expected) else { fatalError("a worker gives another picture") }
                return rows
            case (.failure(let expected), .failure(let found)):
                let (expected, found) = ("\(expected)", "\(found)")
                guard expected == found else { fatalError("in this process: \(expected); in a worker: \(found)") }
                throw FuzzRefusal()
            default: fatalError("in this process: \(expected); in a worker: \(found)")
            }
        }
    }()
}
