import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// Files of one colour: a name, then three bytes; always 30 by 20 pixels.
private struct ColorDecoder: Sendable {
    let format: ImageFormat
    var lies = false

    init(_ name: String) {
        format = ImageFormat(name, mediaTypes: ["application/x-\(name)"], fileExtensions: [name])
    }

    var file: [UInt8] { Array("\(format)\n".utf8) + [200, 100, 50] }

    var codec: Codec {
        Codec(format) { prefix in
            prefix.starts(with: Array("\(format)\n".utf8))
        } info: { _ in
            ImageInfo(format: format, storedSize: PixelSize(width: 30, height: 20))
        } decode: { source, request in
            let rgb = try source.bytes(at: source.count - 3, count: 3)
            let size = lies ? PixelSize(5_000) : request.info.storedSize
            return PixelImage(size: size, color: PixelColor(red: rgb[0], green: rgb[1], blue: rgb[2]))
        }
    }
}

/// Formats of registered codecs pass through every source of the pipeline.
@Suite struct RegisteredFormatTests {
    private func registered<R>(_ decoder: ColorDecoder, _ body: () async throws -> R) async throws -> R {
        try ImageDecoder.register(decoder.codec)
        defer { ImageDecoder.unregister(decoder.format) }
        return try await body()
    }

    @Test func filesAndBytesOfARegisteredFormatPassThroughThePipeline() async throws {
        let decoder = ColorDecoder("pipeline-test")
        let directory = try TemporaryDirectory()
        let path = directory.file("a.any")
        try Data(decoder.file).write(to: URL(filePath: path))
        let pipeline = ImagePipeline.stored(in: directory)
        await #expect(throws: ImagePipelineError.self) {
            try await pipeline.image(for: ImageRequest(ImageFileSource(path: path), resizing: .fit(15)))
        }
        try await registered(decoder) {
            let image = try await pipeline.image(for: ImageRequest(ImageFileSource(path: path), resizing: .fit(15)))
            let color = PixelColor(red: 200, green: 100, blue: 50)
            #expect(image == PixelImage(size: PixelSize(width: 15, height: 10), color: color))
            #expect(try FileKind(of: .file(path)) == .image(decoder.format))
            #expect(try FileKind(of: .file(path))?.mediaType == "application/x-pipeline-test")
            #expect(try SourceDetector.pageCount(of: .file(path)) == 1)
            let source = try SourceDetector.source(for: .bytes(decoder.file))
            let small = try await pipeline.image(for: ImageRequest(source, resizing: .fit(6)))
            #expect(small.size == PixelSize(width: 6, height: 4))
        }
    }

    @Test func decoderThatLiesFailsTheRequestWithATypedError() async throws {
        var decoder = ColorDecoder("liar-test")
        decoder.lies = true
        try await registered(decoder) {
            let pipeline = ImagePipeline.stored(in: try TemporaryDirectory())
            let error = await #expect(throws: ImagePipelineError.self) {
                try await pipeline.image(for: ImageRequest(ImageFileSource(.bytes(decoder.file)), resizing: .fit(15)))
            }
            guard case .underlying(_, ImageError.decoderFailed(_, decoder.format, _))? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func mediaTypeOfARegisteredFormatIsAcceptedOverHTTP() async throws {
        let decoder = ColorDecoder("http-test")
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Type: application/x-http-test"], body: decoder.file)]
        }
        func load() async throws -> PixelImage {
            let options = FetchOptions(loader: NetworkLoader(CurlLoader()))
            let source = URLImageSource(server.url("/a"), options: options)
            return try await ImagePipeline.stored(in: try TemporaryDirectory()).image(
                for: ImageRequest(source, resizing: .fit(15)))
        }
        await #expect(throws: ImagePipelineError.self) { try await load() }
        try await registered(decoder) {
            let size = try await load().size
            #expect(size == PixelSize(width: 15, height: 10))
        }
        #expect(server.requests.last?.header("Accept")?.contains("application/x-http-test") == true)
    }
}
