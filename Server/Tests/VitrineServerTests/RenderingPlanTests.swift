import Foundation
import NIOCore
import Testing
import VitrineImaging
import VitrinePipeline

import VitrineServer

/// Sizes as imgproxy's documentation of its options says them.
@Suite struct RenderingPlanTests {
    private static func options(_ change: (inout ProcessingOptions) -> Void) -> ProcessingOptions {
        var options = ProcessingOptions()
        change(&options)
        return options
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        var source = PixelSize(width: 1_000, height: 500)
        let result: PixelSize
        let change: @Sendable (inout ProcessingOptions) -> Void
        var testDescription: String { name }

        init(
            _ name: String, _ width: Int, _ height: Int, source: PixelSize = PixelSize(width: 1_000, height: 500),
            _ change: @escaping @Sendable (inout ProcessingOptions) -> Void
        ) {
            self.name = name
            self.source = source
            result = PixelSize(width: width, height: height)
            self.change = change
        }
    }

    private static func box(
        _ type: ProcessingOptions.ResizingType, _ width: Int, _ height: Int
    ) -> @Sendable (inout ProcessingOptions) -> Void {
        { ($0.resizingType, $0.width, $0.height) = (type, width, height) }
    }

    private static func box(
        _ type: ProcessingOptions.ResizingType, _ width: Int, _ height: Int,
        _ change: @escaping @Sendable (inout ProcessingOptions) -> Void
    ) -> @Sendable (inout ProcessingOptions) -> Void {
        { options in
            (options.resizingType, options.width, options.height) = (type, width, height)
            change(&options)
        }
    }

    private static let little = PixelSize(width: 300, height: 200)

    static let cases: [Case] = [
        Case("no size", 1_000, 500) { _ in },
        Case("fit", 200, 100, box(.fit, 200, 200)),
        Case("fit rounds to the nearest", 333, 133, source: PixelSize(width: 1_000, height: 400), box(.fit, 333, 333)),
        Case("fit by width", 300, 150, box(.fit, 300, 0)),
        Case("fit by height", 300, 150, box(.fit, 0, 150)),
        Case("fit is not enlarged", 1_000, 500, box(.fit, 2_000, 2_000)),
        Case("fit enlarged", 2_000, 1_000, box(.fit, 2_000, 2_000) { $0.enlarge = true }),
        Case("fit tall", 50, 100, source: PixelSize(width: 500, height: 1_000), box(.fit, 200, 100)),
        Case("fill", 200, 200, box(.fill, 200, 200)),
        Case("fill by width", 200, 100, box(.fill, 200, 0)),
        Case("fill of a small source cuts the rest", 300, 50, source: little, box(.fill, 400, 50)),
        Case("fill of a small source stays small", 300, 200, source: little, box(.fill, 400, 400)),
        Case("fill enlarged", 400, 400, source: little, box(.fill, 400, 400) { $0.enlarge = true }),
        Case("fill-down", 200, 200, box(.fillDown, 200, 200)),
        Case("fill-down of a small source", 200, 200, source: little, box(.fillDown, 400, 400)),
        Case("fill-down wide", 300, 150, source: little, box(.fillDown, 400, 200)),
        Case("fill-down tall", 100, 200, source: little, box(.fillDown, 200, 400)),
        Case("force", 300, 300, box(.force, 300, 300)),
        Case("force by width", 300, 500, box(.force, 300, 0)),
        Case("force is not enlarged", 500, 500, box(.force, 2_000, 2_000)),
        Case("force enlarged", 2_000, 2_000, box(.force, 2_000, 2_000) { $0.enlarge = true }),
        Case("auto of one direction fills", 300, 200, box(.auto, 300, 200)),
        Case("auto of two directions fits", 200, 100, box(.auto, 200, 300)),
        Case("dpr", 400, 200, box(.fit, 200, 200) { $0.dpr = 2 }),
        Case("dpr is bounded by the source", 1_000, 500, box(.fit, 600, 600) { $0.dpr = 3 }),
        Case("dpr below 1", 100, 50, box(.fit, 200, 200) { $0.dpr = 0.5 }),
        Case("zoom", 400, 200, box(.fit, 200, 200) { ($0.zoomX, $0.zoomY) = (2, 2) }),
        Case("zoom of one side", 400, 100, box(.fit, 200, 200) { $0.zoomX = 2 }),
        Case("zoom without a size", 500, 250) { ($0.zoomX, $0.zoomY) = (0.5, 0.5) },
        Case("minimum width", 2_000, 1_000) { $0.minimumWidth = 2_000 },
        Case("minimum width is cut to the box", 200, 200, box(.fit, 200, 200) { $0.minimumWidth = 400 }),
        Case("minimum height", 1_600, 800) { $0.minimumHeight = 800 },
        Case("minimum height is cut to the box", 200, 200, box(.fit, 200, 200) { $0.minimumHeight = 300 }),
        Case("minimum with dpr", 400, 400, box(.fit, 200, 200) { ($0.minimumWidth, $0.dpr) = (400, 2) }),
        Case("extend", 200, 200, box(.fit, 200, 200) { $0.extend = .init() }),
        Case("extend of a small source", 2_000, 2_000, box(.fit, 2_000, 2_000) { $0.extend = .init() }),
        Case("extend without a height", 200, 100, box(.fit, 200, 0) { $0.extend = .init() }),
        Case("extend by aspect ratio", 1_000, 1_000, box(.fit, 2_000, 2_000) { $0.extendAspectRatio = .init() }),
        Case("extend by aspect ratio reduced", 200, 200, box(.fit, 200, 200) { $0.extendAspectRatio = .init() }),
        Case("padding", 220, 130, box(.fit, 200, 200) { $0.padding = .init(top: 10, right: 15, bottom: 20, left: 5) }),
        Case("padding with dpr", 420, 240, box(.fit, 200, 200) {
            $0.dpr = 2
            $0.padding = .init(top: 10, right: 5, bottom: 10, left: 5)
        }),
        Case("crop in pixels", 400, 300) { $0.crop = .init(width: 400, height: 300) },
        Case("crop in parts", 500, 125) { $0.crop = .init(width: 0.5, height: 0.25) },
        Case("crop of one side", 1_000, 100) { $0.crop = .init(width: 0, height: 100) },
        Case("crop beyond the source", 1_000, 500) { $0.crop = .init(width: 5_000, height: 5_000) },
        Case("crop, then fit", 100, 75, box(.fit, 100, 100) { $0.crop = .init(width: 400, height: 300) }),
        Case("crop, then fill", 100, 100, box(.fill, 100, 100) { $0.crop = .init(width: 400, height: 300) }),
        Case("crop, then enlarged", 800, 600, box(.fit, 800, 800) {
            $0.crop = .init(width: 400, height: 300)
            $0.enlarge = true
        }),
        Case("turned before it fits", 100, 200, box(.fit, 200, 200) { $0.rotation = 90 }),
        Case("turned before it is cut", 100, 400) {
            $0.rotation = 270
            $0.crop = .init(width: 100, height: 400)
        },
        Case("turned upside down", 200, 100, box(.fit, 200, 200) { $0.rotation = 180 }),
        Case("at least one pixel", 5, 1, source: PixelSize(width: 4_000, height: 2), box(.fit, 5, 5)),
        Case("odd ratio", 67, 100, source: PixelSize(width: 2_000, height: 3_000), box(.fit, 100, 100)),
    ]

    @Test(arguments: cases) func resultHasTheDocumentedSize(_ example: Case) throws {
        let options = Self.options(example.change)
        var header = try SourceHeader(of: Samples.bytes("lake.jpg"))
        header.size = example.source
        let plan = try RenderPlan(options, header: header)
        #expect(plan.resultSize == example.result)
        // And so do the pixels, made as the pipeline makes them.
        let source = PixelImage(size: example.source, color: .white)
        let made = try plan.resizer.resize(source).processed(by: plan.processors)
        #expect(made.size == example.result)
    }

    @Test func vectorsGrow() throws {
        var header = try SourceHeader(of: Samples.bytes("vitrine.svg"))
        header.size = PixelSize(width: 50, height: 50)
        let plan = try RenderPlan(Self.options(Self.box(.fit, 300, 300)), header: header)
        #expect(plan.resultSize == PixelSize(300))
        #expect(plan.resizer.size == PixelSize(300))
    }

    /// A damaged page may say that it is of any size.
    @Test(arguments: [1 << 20, 1 << 32, 1 << 62, Int.max])
    func anEstimateOfHugeSourcesDoesNotOverflow(side: Int) throws {
        var header = try SourceHeader(of: Samples.bytes("lake.jpg"))
        header.size = PixelSize(width: side, height: side)
        for format in [ImageFormat.jpeg, .png, .svg, nil] {
            header.format = format
            for isProgressive in [false, true] {
                header.isProgressive = isProgressive
                for target in [nil, PixelSize(50), PixelSize(width: side, height: side)] {
                    let bytes = header.estimatedBytes(decodingTo: target, sourceBytes: .max)
                    #expect((2_000_000...1_000_000_000_000).contains(bytes))
                }
            }
        }
    }

    @Test func simpleRequestsAreLeftToThePipeline() throws {
        let header = try SourceHeader(of: Samples.bytes("lake.jpg"))
        for type in [ProcessingOptions.ResizingType.fit, .force, .fill] {
            // 1800 by 1200 fits without a crop.
            let plan = try RenderPlan(Self.options(Self.box(type, 300, 200)), header: header)
            #expect(plan.resizer == ImageResizer(size: PixelSize(width: 300, height: 200), mode: .stretch))
            #expect(plan.processors.isEmpty)
        }
        // A part is cut out of the reduced picture.
        let part = try RenderPlan(
            Self.options(Self.box(.fit, 100, 100) { $0.crop = .init(width: 600, height: 600) }), header: header)
        #expect(part.resizer.size == PixelSize(width: 300, height: 200))
        #expect(part.resultSize == PixelSize(100))
        let none = try RenderPlan(Self.options { _ in }, header: header)
        #expect(none.resizer == .none)
        #expect(none.processors.isEmpty)
    }

    @Test func reducedDecodesCostLess() throws {
        let header = try SourceHeader(of: Samples.bytes("lake.jpg"))
        let small = try RenderPlan(Self.options(Self.box(.fit, 100, 100)), header: header)
        let large = try RenderPlan(Self.options { _ in }, header: header)
        #expect(small.estimatedBytes * 3 < large.estimatedBytes)
        #expect(large.estimatedBytes >= 1_800 * 1_200 * 4)
    }

    private typealias Change = @Sendable (inout ProcessingOptions) -> Void

    /// Results no larger than their source are made smaller, as imgproxy does it.
    @Test func everyResultIsWithinTheLimit() async throws {
        let fixture = try RenderingFixture {
            ($0.settings.maximumSide, $0.limits.maximumOutputSide) = (500, 500)
        }
        let cases: [(change: Change, width: Int, height: Int)] = [
            ({ _ in }, 500, 333), ({ $0.width = 1_000 }, 500, 333), ({ ($0.width, $0.height) = (400, 300) }, 400, 267),
            ({ $0.crop = .init(width: 900, height: 900) }, 500, 500),
            ({ ($0.width, $0.height, $0.extend) = (900, 900, .init()) }, 500, 500),
            ({ ($0.width, $0.padding) = (800, .init(top: 100, right: 100, bottom: 100, left: 100)) }, 500, 367),
            ({ $0.minimumWidth = 700 }, 500, 333),
            ({ ($0.width, $0.height, $0.resizingType) = (700, 100, .force) }, 500, 71),
            ({ ($0.width, $0.dpr) = (300, 2) }, 500, 333), ({ $0.trim = .init() }, 500, 333),
            ({ $0.rotation = 90 }, 333, 500),
        ]
        for (number, (change, width, height)) in cases.enumerated() {
            let size = try #require(try await fixture.image("local:///lake.jpg", change).image.size)
            #expect(max(size.width, size.height) <= 500, "\(number)")
            #expect(abs(size.width - width) <= 1 && abs(size.height - height) <= 1, "\(number): \(size)")
        }
    }

    /// The pixels are stored as those of the source, so that its orientation is true of them.
    @Test func theOrientationStaysWithPicturesThatAreNotTurned() async throws {
        let fixture = try RenderingFixture()
        for (turns, orientation) in [(false, Orientation.right), (true, .up)] {
            let made = try await fixture.image("local:///orientation-6.jpg") { options in
                (options.autoRotate, options.stripMetadata, options.format) = (turns, false, .jpeg)
            }
            let info = try ImageInfo(of: .bytes(Array(made.image.bytes.readableBytesView)))
            #expect(info.orientation == orientation)
        }
    }

    @Test func resultsHaveALimit() throws {
        let header = try SourceHeader(of: Samples.bytes("lake.jpg"))
        let tooLarge: [@Sendable (inout ProcessingOptions) -> Void] = [
            Self.box(.force, 9_000, 10) { $0.enlarge = true },
            Self.box(.fit, 100, 100) { $0.padding = .init(top: 9_000, right: 0, bottom: 0, left: 0) },
            Self.box(.fit, 1_000_000_000, 1_000_000_000) { $0.extend = .init() },
        ]
        for change in tooLarge {
            let error = #expect(throws: RequestError.self) { try RenderPlan(Self.options(change), header: header) }
            #expect(error?.status == 422)
            #expect(error?.code == "result-too-large")
        }
    }

    @Test(arguments: [
        (ProcessingOptions.Gravity.Anchor.center, 0.0, 0.0, 26, 26), (.north, 0, 0, 26, 0), (.south, 0, 0, 26, 50),
        (.west, 0, 0, 0, 26), (.east, 0, 0, 50, 26), (.northWest, 0, 0, 0, 0), (.northEast, 0, 0, 50, 0),
        (.southWest, 0, 0, 0, 50), (.southEast, 0, 0, 50, 50), (.northWest, 10, 20, 10, 20),
        (.southEast, 10, 20, 40, 30), (.center, -5, 0.1, 21, 36), (.northWest, 0.25, 0.5, 25, 50),
        (.northWest, 500, -500, 50, 0), (.focusPoint, 0.5, 0.5, 25, 25), (.focusPoint, 1, 0, 50, 0),
        (.focusPoint, 0.4, 0.6, 15, 35),
    ])
    func partsLieWhereTheGravitySays(
        anchor: ProcessingOptions.Gravity.Anchor, x: Double, y: Double, left: Int, top: Int
    ) {
        var gravity = ProcessingOptions.Gravity()
        (gravity.anchor, gravity.x, gravity.y) = (anchor, x, y)
        let place = RenderGeometry.position(of: PixelSize(50), in: PixelSize(100), gravity, scale: 1)
        #expect(place.x == left)
        #expect(place.y == top)
    }

    /// The numbers are those of imgproxy's `ShrinkToEven(outer - inner + 1, 2)`.
    @Test func centredPartsLieWhereImgproxyCutsThem() {
        let starts = (0...8).map { excess in
            RenderGeometry.position(
                of: PixelSize(50), in: PixelSize(width: 50 + excess, height: 50), .init(), scale: 1).x
        }
        #expect(starts == [0, 1, 2, 2, 2, 3, 4, 4, 4])
    }

    @Test func offsetsGrowWithTheDevicePixels() {
        var gravity = ProcessingOptions.Gravity()
        (gravity.anchor, gravity.x) = (.northWest, 10)
        #expect(RenderGeometry.position(of: PixelSize(50), in: PixelSize(100), gravity, scale: 2).x == 20)
        #expect(
            RenderGeometry.position(of: PixelSize(50), in: PixelSize(10), gravity, scale: -9, mayExceed: true).x == -49)
    }

    // MARK: Pixels

    /// Four quarters: red, green, blue, white.
    private static func quarters(_ side: Int) -> PixelImage {
        PixelImage(width: side, height: side, alpha: .opaque) { pixels in
            for y in 0..<side {
                for x in 0..<side {
                    let at = (y * side + x) * 4
                    let isRight = 2 * x >= side, isLow = 2 * y >= side
                    pixels[at] = !isRight && !isLow || isRight && isLow ? 255 : 0
                    pixels[at + 1] = isRight ? 255 : 0
                    pixels[at + 2] = isLow ? 255 : 0
                    pixels[at + 3] = 255
                }
            }
        }
    }

    private static let red = PixelColor(red: 255, green: 0, blue: 0)
    private static let green = PixelColor(red: 0, green: 255, blue: 0)
    private static let blue = PixelColor(red: 0, green: 0, blue: 255)

    private func made(
        _ source: PixelImage, _ change: (inout ProcessingOptions) -> Void, _ settings: RenderSettings = RenderSettings(),
        orientation: Orientation = .up
    ) throws -> PixelImage {
        var header = try SourceHeader(of: Samples.bytes("lake.jpg"))
        (header.size, header.orientation) = (source.size, orientation)
        let plan = try RenderPlan(Self.options(change), header: header, settings: settings)
        return try plan.resizer.resize(source).processed(by: plan.processors)
    }

    @Test func turnsAndFlips() throws {
        let source = Self.quarters(40)
        #expect(try made(source) { $0.rotation = 90 }[0, 0] == Self.blue)
        #expect(try made(source) { $0.rotation = 180 }[0, 0] == .white)
        #expect(try made(source) { $0.rotation = 270 }[0, 0] == Self.green)
        #expect(try made(source) { $0.rotation = -90 }[0, 0] == Self.green)
        #expect(try made(source) { $0.flipHorizontal = true }[0, 0] == Self.green)
        #expect(try made(source) { $0.flipVertical = true }[0, 0] == Self.blue)
        #expect(try made(source) { ($0.flipHorizontal, $0.flipVertical) = (true, true) }[0, 0] == .white)
    }

    @Test(arguments: Orientation.allCases)
    func picturesStayAsStoredWithoutAutoRotation(orientation: Orientation) throws {
        // What the decoder delivers is upright.
        let stored = PixelImage(width: 40, height: 20, alpha: .opaque) { pixels in
            for index in pixels.indices { pixels[index] = index % 4 == 3 ? 255 : UInt8(truncatingIfNeeded: index * 7) }
        }
        let upright = stored.oriented(orientation)
        #expect(try made(upright, { $0.autoRotate = false }, orientation: orientation) == stored)
    }

    @Test func cutsOutThePartOfTheGravity() throws {
        let source = Self.quarters(80)
        func corner(_ anchor: ProcessingOptions.Gravity.Anchor, reduced: Bool) throws -> PixelColor {
            try made(source) { options in
                options.crop = .init(width: 40, height: 40, gravity: .init(anchor: anchor))
                if reduced { (options.width, options.height) = (20, 20) }
            }[5, 5]
        }
        for reduced in [false, true] {
            #expect(try corner(.northWest, reduced: reduced) == Self.red)
            #expect(try corner(.northEast, reduced: reduced) == Self.green)
            #expect(try corner(.southWest, reduced: reduced) == Self.blue)
            #expect(try corner(.southEast, reduced: reduced) == .white)
        }
        let filled = try made(source) { options in
            (options.resizingType, options.width, options.height) = (.fill, 40, 10)
            options.gravity.anchor = .south
        }
        #expect(filled.size == PixelSize(width: 40, height: 10))
        #expect(filled[5, 5] == Self.blue)
    }

    @Test func extendsWithNothingAndFillsTheBackground() throws {
        let source = Self.quarters(40)
        func extended(_ background: PixelColor?) throws -> PixelImage {
            try made(source) { options in
                (options.width, options.height) = (40, 80)
                options.extend = .init(anchor: .south)
                options.background = background
            }
        }
        let clear = try extended(nil)
        #expect(clear.size == PixelSize(width: 40, height: 80))
        #expect(clear[0, 0].alpha == 0)
        #expect(clear[0, 40] == Self.red)
        let filled = try extended(.black)
        #expect(filled.alpha == .opaque)
        #expect(filled[0, 0] == .black)
        let padded = try made(source) { $0.padding = .init(top: 1, right: 2, bottom: 3, left: 4) }
        #expect(padded.size == PixelSize(width: 46, height: 44))
        #expect(padded[3, 1].alpha == 0)
        #expect(padded[4, 1] == Self.red)
        #expect(padded[43, 40] == .white)
    }

    @Test func trims() throws {
        var source = PixelImage(size: PixelSize(width: 60, height: 40), color: .white)
        source.withUnsafeMutableBytes { bytes in
            for y in 10..<20 { for x in 20..<50 { bytes[(y * 60 + x) * 4 + 1] = 0 } }
        }
        #expect(try made(source) { $0.trim = .init() }.size == PixelSize(width: 30, height: 10))
        #expect(try made(source) { $0.trim = .init(color: .white) }.size == PixelSize(width: 30, height: 10))
        #expect(try made(source) { $0.trim = .init(color: .black) }.size == source.size)
        #expect(try made(source) { $0.trim = .init(equalHorizontal: true) }.size == PixelSize(width: 40, height: 10))
        #expect(try made(source) { $0.trim = .init(equalVertical: true) }.size == PixelSize(width: 30, height: 20))
        #expect(try made(source) { $0.trim = .init(threshold: 255) }.size == source.size)
        let fitted = try made(source) { options in
            options.trim = .init()
            (options.width, options.height) = (15, 15)
        }
        #expect(fitted.size == PixelSize(width: 15, height: 5))
    }

    @Test func filtersChangeThePixels() throws {
        let source = Self.quarters(40)
        let gray = try made(source) { $0.grayscale = true }[0, 0]
        #expect(gray.red == gray.green && gray.green == gray.blue)
        #expect(try made(source) { $0.blur = 5 } != source)
        let soft = try made(source) { $0.blur = 5 }
        #expect(try made(soft) { $0.sharpen = 2 } != soft)
        let mosaic = try made(source) { $0.pixelate = 40 }
        #expect(mosaic[0, 0] == mosaic[39, 39])
        #expect(try made(source) { ($0.blur, $0.sharpen, $0.pixelate) = (0, 0, 1) } == source)
    }

    @Test func watermarksLieWhereTheyAreWanted() throws {
        var settings = RenderSettings()
        settings.watermark = PixelImage(size: PixelSize(10), color: .black)
        let source = PixelImage(size: PixelSize(100), color: .white)
        func marked(_ change: (inout ProcessingOptions.Watermark) -> Void) throws -> PixelImage {
            var watermark = ProcessingOptions.Watermark()
            change(&watermark)
            return try made(source, { $0.watermark = watermark }, settings)
        }
        let middle = try marked { _ in }
        #expect(middle[50, 50] == .black)
        #expect(middle[40, 40] == .white)
        let corner = try marked { $0.position = .init(anchor: .southEast, x: 5, y: 5) }
        #expect(corner[94, 94] == .black)
        #expect(corner[95, 95] == .white)
        let outside = try marked { $0.position = .init(anchor: .northWest, x: -5, y: -5) }
        #expect(outside[4, 4] == .black)
        #expect(outside[5, 5] == .white)
        let large = try marked { $0.scale = 0.5 }
        #expect(large[26, 26] == .black)
        let everywhere = try marked { $0.position = nil }
        #expect(everywhere[0, 0] == .black && everywhere[99, 99] == .black)
        #expect(try marked { $0.opacity = 0 } == source)
        let half = try marked { $0.opacity = 0.5 }[50, 50]
        #expect((126...129).contains(half.red))
        // Without a picture nothing is drawn.
        #expect(try made(source) { $0.watermark = .init() } == source)
    }

    @Test func equalOptionsHaveOneName() {
        let plain = ProcessingOptions()
        #expect(plain.resultName.isEmpty)
        #expect(Self.options { ($0.expires, $0.fileName, $0.isAttachment) = (1, "x", true) }.resultName.isEmpty)
        #expect(Self.options { $0.rotation = 360 }.resultName.isEmpty)
        let changes: [@Sendable (inout ProcessingOptions) -> Void] = [
            { $0.trim = .init() }, { $0.crop = .init() }, { $0.width = 1 }, { $0.height = 1 }, { $0.minimumWidth = 1 },
            { $0.minimumHeight = 1 }, { $0.zoomX = 2 }, { $0.zoomY = 2 }, { $0.dpr = 2 }, { $0.enlarge = true },
            { $0.extend = .init() }, { $0.extendAspectRatio = .init() }, { $0.gravity.anchor = .smart },
            { $0.autoRotate = false }, { $0.rotation = 90 }, { $0.flipHorizontal = true }, { $0.flipVertical = true },
            { $0.blur = 1 }, { $0.sharpen = 1 }, { $0.pixelate = 2 }, { $0.grayscale = true }, { $0.padding = .init() },
            { $0.watermark = .init() }, { $0.background = .white }, { $0.page = 2 }, { $0.second = 1 },
            { $0.format = .png }, { $0.quality = 1 }, { $0.formatQuality = [.png: 1] }, { $0.maximumBytes = 1 },
            { $0.stripMetadata = true }, { $0.keepCopyright = true }, { $0.skipProcessing = [.gif] },
            { $0.isRaw = true }, { $0.cacheBuster = "1" },
        ]
        let names = changes.map { Self.options($0).resultName }
        #expect(Set(names).count == names.count)
        #expect(!names.contains(""))
    }
}
