import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Real files against decoders of other projects, where those are installed: Pillow, and ImageMagick, OpenEXR and the
/// reader of Radiance files by the command of libvips.
@Suite struct RasterPeerTests {
    /// Runs a program; nil if it is absent or fails.
    private static func run(_ words: [String]) -> [UInt8]? {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        let output = Pipe()
        (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
        do { try process.run() } catch { return nil }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? [UInt8](data) : nil
    }

    private static let hasPillow = run(["/usr/bin/python3", "-c", "import PIL, numpy"]) != nil
    /// Files that Pillow reads, or reads right, since version 11 or 12.
    private static let recentPillow: [String] = {
        let version = run(["/usr/bin/python3", "-c", "import PIL; print(PIL.__version__.split('.')[0], end='')"])
            .flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        let since11 = [
            "bc1_typeless.dds", "bgr15.dds", "rgba5551.dds", "bnm_rgb.qoi", "bnm_rgba.qoi", "hopper.qoi",
            "pil123rgba.qoi", "testcard_rgba.qoi",
        ]
        let since12 = ["bottom_left.tga", "rgb32rle.tga", "0layers.psb", "gray0.psb"]
        return (version ?? 0 >= 11 ? since11 : []) + (version ?? 0 >= 12 ? since12 : [])
    }()
    private static let hasVips = run(["vips", "--version"]) != nil
    /// A file that ImageMagick 7 lays over white twice.
    private static let olderImageMagick =
        run(["vips", "-l"]).map { String(decoding: $0, as: UTF8.self).contains("Magick7") } == true
        ? [] : ["lighten.psd"]

    private static func file(_ name: String) -> String? {
        Corpus.files(in: "anything/corpus").first { $0.hasSuffix("/" + name) }
    }

    /// The picture as Pillow has it: premultiplied red, green, blue and alpha.
    private static func pillow(_ path: String) -> (PixelSize, [UInt8])? {
        let script = """
            import sys, numpy
            from PIL import Image
            image = Image.open(sys.argv[1])
            image.load()
            if image.mode.startswith("I"): sys.exit(3)
            a = numpy.asarray(image.convert("RGBA")).astype("u4")
            a[..., :3] = (a[..., :3] * a[..., 3:] + 127) // 255
            sys.stdout.buffer.write(numpy.array(image.size, "<u4").tobytes() + a.astype("u1").tobytes())
            """
        guard let bytes = run(["/usr/bin/python3", "-c", script, path]), bytes.count > 8 else { return nil }
        let numbers = [0, 4].map { bytes[$0..<($0 + 4)].reversed().reduce(0) { $0 << 8 | Int($1) } }
        return (PixelSize(width: numbers[0], height: numbers[1]), Array(bytes[8...]))
    }

    private func pixels(_ path: String) throws -> (PixelSize, [UInt8]) {
        let image = try ImageDecoder(isolation: .inProcess).decode(.file(path))
        let bytes = image.withUnsafeBytes { bytes in
            (0..<image.height).flatMap { bytes[($0 * image.bytesPerRow)..<($0 * image.bytesPerRow + 4 * image.width)] }
        }
        return (image.size, bytes)
    }

    private func difference(_ a: [UInt8], _ b: [UInt8]) -> (mean: Double, largest: Int) {
        var (sum, largest) = (0, 0)
        for (x, y) in zip(a, b) {
            let d = abs(Int(x) - Int(y))
            sum += d
            largest = max(largest, d)
        }
        return (Double(sum) / Double(max(1, a.count)), largest)
    }

    @Test(
        .enabled(if: Corpus.isAvailable && hasPillow, "needs the shared corpus, and the system's Python with Pillow and NumPy"),
        arguments: [
            "16color.pcx", "bw.pcx", "odd_stride.pcx", "rgb.pcx", "200x32_la_bl_rle.tga", "200x32_la_tl_raw.tga",
            "200x32_rgb_tl_raw.tga", "bottom_right.tga", "rgb.tga", "ucm8.tga", "argb-32bpp_MipMaps-1.dds",
            "dxt3-argb-8bbp-explicitalpha_MipMaps-1.dds", "hopper.ppm", "hopper_8bit.ppm", "hopper_8bit_plain.ppm",
            "hopper.psd", "hopper_merged.psd",
        ] + recentPillow)
    func realFilesLookAsInPillow(_ name: String) throws {
        let path = try #require(Self.file(name))
        let (size, expected) = try #require(Self.pillow(path), "Pillow does not read it")
        let (ownSize, own) = try pixels(path)
        #expect(ownSize == size, "\(name)")
        let (mean, largest) = difference(own, expected)
        // Five bits are stretched by rounding here.
        #expect(mean < 0.6 && largest <= 8, "\(name): mean \(mean), largest \(largest)")
    }

    /// Photoshop files of 8 and 16 bits by ImageMagick, laid over white by both. It takes light of 32 bits for levels.
    @Test(
        .enabled(if: Corpus.isAvailable && hasVips, "needs the shared corpus, and the command vips with ImageMagick"),
        arguments: [
            "4x4_16bit_rgb.psd", "8bit-photoshop.psb", "color-balance.psd",
            "transparency-group.psd", "testPSD.psd", "hopper_merged.psd",
        ] + olderImageMagick)
    func photoshopFilesLookAsInImageMagick(_ name: String) throws {
        let path = try #require(Self.file(name))
        let scratch = FileManager.default.temporaryDirectory.appending(path: "vitrine-psd-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        let png = scratch.appending(path: "a.png").path, flat = scratch.appending(path: "b.png").path
        guard Self.run(["vips", "colourspace", path, scratch.appending(path: "c.v").path, "srgb"]) != nil,
            Self.run(["vips", "cast", scratch.appending(path: "c.v").path, png, "uchar"]) != nil
        else { return }
        _ = Self.run(["vips", "flatten", png, flat, "--background", "255 255 255"])
        let shown = FileManager.default.fileExists(atPath: flat) ? flat : png
        let (size, expected) = try pixels(shown)
        let (ownSize, decoded) = try pixels(path)
        var own = decoded
        for i in stride(from: 0, to: own.count, by: 4) {
            for c in 0..<3 { own[i + c] += 255 - own[i + 3] }
            own[i + 3] = 255
        }
        #expect(ownSize == size)
        let (mean, largest) = difference(own, expected)
        #expect(mean < 1, "\(name): mean \(mean), largest \(largest)")
    }

    /// Light as libvips has it, of which 1 is white. Brighter light is not compared. Without `ps2026_testcard_rgb.exr`,
    /// which libvips reads as black.
    @Test(
        .enabled(if: Corpus.isAvailable && hasVips, "needs the shared corpus, and the command vips"),
        arguments: [
            "rgb-gimp.exr", "image1.hdr", "old-rle.hdr", "rgb-landscape.hdr", "rgb-portrait.hdr", "WavyLinesSphere.exr",
            "t09.exr", "GrayRampsDiagonal.exr", "overexposed_gradient_-_data_window_equals_display_window.exr",
        ])
    func lightIsThatOfLibvips(_ name: String) throws {
        let path = try #require(Self.file(name))
        let scratch = FileManager.default.temporaryDirectory.appending(path: "vitrine-hdr-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: scratch) }
        func place(_ name: String) -> String { scratch.appending(path: name).path }
        if name.hasSuffix(".hdr") {
            guard Self.run(["vips", "radload", path, place("a.v")]) != nil,
                Self.run(["vips", "rad2float", place("a.v"), place("b.v")]) != nil
            else { return }
        } else {
            guard Self.run(["vips", "openexrload", path, place("b.v")]) != nil else { return }
        }
        guard Self.run(["vips", "cast", place("b.v"), place("c.v"), "float"]) != nil,
            Self.run(["vips", "rawsave", place("c.v"), place("d.raw")]) != nil,
            let bands = Self.run(["vipsheader", "-f", "bands", place("c.v")]).flatMap({
                Int(String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
            })
        else { return }
        let (size, own) = try pixels(path)
        let raw = try [UInt8](Data(contentsOf: URL(filePath: place("d.raw"))))
        let light = raw.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
        #expect(light.count == size.pixelCount * bands)
        guard light.count == size.pixelCount * bands else { return }
        func pixel(_ i: Int) -> [Float] { (0..<3).map { light[i * bands + (bands >= 3 ? $0 : 0)] } }
        var (largest, compared) = (0, 0)
        for i in 0..<size.pixelCount where own[4 * i + 3] == 255 {
            guard pixel(i).allSatisfy({ (0...0.97).contains($0) }) else { continue }
            compared += 1
            for c in 0..<3 {
                let value = pixel(i)[c]
                let encoded = value <= 0.0031308 ? value * 12.92 : 1.055 * Float(pow(Double(value), 1 / 2.4)) - 0.055
                largest = max(largest, abs(Int(own[4 * i + c]) - Int((encoded * 255).rounded())))
            }
        }
        #expect(largest <= 1 && compared > 0, "\(name): \(largest) in \(compared) pixels")
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func theCorpusShowsItsPictures() throws {
        let suffixes: Set = [
            "psd", "psb", "qoi", "ppm", "pfm", "tga", "hdr", "dds", "icns", "pcx", "ff", "exr", "fits",
        ]
        // Damaged on purpose, tables of compressed images, text as a name, kinds that are refused.
        let expected: Set = [
            "b5-attrib.tga", "b5-unused-cmap.tga", "fake_earth.hdr", "m13_gzip.fits", "psd-oob-write-y.psd",
            "rg32dx10.dds", "rgba16dx10.dds", "hopper_naxis_zero.fits", "negative_layer_count.psd", "basic-test.qoi",
            "testICNS.icns", "01r_00.pcx", "acid2.ff",
            "testICNS_basic.icns",  // JPEG 2000, which needs the worker
        ]
        var failed: [String] = []
        for path in Corpus.files(in: "anything/corpus") {
            let url = URL(filePath: path)
            guard suffixes.contains(url.pathExtension) else { continue }
            do {
                _ = try ImageDecoder(isolation: .inProcess).decode(.file(path), at: .fit(128))
            } catch {
                if !expected.contains(url.lastPathComponent) { failed.append("\(url.lastPathComponent): \(error)") }
            }
        }
        #expect(failed.isEmpty, "\(failed.joined(separator: "\n"))")
    }
}
