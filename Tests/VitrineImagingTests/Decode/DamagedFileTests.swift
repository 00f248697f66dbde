import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Whatever the bytes are, the answer is a picture or a typed error.
@Suite struct DamagedFileTests {
    @Test(arguments: Samples.names)
    func aFileCutAtEveryKilobyteGivesATypedErrorOrThePartThatIsThere(_ name: String) throws {
        let bytes = try Samples.bytes(name)
        let decoder = ImageDecoder()
        for length in stride(from: 0, to: bytes.count, by: 1024) {
            let cut = ImageInput.bytes(Array(bytes[..<length]), name: name)
            do {
                // A picture that is whole although its file is not: everything needed for this size was there.
                let image = try decoder.decode(cut, at: .fit(64))
                #expect(image.size.longestSide == 64)
            } catch {
                #expect(error.input == name, "\(error)")
            }
            if let part = try? decoder.decode(cut, at: .fit(64), options: DecodeOptions(allowsPartial: true)) {
                #expect(part.size.longestSide == 64)
            }
        }
    }

    @Test func aTruncatedPictureIsATruncatedPicture() throws {
        for name in ["lake.jpg", "leaf.png", "lake.webp", "lake.bmp"] {
            let bytes = try Samples.bytes(name)
            let half = ImageInput.bytes(Array(bytes[..<(bytes.count / 2)]), name: name)
            #expect(throws: ImageError.truncated(input: name)) { try ImageDecoder().decode(half) }
            let part = try ImageDecoder().decode(half, options: DecodeOptions(allowsPartial: true))
            let whole = try ImageDecoder().decode(.bytes(bytes))
            #expect(part.size == whole.size)
            let row = name == "lake.bmp" ? whole.height - 8 : 8  // BMP stores its last row first
            #expect((0..<whole.width).allSatisfy { part[$0, row] == whole[$0, row] }, "\(name)")
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func everyFileOfTheCorpusIsAPictureOrATypedError() async throws {
        var failures: [String] = []
        for path in Corpus.files(in: "corpus") where !path.contains("/pdf/") && !path.contains("/video/") {
            do {
                let image = try await ImageDecoder().image(from: .file(path), at: .fit(100))
                #expect(image.size.longestSide == 100, "\(path)")
            } catch {
                failures.append("\(URL(filePath: path).lastPathComponent): \(error)")
            }
        }
        // What remains is no picture, 280 million pixels large, or a variety nobody here reads (CMYK in JPEG XL).
        let expected = ["README", "LICENSE", ".pgm", "sharp-giant-image.jpg", "cmyk_layers.jxl"]
        let unexplained = failures.filter { line in !expected.contains { line.prefix(40).contains($0) } }
        #expect(unexplained.isEmpty, "\(unexplained.joined(separator: "\n"))")
    }

    static let hostileFolders = [
        "afl-gif", "bombs", "drewnoakes-fuzzing", "gofuzz-png", "gofuzz-tiff", "gofuzz-webp", "imagetestsuite-gif",
        "imagetestsuite-jpg", "imagetestsuite-png", "imagetestsuite-tif", "libheif-fuzz", "libjpeg-turbo-afl",
        "libjpeg-turbo-bugs", "mp4", "pdf", "pillow", "svg", "tiff", "truncated",
    ]

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: hostileFolders)
    func hostileFilesNeverHarmTheProcess(_ folder: String) async throws {
        var limits = ImageLimits.standard
        limits.deadline = 5
        let decoder = ImageDecoder(limits: limits)
        let paths = Corpus.files(in: "hostile/\(folder)")
        #expect(!paths.isEmpty)
        for path in paths {
            for options in [DecodeOptions(), DecodeOptions(allowsPartial: true)] {
                do {
                    let image = try await decoder.image(from: .file(path), at: .fit(100), options: options)
                    #expect(!image.size.isEmpty && image.size.longestSide == 100)
                } catch let error as ImageError {
                    #expect(error.input == path, "\(error)")
                }
            }
        }
    }
}
