import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// Loudness in place of a missing cover.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: VideoFixture.executable), "needs vitrine-video"))
struct WaveformTests {
    private static let white: [UInt8] = [255, 255, 255]

    /// A WAV file of 16 bits and 8 kHz.
    private static func wave(
        channels: Int = 1, seconds: Double = 2, _ sample: (_ second: Double, _ channel: Int) -> Double
    ) -> [UInt8] {
        func little(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        var data: [UInt8] = []
        for index in 0..<Int(8_000 * seconds) {
            for channel in 0..<channels {
                data += little(Int((sample(Double(index) / 8_000, channel) * 32_767).rounded()), 2)
            }
        }
        var file = Array("RIFF".utf8) + little(36 + data.count, 4) + Array("WAVEfmt ".utf8) + little(16, 4)
        file += little(1, 2) + little(channels, 2) + little(8_000, 4) + little(16_000 * channels, 4)
        file += little(2 * channels, 2) + little(16, 2) + Array("data".utf8) + little(data.count, 4)
        return file + data
    }

    private func source(_ input: ImageInput) -> VideoFrameSource {
        var source = VideoFrameSource(input, at: .poster, workers: VideoFixture.workers())
        source.prefersCoverArt = true
        source.drawsWaveform = true
        return source
    }

    private func picture(_ file: [UInt8], _ size: PixelSize = PixelSize(width: 64, height: 32)) throws -> PixelImage {
        try source(.bytes(file, name: "song")).image(RenderRequest(size: size))
    }

    /// How many pixels of a column are not white.
    private func height(_ image: PixelImage, column: Int) -> Int {
        image.withUnsafeBytes { bytes in
            (0..<image.height).count { y in
                let at = y * image.bytesPerRow + 4 * column
                return !bytes[at..<(at + 3)].elementsEqual(Self.white)
            }
        }
    }

    @Test func heightsFollowTheLoudness() throws {
        // Full scale, then a quarter of it, then silence.
        let file = Self.wave(seconds: 3) { second, _ in
            sin(second * 2_000) * (second < 1 ? 1 : second < 2 ? 0.25 : 0)
        }
        let image = try picture(file, PixelSize(width: 96, height: 100))
        #expect(image.size == PixelSize(width: 96, height: 48))
        let heights = (0..<96).map { height(image, column: $0) }
        // 92 % of the height, a quarter of that, and a line; an edge between two pixels colours both.
        #expect(heights[4..<28].allSatisfy { (43...46).contains($0) }, "\(heights)")
        #expect(heights[36..<60].allSatisfy { (10...13).contains($0) }, "\(heights)")
        #expect(heights[68..<92].allSatisfy { (1...2).contains($0) }, "\(heights)")
    }

    @Test func effectiveValuesAreDarkerThanPeaks() throws {
        // One loud sample in a hundred: the effective value is a tenth of the peak.
        let file = Self.wave { second, _ in Int(second * 8_000) % 100 == 0 ? 0.9 : 0 }
        let image = try picture(file, PixelSize(width: 40, height: 20))
        let column = image.withUnsafeBytes { bytes in
            (0..<image.height).map { bytes[$0 * image.bytesPerRow + 4 * 20] }
        }
        #expect(column[10] < 120 && (130..<200).contains(column[3]), "\(column)")
    }

    @Test func anyChannelCounts() throws {
        let left = Self.wave(channels: 2) { second, channel in channel == 0 ? sin(second * 3_000) * 0.8 : 0 }
        let right = Self.wave(channels: 2) { second, channel in channel == 1 ? sin(second * 3_000) * 0.8 : 0 }
        let image = try picture(left)
        #expect(try image == picture(right))
        #expect(height(image, column: 30) > 24)
    }

    @Test func quietSoundIsDrawnLargerButNotNoise() throws {
        let soft = try picture(Self.wave { second, _ in sin(second * 2_000) * 0.1 })
        let loud = try picture(Self.wave { second, _ in sin(second * 2_000) * 0.9 })
        #expect(height(soft, column: 20) == height(loud, column: 20))
        let noise = try picture(Self.wave { second, _ in sin(second * 2_000) * 0.003 })
        #expect(height(noise, column: 20) <= 5)
    }

    @Test func sameFileGivesTheSamePixelsInAllSizes() throws {
        let file = try VideoFixture.bytes("sound.m4a")
        let sizes = [PixelSize(64), PixelSize(200), PixelSize(width: 31, height: 500), PixelSize(64)]
        let song = source(.bytes(file, name: "song"))
        let images = try song.images(sizes.map { RenderRequest(size: $0) })
        #expect(images[0] == images[3])
        // The helper keeps what it heard for the next size; another helper hears the same.
        for size in sizes { #expect(try song.image(RenderRequest(size: size)) == picture(file, size)) }
        #expect(images.map(\.size) == [PixelSize(width: 64, height: 32), PixelSize(width: 200, height: 100),
            PixelSize(width: 31, height: 16), PixelSize(width: 64, height: 32)])
        let square = try song.image(RenderRequest(size: PixelSize(48), mode: .crop(.center)))
        #expect(square.size == PixelSize(48))
    }

    @Test func coversSiblingsAndVideosGoFirst() throws {
        let size = RenderRequest(size: PixelSize(40))
        let covered = try VideoFixture.bytes("cover.mp3")
        var plain = source(.bytes(covered, name: "song"))
        plain.drawsWaveform = false
        #expect(try source(.bytes(covered, name: "song")).image(size) == plain.image(size))

        let folder = try TemporaryDirectory()
        let path = folder.path + "/song.wav"
        try Data(Self.wave { second, _ in sin(second * 900) }).write(to: URL(filePath: path))
        var song = source(.file(path))
        song.allowsSiblingCover = true
        let drawn = try song.image(size)
        #expect(drawn.size == PixelSize(width: 40, height: 20))
        try Data(Samples.bytes("lake.jpg")).write(to: URL(filePath: folder.path + "/cover.jpg"))
        #expect(try song.image(size) == ImageFileSource(path: folder.path + "/cover.jpg").image(size))

        song.allowsSiblingCover = false
        let identity = try song.identity()
        #expect(try song.image(size) == drawn)
        song.drawsWaveform = false
        #expect(try song.identity() != identity)
        #expect(thrown { _ = try song.image(size) } == "noVideo")
    }

    @Test func waveformNeedsTheHelper() throws {
        var song = VideoFrameSource(
            .bytes(Self.wave { _, _ in 0.5 }, name: "song"), at: .poster, workers: WorkerPool(program: "vitrine-nobody"))
        song.prefersCoverArt = true
        song.drawsWaveform = true
        #expect(thrown { _ = try song.image(RenderRequest(size: PixelSize(40))) } == "toolMissing")
    }

    @Test func publicSourceDrawsWaveforms() throws {
        let song = BuiltInSource.recording(try VideoFixture.path("sound.m4a"), drawsWaveform: true)
        #expect(try song.identityBlocking() != BuiltInSource.recording(VideoFixture.path("sound.m4a")).identityBlocking())
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func recordingsEndInAPictureOrATypedError() throws {
        var (pictures, errors) = (0, 0)
        let workers = VideoFixture.workers()
        let paths = Corpus.files(in: "anything/corpus/audio") + Corpus.files(in: "anything/hostile")
        for path in paths {
            var song = VideoFrameSource(.file(path), at: .poster, workers: workers)
            song.prefersCoverArt = true
            song.drawsWaveform = true
            do {
                let image = try song.image(RenderRequest(size: PixelSize(64)))
                #expect((1...64).contains(image.size.longestSide))
                pictures += 1
            } catch let error as ImagePipelineError {
                #expect(error.source == path, "\(path): \(error)")
                errors += 1
            }
        }
        // Of 85 recordings, 20 have covers; some are damaged, and some are tags alone.
        #expect(paths.isEmpty || pictures > 60, "\(pictures) pictures, \(errors) errors")
    }

    /// Bytes of sound that are cut, or changed at random.
    @Test func damagedSoundEndsInAPictureOrATypedError() throws {
        let workers = VideoFixture.workers()
        var random = SeededGenerator(3)
        for name in ["sound.m4a", "cover.mp3"] {
            let file = try VideoFixture.bytes(name)
            for _ in 0..<60 {
                var bytes = file
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random)) }
                var song = VideoFrameSource(.bytes(bytes, name: "song"), at: .poster, workers: workers)
                song.prefersCoverArt = true
                song.drawsWaveform = true
                do {
                    #expect(try song.image(RenderRequest(size: PixelSize(24))).size.longestSide <= 24)
                } catch let error as ImagePipelineError {
                    #expect(error.source == "song")
                }
            }
        }
    }
}
