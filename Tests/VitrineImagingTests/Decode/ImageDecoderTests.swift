import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineSVG

@Suite struct ImageDecoderTests {
    /// Mean absolute difference of the colour channels, in levels.
    private func difference(_ a: PixelImage, _ b: PixelImage) -> Double {
        guard a.size == b.size else { return .infinity }
        var sum = 0
        for y in 0..<a.height {
            for x in 0..<a.width {
                let (p, q) = (a[x, y], b[x, y])
                sum += abs(Int(p.red) - Int(q.red)) + abs(Int(p.green) - Int(q.green)) + abs(Int(p.blue) - Int(q.blue))
            }
        }
        return Double(sum) / Double(a.width * a.height * 3)
    }

    @Test func everyFormatShowsTheSameLake() async throws {
        let reference = try await ImageDecoder().image(from: .file(Samples.path("lake.webp")), at: .fit(150))
        #expect(reference.size == PixelSize(width: 150, height: 100))
        for (name, tolerance) in [
            ("lake.avif", 3.0), ("lake.heic", 3), ("lake.jxl", 3), ("lake.jp2", 3), ("lake-cmyk.jpg", 30),
        ] {
            let image = try await ImageDecoder().image(from: .file(Samples.path(name)), at: .fit(150))
            #expect(difference(image, reference) < tolerance, "\(name): \(difference(image, reference))")
        }
    }

    @Test func aSmallResultIsCloseToTheReducedWhole() async throws {
        for name in ["lake.jpg", "lake-progressive.jpg", "lake.webp", "leaf.png", "lake.avif", "lake.bmp"] {
            let input = ImageInput.file(Samples.path(name))
            let whole = try await ImageDecoder().image(from: input)
            let resizer = ImageResizer.fit(75)
            let expected = try resizer.resize(whole)
            let small = try await ImageDecoder().image(from: input, at: resizer)
            #expect(difference(small, expected) < 2.5, "\(name): \(difference(small, expected))")
        }
    }

    @Test(arguments: ["orientation-6.jpg", "lake-progressive.jpg", "leaf.png", "lake.webp", "lake.bmp"])
    func reducedDecodesAreUprightAndNotEnlargedUnlessAllowed(name: String) throws {
        let input = ImageInput.file(Samples.path(name)), decoder = ImageDecoder()
        let whole = try decoder.decode(input)
        let small = try decoder.decode(input, at: .fit(40))
        #expect(small.size == (try ImageResizer.fit(40).outputSize(for: whole.size)))
        #expect(difference(small, try ImageResizer.fit(40).resize(whole)) < 4)
        var resizer = ImageResizer.fit(2 * whole.size.longestSide)
        resizer.allowsUpscaling = false
        #expect(try decoder.decode(input, at: resizer) == whole)
    }

    @Test func smallerSizesLeaveTheLargestAsItIsAlone() throws {
        let decoder = ImageDecoder()
        for name in ["lake.jpg", "lake-progressive.jpg", "orientation-6.jpg", "leaf.png", "lake.webp"] {
            let input = ImageInput.file(Samples.path(name))
            for (large, small) in [(120, [30, 60]), (150, [10, 75, 40]), (100, [90])] {
                let resizers = (small + [large]).map { ImageResizer.fit($0) } + [.crop(width: 20, height: 20)]
                let together = try decoder.decode(input, at: resizers)
                let alone = try decoder.decode(input, at: .fit(large))
                // A size that is not half of it or less has it made from more samples than it has alone.
                let isAlone = small.allSatisfy { 2 * $0 <= large }
                let largest = together[small.count]
                #expect(isAlone ? largest == alone : difference(largest, alone) < 1, "\(name)")
                for (resizer, image) in zip(resizers, together) {
                    let error = difference(image, try decoder.decode(input, at: resizer))
                    #expect(error < 4, "\(name) at \(resizer.size): \(error)")
                }
            }
        }
    }

    @Test(arguments: 1...8)
    func cropIsCutInUprightCoordinatesWhateverTheOrientation(_ value: Int) async throws {
        let input = ImageInput.file(Samples.path("orientation-\(value).jpg"))
        let whole = try await ImageDecoder().image(from: input)
        for gravity in [Gravity.left, .topRight, .focal(x: 0.3, y: 0.9)] {
            for resizer in [
                ImageResizer.crop(width: 60, height: 100, gravity: gravity),
                .crop(width: 150, height: 40, gravity: gravity), .crop(width: 300, height: 80, gravity: gravity),
            ] {
                let image = try await ImageDecoder().image(from: input, at: resizer)
                #expect(image.size == resizer.size)
                let error = difference(image, try resizer.resize(whole))
                #expect(error < 3, "\(gravity) \(resizer.size): \(error)")
            }
        }
    }

    @Test func aNarrowCropOfAVastEnlargementNeedsLittleMemory() async throws {
        // Covering 8,000 × 8,000 with a picture of 600 × 400 would be 12,000 × 8,000; only the window is made.
        let image = try await ImageDecoder().image(
            from: .file(Samples.path("lake.webp")), at: .crop(width: 4000, height: 16))
        #expect(image.size == PixelSize(width: 4000, height: 16))
    }

    @Test func pagesAreFramesCountedFromZero() async throws {
        for name in ["moon.gif", "moon.webp", "moon-animated.png"] {
            let input = ImageInput.file(Samples.path(name))
            let first = try await ImageDecoder().image(from: input)
            let other = try await ImageDecoder().image(from: input, options: DecodeOptions(page: 8))
            #expect(first.size == PixelSize(128))
            #expect(other.size == PixelSize(128))
            #expect(first != other, "\(name)")
            await #expect(throws: ImageError.self) {
                try await ImageDecoder().image(from: input, options: DecodeOptions(page: 16))
            }
        }
    }

    @Test func impossibleRequestsAreTypedErrors() async throws {
        let input = ImageInput.file(Samples.path("lake.jpg"))
        for resizer in [ImageResizer.fit(0), .fit(width: -5, height: 10), .crop(width: 0, height: 0)] {
            await #expect {
                try await ImageDecoder().image(from: input, at: resizer)
            } throws: { error in
                if case ImageError.invalidRequest = error { true } else { false }
            }
        }
        await #expect {
            try await ImageDecoder().image(from: input, at: .fit(100_000))
        } throws: { error in
            if case ImageError.limitExceeded(_, limit: .outputSide, _, _) = error { true } else { false }
        }
    }

    @Test func inputsThatAreNoPicturesNameThemselves() throws {
        let decoder = ImageDecoder()
        #expect(throws: ImageError.empty(input: "nothing")) { try decoder.decode(.bytes([], name: "nothing")) }
        #expect(throws: ImageError.notAnImage(input: "text")) {
            try decoder.decode(.bytes(Array("just some words".utf8), name: "text"))
        }
        #expect(throws: ImageError.unreadable(input: "/absent.jpg", reason: "No such file or directory")) {
            try decoder.decode(.file("/absent.jpg"))
        }
        #expect(throws: ImageError.unreadable(input: "/", reason: "is a directory")) { try decoder.decode(.file("/")) }
    }

    @Test func theNameOfAFileDoesNotMatter() throws {
        let bytes = try Samples.bytes("leaf.png")
        let image = try ImageDecoder().decode(.bytes(bytes, name: "photo.jpg"))
        #expect(image.size == PixelSize(320))
    }

    @Test func aHeaderOfAHundredThousandPixelsASideIsRefusedBeforeDecoding() throws {
        // A PNG header that claims 100,000 × 100,000 pixels, with a valid checksum and nothing behind it.
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13]
        bytes += Array("IHDR".utf8) + [0, 1, 0x86, 0xA0, 0, 1, 0x86, 0xA0, 8, 6, 0, 0, 0, 0xD4, 0x6E, 0x6D, 0x5E]
        #expect {
            try ImageDecoder().decode(.bytes(bytes, name: "bomb"), at: .fit(100))
        } throws: { error in
            if case ImageError.limitExceeded(input: "bomb", _, _, _) = error { true } else { false }
        }
    }

    @Test func aDrawingIsDrawnWithoutItsReferencesToOtherFiles() throws {
        let drawing = """
            <svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><image href="file:///etc/hostname"/></svg>
            """
        #expect(try ImageDecoder().decode(.bytes(Array(drawing.utf8), name: "drawing"))[10, 10] == .clear)
        let plain = drawing.replacing("<image href=\"file:///etc/hostname\"/>", with: "<rect width=\"20\" height=\"20\"/>")
        #expect(try ImageDecoder().decode(.bytes(Array(plain.utf8)))[10, 10] == .black)
    }

    /// Rewrites a file when it is asked to draw it, and notes what it could read then.
    private struct ChangingDecoder: ImageDecoding {
        let formats: Set<ImageFormat> = [.svg]
        let path: String
        let replacement: [UInt8]
        let seen: @Sendable ([UInt8]) -> Void

        func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
            if let file = FileHandle(forWritingAtPath: path) {
                try? file.truncate(atOffset: 0)
                file.write(Data(replacement))
            }
            seen(try source.allBytes())
            throw .corrupt(input: source.name, reason: "seen")
        }
    }

    @Test func aDrawingThatChangesAfterTheCheckIsDrawnAsItWasChecked() throws {
        let frame = "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'>"
        let innocent = Array((frame + "<rect width='20' height='20' fill='#123456' stroke='#123456'/></svg>").utf8)
        let evil = Array((frame + "<image href='file:///etc/hostname'/></svg>").utf8)
        // Rewritten in place: an open descriptor sees the new bytes.
        let path = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString).svg").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(innocent).write(to: URL(filePath: path))
        let drawn = Locked<[UInt8]>([])
        let probe = ChangingDecoder(path: path, replacement: evil) { bytes in drawn.withLock { $0 = bytes } }
        let decoder = ImageDecoder(
            limits: .standard, isolation: .inProcess,
            codecs: .standard(decoding: [SVGDecoder(renderer: probe)]), pool: .shared)
        #expect(throws: ImageError.corrupt(input: path, reason: "seen")) { try decoder.decode(.file(path)) }
        #expect(drawn.withLock { $0 } == innocent)
        #expect(FileManager.default.contents(atPath: path).map { [UInt8]($0) } == evil)
        #expect(throws: ImageError.corrupt(input: path, reason: "seen")) { try decoder.decode(.file(path)) }
        #expect(!String(decoding: drawn.withLock { $0 }, as: UTF8.self).contains("hostname"))
    }

    @Test func aCancelledTaskThrowsCancellationError() async throws {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await ImageDecoder().image(from: .file(Samples.path("lake.jpg")))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func noTimeAtAllIsADeadlineMissed() throws {
        var limits = ImageLimits.standard
        limits.deadline = 0
        // Slow enough that the clock is noticed before the last row.
        let decoder = ImageDecoder(limits: limits, isolation: .inProcess)
        let input = try ImageInput.bytes(Samples.bytes("lake-progressive.jpg"), name: "lake")
        var outcomes: Set<ImageError> = []
        for _ in 0..<50 {
            do { _ = try decoder.decode(input, at: .none) } catch { outcomes.insert(error) }
        }
        #expect(outcomes == [.timedOut(input: "lake")])
    }
}
