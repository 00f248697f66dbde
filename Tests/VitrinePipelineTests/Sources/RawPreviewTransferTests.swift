import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// Raw files of cameras by URL: two range requests bring the preview, and the sensor data never travels.
@Suite struct RawPreviewTransferTests {
    /// A server with one file, which answers ranges unless told otherwise.
    private final class Site: Sendable {
        let directory: TemporaryDirectory
        let server: LoopbackServer
        let pipeline: ImagePipeline
        let options: FetchOptions

        /// - Parameters:
        ///   - ranges: Whether the server knows ranges.
        ///   - tag: The entity tag of the answer to a request with this number, from 0.
        init(
            _ file: [UInt8], ranges: Bool = true, tag: @escaping @Sendable (Int) -> String? = { _ in "\"1\"" }
        ) throws {
            directory = try TemporaryDirectory()
            let count = Locked(0)
            server = try LoopbackServer { request in
                let number = count.withLock { count in
                    defer { count += 1 }
                    return count
                }
                let tag = tag(number)
                var fields = ["Content-Type: image/x-fuji-raf", "Cache-Control: max-age=60"]
                if let tag { fields.append("ETag: \(tag)") }
                let bounds = (request.header("Range") ?? "").dropFirst(6).split(separator: "-").compactMap { Int($0) }
                let isCurrent = request.header("If-Range").map { $0 == tag } ?? true
                guard ranges, bounds.count == 2, isCurrent else { return [.reply(200, fields, body: file)] }
                let range = bounds[0]..<min(bounds[1] + 1, file.count)
                fields.append("Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.count)")
                return [.reply(206, fields, body: Array(file[range]))]
            }
            pipeline = .stored(in: directory)
            var loading = NetworkLoader.Configuration()
            loading.retries.limit = 0
            var options = FetchOptions(loader: NetworkLoader(CurlLoader(), loading))
            options.partialDirectory = directory.file("partial")
            self.options = options
        }

        func image(_ side: Int, at target: String = "/a.RAF") async throws -> PixelImage {
            let source = URLImageSource(server.url(target), options: options)
            return try await pipeline.image(for: ImageRequest(source, resizing: .fit(side)))
        }

        var ranges: [String?] { server.requests.map { $0.header("Range") } }
    }

    private static let offset = 100_000

    /// A file with a JPEG behind the first 64 KiB and three megabytes behind that.
    private func raf(_ picture: [UInt8]) -> [UInt8] {
        func word(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        var file = Array("FUJIFILMCCD-RAW 0201FF383501".utf8)
        file += [UInt8](repeating: 0, count: 84 - file.count) + word(Self.offset) + word(picture.count)
        file += [UInt8](repeating: 0, count: Self.offset - file.count)
        return file + picture + [UInt8](repeating: 9, count: 3_000_000)
    }

    @Test func twoRangesBringThePreviewAndServeAllSizes() async throws {
        let picture = try Samples.bytes("lake.jpg")
        let site = try Site(raf(picture))
        #expect(try await site.image(60).size == PixelSize(width: 60, height: 40))
        let second = "bytes=\(Self.offset)-\(Self.offset + picture.count - 1)"
        #expect(site.ranges == ["bytes=0-65535", second])
        #expect(site.server.requests[1].header("If-Range") == "\"1\"")
        #expect(try await site.image(300).size == PixelSize(width: 300, height: 200))
        #expect(site.server.requests.count == 2)
    }

    @Test func previewThatIsPartOfTheBeginningTakesOneRequest() async throws {
        let picture = try Samples.bytes("lake-grey.jpg")
        var file = raf(picture)
        file.replaceSubrange(1_000..<(1_000 + picture.count), with: picture)
        file.replaceSubrange(84..<88, with: [0, 0, 0x03, 0xE8])
        let site = try Site(file)
        #expect(try await site.image(60).width == 60)
        #expect(site.ranges == ["bytes=0-65535"])
    }

    @Test func containersOrientationIsKept() async throws {
        // A Sony file: the orientation stands in the directory, the preview has none.
        let picture = try Samples.bytes("lake.jpg")
        func u16(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8 & 255)] }
        func u32(_ value: Int) -> [UInt8] { u16(value & 0xFFFF) + u16(value >> 16) }
        func field(_ tag: Int, _ type: Int, _ value: Int) -> [UInt8] { u16(tag) + u16(type) + u32(1) + u32(value) }
        var file = Array("II*\0".utf8) + u32(8) + u16(5)
        file += field(0xFE, 4, 1) + u16(0x10F) + u16(2) + u32(4) + Array("SON\0".utf8)
        file += field(0x112, 3, 6) + field(0x201, 4, Self.offset) + field(0x202, 4, picture.count) + u32(0)
        file += [UInt8](repeating: 0, count: Self.offset - file.count) + picture
        let site = try Site(file + [UInt8](repeating: 1, count: 3_000_000))
        #expect(try await site.image(60, at: "/a.arw").size == PixelSize(width: 40, height: 60))
        #expect(site.ranges.count == 2)
    }

    @Test func serverWithoutRangesSendsTheFileOnce() async throws {
        let site = try Site(raf(Samples.bytes("lake.jpg")), ranges: false)
        #expect(try await site.image(60).width == 60)
        #expect(site.server.requests.count == 1)
    }

    @Test func partsOfTwoVersionsAreNeverCombined() async throws {
        let site = try Site(raf(Samples.bytes("lake.jpg")), tag: { "\"\($0)\"" })
        #expect(try await site.image(60).width == 60)
        // The second part is refused, and the whole file follows.
        #expect(site.server.requests.count == 3 && site.ranges[2] == nil)
        let unnamed = try Site(raf(Samples.bytes("lake.jpg")), tag: { _ in nil })
        #expect(try await unnamed.image(60).width == 60)
        #expect(unnamed.server.requests.count == 2 && unnamed.ranges[1] == nil)
    }

    @Test func bytesThatAreNoPreviewLeadToTheWholeFile() async throws {
        let site = try Site(raf([UInt8](repeating: 5, count: 10_000)))
        await #expect(throws: (any Error).self) { try await site.image(60) }
        #expect(site.ranges.last == .some(nil))
        // Another name asks for the file as ever.
        let other = try Site(raf(Samples.bytes("lake.jpg")))
        #expect(try await other.image(60, at: "/a").width == 60)
        #expect(other.ranges == [nil])
    }
}
