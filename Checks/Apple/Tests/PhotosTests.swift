import ApplePhotos
import Foundation
import Photos
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Photos of the library as sources.
struct PhotosTests {
    private func asset(_ identifier: String = "a", modified: Date? = nil, isThere: Bool = true) -> PHAsset {
        PHAsset(
            stub: identifier, width: 400, height: 200, modified: modified,
            picture: isThere
                ? { PixelImage(size: PixelSize(width: Int($0.width), height: Int($0.height)), color: .white).makeUIImage() }
                : nil)
    }

    private func service() -> ImagePipeline {
        var configuration = ImagePipeline.Configuration()
        configuration.usesDiskCache = false
        return ImagePipeline(configuration)
    }

    @Test(arguments: [
        (ImageResizer.Mode.fit, PixelSize(width: 100, height: 50)), (.stretch, PixelSize(100)),
        (.crop(.center), PixelSize(100)), (.fill, PixelSize(width: 200, height: 100)),
    ])
    func picturesAreBroughtToTheBox(_ mode: ImageResizer.Mode, _ size: PixelSize) async throws {
        let image = try await service().image(for: ImageRequest(PhotoAssetSource(asset()), resizing: ImageResizer(size: PixelSize(100), mode: mode)))
        #expect(image.size == size)
    }

    @Test func aPictureThatIsNotThereSaysWhy() async throws {
        let source = PhotoAssetSource(asset(isThere: false))
        let error = await #expect(throws: ImagePipelineError.self) {
            try await service().image(for: ImageRequest(source, resizing: .fit(100)))
        }
        guard case .unreadable(let name, let reason) = error else {
            Issue.record("the error is \(String(describing: error))")
            return
        }
        #expect(name == "a" && reason.contains("StubPhotosError"))
    }

    @Test func anEditedPhotoIsAnother() throws {
        let (old, new) = (Date(timeIntervalSinceReferenceDate: 1), Date(timeIntervalSinceReferenceDate: 2))
        let source = PhotoAssetSource(asset(modified: old))
        #expect(source.knownIdentity == (try source.identity()))
        #expect(source.knownIdentity == PhotoAssetSource(asset(modified: old)).knownIdentity)
        #expect(source.knownIdentity != PhotoAssetSource(asset(modified: new)).knownIdentity)
        #expect(source.knownIdentity != PhotoAssetSource(asset("b", modified: old)).knownIdentity)
    }
}
