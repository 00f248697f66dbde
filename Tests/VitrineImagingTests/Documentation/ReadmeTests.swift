import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// The snippets of the README and of the documentation, compiled and run.
@Suite struct ReadmeTests {
    private let photo = ImageInput.file(Samples.path("lake.jpg"))

    @Test func theShortestSampleWritesAThumbnail() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString).jpg").path
        defer { try? FileManager.default.removeItem(atPath: path) }

        let decoder = ImageDecoder()
        let thumbnail = try await decoder.image(from: photo, at: .fit(200))
        try AtomicFile.write(thumbnail.encoded(as: .jpeg(quality: 0.8)), to: path)

        let info = try await decoder.info(of: .file(path))
        #expect(info.format == .jpeg)
        #expect(info.size == PixelSize(width: 200, height: 134))
    }

    @Test func theAvatarSampleMakesARoundPictureAndItsPlaceholder() async throws {
        let decoder = ImageDecoder()
        let avatar = try await decoder.image(from: photo, at: .crop(width: 96, height: 96, gravity: .attention))
            .processed(by: [.circle(border: ImageBorder(width: 2, color: .white))])
        let placeholder = ThumbHash.encode(avatar)

        #expect(avatar.size == PixelSize(96))
        #expect(avatar[0, 0].alpha == 0)
        #expect(avatar[48, 48].alpha == 255)
        #expect((20...30).contains(placeholder.count))
    }

    @Test func theSizesOfTheArticleAreThoseAskedFor() async throws {
        let decoder = ImageDecoder()
        let fitted = try await decoder.image(from: photo, at: .fit(width: 320, height: 240))
        let square = try await decoder.image(from: photo, at: .crop(width: 200, height: 200))
        let whole = try await decoder.image(from: photo)
        #expect(fitted.size == PixelSize(width: 320, height: 214))
        #expect(square.size == PixelSize(200))
        #expect(whole.size == PixelSize(width: 1800, height: 1200))
    }
}
