import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// Files of public bug reports that were shown wrongly once.
@Suite(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
struct ReportedFilesTests {
    /// The size at 64 pixels, and the mean colours of the quarters: above left, above right, below left, below right.
    private static let files: [(name: String, width: Int, height: Int, quarters: String)] = [
        ("00260-colors-animated-8bpc-depth-exif-xmp.avif", 64, 64, "000000ff 000000ff 000000ff 000000ff"),
        ("00276-draw_points_idat_metasize0.avif", 64, 22, "d0002eff 2900d6af d0002eff 2900d6af"),
        ("00315-sofa_grid1x5_420_reversed_dimg_order.avif", 64, 49, "565c67ff 565553ff 848482ff 554132ff"),
        ("03214-ycgco-re.avif", 64, 43, "46545bff 40453fff 705940ff 755748ff"),
        ("05338-ycbcr-cat.tif", 50, 64, "292f30ff 313936ff 37453dff 465a4eff"),
        ("05859-bmp_v5_with_icc.ico", 64, 33, "999274ff 7f7fa6ff 5c5876ff 74735eff"),
        ("08270-bug1606566.pdf", 64, 16, "eaeaeaff fbfbfbff ecececff fbfbfbff"),
        ("08926-knockout_smask.pdf", 64, 52, "f1b2c1ff ddd4f5ff e77f97ff c7b7efff"),
        ("10352-tiff_tiled_planar_lzw.tiff", 48, 64, "665768ff c4d1e2ff 8f5545ff edeff3ff"),
        ("case.epub", 43, 64, "ff0000ff ff0000ff ff0000ff ff0000ff"),
        ("cmyk-jfif-noadobe.jpg", 64, 16, "808081ff 93ac8cff 808081ff 93ac8cff"),
        ("cmyk-no-adobe-marker.jpg", 64, 16, "808081ff 93ac8cff 808081ff 93ac8cff"),
        ("dds-luminance-mask-high.dds", 64, 64, "838383ff 2e2e2eff 0b0b0bff 000000ff"),
        ("exr-dark-scene.exr", 64, 64, "262626ff 262626ff 262626ff 262626ff"),
        ("exr-display-window-100x100.exr", 64, 64, "0f0000ff 0f0000ff 0f0000ff 0f0000ff"),
        ("exr-white-page.exr", 64, 64, "c7c7c7ff d1d1d1ff fdfdfdff fdfdfdff"),
        ("gray-icc-lab-pcs.png", 64, 8, "2d2d2dff b4b4b4ff 2d2d2dff b4b4b4ff"),
        ("gray-linear-icc.avif", 64, 8, "656565ff dcdcdcff 656565ff dcdcdcff"),
        ("gray-linear-icc.heic", 64, 8, "656565ff dcdcdcff 656565ff dcdcdcff"),
        ("gz.svgz", 64, 17, "ff0000ff 0000ffff ff0000ff 0000ffff"),
        ("htj2k-520x300.j2c", 64, 37, "5d5f6eff 7d7480ff 646171ff 796f7fff"),
        ("jp2-bogus-icc-relax.jp2", 64, 48, "33483fff 2d3f30ff 717f87ff 36573eff"),
        ("jp2-edge-tiles-Bretagne2_4.j2k", 64, 48, "828ca3ff 727e96ff 7c6d5fff 6d6256ff"),
        ("jp2-palette-worker-sigsys.jp2", 64, 43, "a8621aff 1a62a8ff 599be0ff e09b59ff"),
        ("jp2-tiled-with-offset.jp2", 25, 64, "5e606eff 7c737eff 636171ff 776f7fff"),
        ("lab8-grey-96x72.tif", 64, 48, "7a8183ff 7a8183ff 7a8183ff 7a8183ff"),
        ("png-raw-profile-exif-orientation6.png", 40, 64, "0000ffff ff0000ff ffff00ff 00ff00ff"),
        ("svgcover.epub", 43, 64, "ff0000ff ff0000ff ff0000ff ff0000ff"),
        ("tiff-rgb-alpha-extra.tif", 64, 64, "060d2665 050b215a 080f265b 060d246e"),
        ("x-gimport.svg", 64, 16, "ff0000ff 0000ffff ff0000ff 0000ffff"),
        ("x-img.svg", 64, 16, "ff0000ff 0000ffff ff0000ff 0000ffff"),
    ]

    @Test(arguments: files.indices)
    func isShownRight(index: Int) throws {
        let file = Self.files[index]
        let path = try #require(Corpus.files(in: "found/files").first { $0.hasSuffix("/" + file.name) })
        let source: BuiltInSource = try FileKind(of: .file(path)) == .pdf ? .pdf(path) : .file(path)
        let image = try source.blocking.image(RenderRequest(size: PixelSize(64)))
        #expect(image.size == PixelSize(width: file.width, height: file.height), "\(file.name)")
        let expected = file.quarters.split(separator: " ").compactMap { UInt32($0, radix: 16) }
        let means = Self.quarters(of: image)
        try #require(means.count == expected.count)
        // Poppler 25 draws text a little lighter than poppler 22.
        let tolerance: Double = file.name.hasSuffix(".pdf") ? 6 : 3
        for (mean, color) in zip(means, expected) {
            let wanted = [24, 16, 8, 0].map { Double(color >> $0 & 255) }
            #expect(zip(mean, wanted).allSatisfy { abs($0 - $1) <= tolerance }, "\(file.name): \(mean) instead of \(wanted)")
        }
    }

    /// Transparency that the library of this system loses: refused, never opaque.
    @Test func tilesWithAlphaOfTheirOwnAreRightOrRefused() throws {
        let name = "00254-color_grid_alpha_nogrid.avif"
        let path = try #require(Corpus.files(in: "found/files").first { $0.hasSuffix(name) })
        do {
            let image = try ImageDecoder().decode(.file(path), at: .fit(64))
            #expect(image.alpha != .opaque)
        } catch {
            guard case .unsupported = error else { throw error }
        }
    }

    /// cairo refuses a size on the page and draws nothing: an error, no blank page. The page has red and green text.
    @Test func pageThatIsNotDrawnIsNotBlank() throws {
        let path = try #require(Corpus.files(in: "found/files").first { $0.hasSuffix("08662-issue19634.pdf") })
        do {
            let image = try BuiltInSource.pdf(path).blocking.image(RenderRequest(size: PixelSize(64)))
            let hasText = (0..<64).contains { y in (0..<64).contains { image[$0, y].blue < 200 } }
            #expect(hasText)
        } catch let error as ImagePipelineError {
            guard case .unsupported(_, let reason) = error else { throw error }
            #expect(reason.contains("page 1"))
        }
    }

    private static func quarters(of image: PixelImage) -> [[Double]] {
        let (across, down) = (image.width / 2, image.height / 2)
        return [(0..<across, 0..<down), (across..<image.width, 0..<down), (0..<across, down..<image.height),
            (across..<image.width, down..<image.height),
        ].map { columns, rows in
            var sum = [0.0, 0, 0, 0]
            for y in rows {
                for x in columns {
                    let color = image[x, y]
                    for (i, value) in [color.red, color.green, color.blue, color.alpha].enumerated() {
                        sum[i] += Double(value)
                    }
                }
            }
            return sum.map { $0 / Double(columns.count * rows.count) }
        }
    }
}
