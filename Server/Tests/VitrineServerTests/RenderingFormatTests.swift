import Foundation
import NIOCore
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

import VitrineServer

/// The files that come out: formats, qualities, lengths, metadata, and sources that are passed through.
@Suite struct RenderingFormatTests {
    private static func small(_ options: inout ProcessingOptions) { (options.width, options.height) = (60, 60) }

    @Test(arguments: [
        ("lake.jpg", ImageFormat.jpeg), ("leaf.png", .png), ("lake.webp", .webp), ("moon.gif", .gif),
        ("lake.avif", .avif),
        ("lake.bmp", .jpeg), ("lake.tif", .jpeg), ("leaf.ico", .png), ("vitrine.svg", .png), ("lake.pdf", .jpeg),
    ])
    func resultsHaveTheFormatOfTheirSource(name: String, format: ImageFormat) async throws {
        let fixture = try RenderingFixture()
        let rendering = try await fixture.image("local:///" + name, Self.small)
        #expect(rendering.image.format == format)
        #expect(rendering.image.mediaType == format.mediaType)
        #expect(try rendering.image.info.format == format)
        #expect(max(rendering.image.size?.width ?? 0, rendering.image.size?.height ?? 0) == 60)
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif, .jxl, .gif])
    func resultsHaveTheFormatThatIsAskedFor(format: ImageFormat) async throws {
        let fixture = try RenderingFixture()
        let named = try await fixture.image("local:///leaf.png") { options in
            Self.small(&options)
            options.format = format
        }
        #expect(try named.image.info.format == format)
        let negotiated = try await fixture.renderer.image(
            for: RenderingFixture.url("local:///leaf.png", Self.small), format: format)
        #expect(try negotiated.image.info.format == format)
        #expect(negotiated.origin == .made)
    }

    @Test func formatsThatAreOnlyReadAreRefused() async throws {
        let fixture = try RenderingFixture()
        for format in [ImageFormat.tiff, .heic, .bmp, .svg, .ico, .jp2] {
            let error = await fixture.error("local:///lake.jpg") { $0.format = format }
            #expect(error?.status == 400)
            #expect(error?.code == "unsupported-format")
        }
    }

    @Test func qualityAndLengthAreKept() async throws {
        let fixture = try RenderingFixture()
        func length(_ change: @Sendable (inout ProcessingOptions) -> Void) async throws -> Int {
            try await fixture.image("local:///lake.jpg") { options in
                (options.width, options.height) = (300, 300)
                change(&options)
            }.image.bytes.readableBytes
        }
        let usual = try await length { _ in }
        #expect(try await length { $0.quality = 20 } < usual)
        #expect(try await length { $0.quality = 80 } == usual)
        #expect(try await length { $0.quality = 0 } == usual)
        #expect(try await length { $0.formatQuality = [.jpeg: 20] } < usual)
        #expect(try await length { $0.formatQuality = [.webp: 20] } == usual)
        #expect(try await length { ($0.quality, $0.formatQuality) = (80, [.jpeg: 20]) } == usual)
        let limit = usual / 2
        let limited = try await length { $0.maximumBytes = limit }
        #expect(limited <= limit && limited > limit / 2)
        // What cannot be met gives the shortest file.
        #expect(try await length { $0.maximumBytes = 10 } < limit)
        #expect(try await length { ($0.maximumBytes, $0.format) = (10, .png) } > 10)
    }

    @Test func metadataIsRemovedUnlessItIsWanted() async throws {
        let fixture = try RenderingFixture()
        let root = fixture.root + "/local"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        let exif = Self.exif(make: "Lakeside", copyright: "A. Author", orientation: 1)
        let picture = PixelImage(size: PixelSize(width: 40, height: 30), color: .white)
        let bytes = try picture.encoded(as: .jpeg(), metadata: ImageMetadata(exif: exif))
        try Data(bytes).write(to: URL(filePath: root + "/a.jpg"))
        let own = try RenderingFixture { $0.sources.localRoot = root }
        func fields(_ change: (inout ProcessingOptions) -> Void) async throws -> ExifFields? {
            let image = try await own.image("local:///a.jpg", change).image
            return try ImageMetadata(of: .bytes([UInt8](image.bytes.readableBytesView))).exif.map(ExifFields.init)
        }
        let usual = try await fields { _ in }
        #expect(usual?.copyright == "A. Author")
        #expect(usual?.make == nil)
        #expect(try await fields { $0.keepCopyright = false } == nil)
        #expect(try await fields { $0.stripMetadata = false }?.make == "Lakeside")
        let summary = try await own.renderer.info(for: RenderingFixture.url("local:///a.jpg"))
        #expect(summary.exif?.make == "Lakeside")
        #expect(summary.exif?.copyright == "A. Author")
        #expect(summary.exif?.hasLocation == false)
    }

    /// A block in big-endian order with three fields.
    private static func exif(make: String, copyright: String, orientation: UInt8) -> [UInt8] {
        let texts = [Array(make.utf8) + [0], Array(copyright.utf8) + [0]]
        let start = 8 + 2 + 3 * 12 + 4
        var block: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 3]
        block += [0x01, 0x0F, 0, 2, 0, 0, 0, UInt8(texts[0].count), 0, 0, 0, UInt8(start)]
        block += [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]
        block += [0x82, 0x98, 0, 2, 0, 0, 0, UInt8(texts[1].count), 0, 0, 0, UInt8(start + texts[0].count)]
        return block + [0, 0, 0, 0] + texts[0] + texts[1]
    }

    @Test func damagedExifIsPassedOver() {
        let block = Self.exif(make: "Lakeside", copyright: "A. Author", orientation: 6)
        #expect(ExifFields(block).make == "Lakeside")
        for length in 0..<block.count { _ = ExifFields(Array(block.prefix(length))) }
        for index in block.indices {
            for value: UInt8 in [0, 1, 127, 128, 255] {
                var damaged = block
                damaged[index] = value
                _ = ExifFields(damaged).copyrightBlock
            }
        }
        #expect(ExifFields([]).copyrightBlock == nil)
        let copy = ExifFields(block).copyrightBlock ?? []
        #expect(ExifFields(copy).copyright == "A. Author")
        #expect(ExifFields(copy).make == nil)
    }

    @Test func picturesAreTurnedUpright() async throws {
        let fixture = try RenderingFixture()
        let upright = try await fixture.image("local:///orientation-6.jpg").image
        let stored = try await fixture.image("local:///orientation-6.jpg") { $0.autoRotate = false }.image
        #expect(upright.size?.width == stored.size?.height)
        #expect(upright.size?.height == stored.size?.width)
        let turned = try await fixture.image("local:///orientation-6.jpg") { options in
            (options.width, options.rotation) = (40, 90)
        }.image
        #expect(turned.size?.width == 40)
    }

    @Test func pagesAndSecondsAreChosen() async throws {
        let fixture = try RenderingFixture()
        let first = try await fixture.image("local:///lake.pdf") { $0.format = .png }.image
        let second = try await fixture.image("local:///lake.pdf") { ($0.format, $0.page) = (.png, 2) }.image
        #expect(first.bytes != second.bytes)
        // Pages that are asked for at once keep their own sizes.
        let other = try RenderingFixture()
        let pages = try await withThrowingTaskGroup(of: (Int, Rendering).self) { group in
            for page in 1...3 {
                group.addTask {
                    (page, try await other.image("local:///lake.pdf") { ($0.format, $0.page) = (.png, page) })
                }
            }
            return try await group.reduce(into: [Int: Rendering]()) { $0[$1.0] = $1.1 }
        }
        #expect(pages[1]?.image.bytes == first.bytes)
        #expect(pages[2]?.image.bytes == second.bytes)
        #expect(pages[3]?.image.size == (try await fixture.image("local:///lake.pdf") { $0.page = 3 }).image.size)
        let missing = await fixture.error("local:///lake.pdf") { $0.page = 99 }
        #expect(missing?.status == 422)
        #expect(missing?.code == "no-such-page")
        let frame = try await fixture.image("local:///moon.gif") { ($0.format, $0.page) = (.png, 2) }.image
        #expect(frame.size == PixelSize(128))
        #expect(try await fixture.image("local:///moon.gif") { $0.format = .png }.image.bytes != frame.bytes)
        let video = try await fixture.image("local:///lake.mp4", Self.small).image
        #expect(video.format == .jpeg)
        let later = try await fixture.image("local:///lake.mp4") { options in
            Self.small(&options)
            options.second = 1
        }.image
        #expect(later.size == video.size)
        #expect(await fixture.error("local:///lake.mp4") { $0.second = 9_999 }?.code == "beyond-end")
    }

    @Test func sourcesPassThrough() async throws {
        let fixture = try RenderingFixture()
        let source = try Samples.bytes("lake.jpg")
        let raw = try await fixture.image("local:///lake.jpg") { $0.isRaw = true }.image
        #expect([UInt8](raw.bytes.readableBytesView) == source)
        #expect(raw.mediaType == "image/jpeg")
        let skipped = try await fixture.image("local:///lake.jpg") { options in
            Self.small(&options)
            options.skipProcessing = [.jpeg, .gif]
        }.image
        #expect([UInt8](skipped.bytes.readableBytesView) == source)
        #expect(skipped.size == PixelSize(width: 1_800, height: 1_200))
        // Another format is made all the same, and so is one that is not skipped.
        let made = try await fixture.image("local:///lake.jpg") { options in
            Self.small(&options)
            (options.skipProcessing, options.format) = ([.jpeg], .png)
        }.image
        #expect(made.format == .png)
        let other = try await fixture.image("local:///leaf.png") { options in
            Self.small(&options)
            options.skipProcessing = [.jpeg]
        }.image
        #expect(other.size == PixelSize(60))
        // Nothing was decoded for these two.
        #expect(fixture.renderer.pipeline.statistics.calls == 2)
        let page = "data:text/html,<script>alert(1)</script>"
        let words = try await fixture.image(page) { $0.isRaw = true }.image
        #expect(words.mediaType == "application/octet-stream")
    }

    @Test func slowFormatsAreCompletedInTheBackground() async throws {
        let fixture = try RenderingFixture { $0.encodeDeadline = .zero }
        let url = RenderingFixture.url("local:///lake.jpg") { ($0.width, $0.height) = (400, 400) }
        let first = try await fixture.renderer.image(for: url, format: .avif, alternative: .webp)
        #expect(first.image.format == .webp)
        #expect(first.image.isProvisional)
        try await wait { fixture.renderer.admission.renders.cost == 0 }
        fixture.clock.advance(by: .milliseconds(1))
        var second = try await fixture.renderer.image(for: url, format: .avif, alternative: .webp)
        while second.image.isProvisional {
            try await Task.sleep(for: .milliseconds(5))
            second = try await fixture.renderer.image(for: url, format: .avif, alternative: .webp)
        }
        #expect(second.image.format == .avif)
        #expect(second.origin == .memory)
        #expect(fixture.renderer.pipeline.statistics.calls == 1)
        // A format that the URL names is waited for.
        let named = try await fixture.image("local:///lake.jpg") { ($0.width, $0.format) = (64, .avif) }
        #expect(named.image.format == .avif)
        // Without room in the background, the better format is left for later.
        let full = try RenderingFixture { ($0.encodeDeadline, $0.backgroundEncodes) = (.zero, 0) }
        let quick = try await full.renderer.image(for: url, format: .avif)
        #expect(quick.image.format == .jpeg)
        #expect(quick.image.isProvisional)
        // It is kept for a moment, and then made once more.
        #expect(try await full.renderer.image(for: url, format: .avif).origin == .memory)
        full.clock.advance(by: .seconds(6))
        #expect(try await full.renderer.image(for: url, format: .avif).origin == .made)
    }

    @Test func infoDescribesTheSource() async throws {
        let fixture = try RenderingFixture()
        let lake = try await fixture.renderer.info(for: RenderingFixture.url("local:///lake.jpg"))
        #expect((lake.width, lake.height) == (1_800, 1_200))
        #expect(lake.format == "jpeg")
        #expect(lake.mediaType == "image/jpeg")
        #expect(lake.bytes == (try Samples.bytes("lake.jpg").count))
        #expect(lake.blurHash?.count == 28)
        #expect(lake.thumbHash.flatMap { Data(base64Encoded: $0) }.map { $0.count > 10 } == true)
        #expect((1...5).contains(lake.dominantColors.count))
        #expect(lake.averageColor?.count == 7)
        let moon = try await fixture.renderer.info(for: RenderingFixture.url("local:///moon.gif"))
        #expect(moon.pages > 1)
        #expect(moon.duration.map { $0 > 0 } == true)
        let document = try await fixture.renderer.info(for: RenderingFixture.url("local:///lake.pdf"))
        #expect(document.kind == .document)
        #expect(document.pages == 3)
        #expect(document.format == nil)
        let video = try await fixture.renderer.info(for: RenderingFixture.url("local:///lake.mp4"))
        #expect(video.kind == .video)
        #expect(video.duration.map { $0 > 0 } == true)
        // It is kept as any result.
        let url = RenderingFixture.url("local:///lake.jpg") { $0.width = 5 }
        let again = try await fixture.renderer.infoDocument(for: url)
        #expect(again.origin == .memory)
        #expect(again.image.mediaType == "application/json")
    }

    @Test func headersTellFontsByTheirContent() throws {
        let font = try SourceHeader(of: Array("OTTO".utf8) + [0, 1, 0, 0])
        #expect(font.kind == .font && font.mediaType == "font/sfnt" && font.isVector)
        #expect(font.size.width == font.size.height && font.size.width > 0)
        #expect(throws: RequestError.self) { try SourceHeader(of: Array("free text".utf8)) }
    }

    @Test func resultsSurviveTheirEncoding() throws {
        let image = RenderedImage(
            bytes: [10, 10, 0, 255], mediaType: "image/png", format: .png, size: PixelSize(width: 3, height: 4),
            source: RenderedImage.SourceState(
                version: "v", freshUntil: .milliseconds(1_234), lastModified: "x\ny", confirmed: .seconds(-1)))
        let copy = try RenderedImage(cacheBytes: image.cacheBytes())
        #expect(copy.bytes == image.bytes)
        #expect(copy.source.lastModified == "xy")
        #expect(copy.source.freshUntil == image.source.freshUntil && copy.source.confirmed == image.source.confirmed)
        #expect(copy.size == image.size && copy.format == .png && copy.entityTag == image.entityTag)
        let bytes = image.cacheBytes()
        for length in 0..<(bytes.count - 4) {
            #expect(throws: RenderedImage.Damaged.self) { try RenderedImage(cacheBytes: Array(bytes.prefix(length))) }
        }
    }
}
