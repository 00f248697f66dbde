import CGTK
import Testing
import VitrineGTK
import VitrineImaging

extension GTKTests {
    @Suite("Textures") @MainActor struct Textures {
        /// The pixels in GDK's format: premultiplied, blue first.
        private func download(_ texture: Texture) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: texture.size.width * texture.size.height * 4)
            gdk_texture_download(texture.pointer, &bytes, gsize(texture.size.width * 4))
            return bytes
        }

        @Test func showThePixelsOfAnImage() {
            let texture = Texture(PixelImage.plain(3, 2, PixelColor(red: 10, green: 20, blue: 30)))
            #expect(texture.size == PixelSize(width: 3, height: 2))
            #expect(download(texture) == Array(repeating: [30, 20, 10, 255], count: 6).flatMap { $0 })
        }

        @Test func canBePacked() {
            let image = PixelImage(width: 2, height: 2, alpha: .opaque) { pixels in
                for index in 0..<16 { pixels[index] = index % 4 == 3 ? 255 : UInt8(index) }
            }
            let packed = download(Texture(image, memory: .packed))
            #expect(packed == [2, 1, 0, 255, 6, 5, 4, 255, 10, 9, 8, 255, 14, 13, 12, 255])
            #expect(packed == download(Texture(image)))
        }

        @Test func knowWhetherColoursAreMultiplied() {
            let straight = PixelImage.plain(1, 1, PixelColor(red: 200, green: 100, blue: 50, alpha: 128))
            let premultiplied = PixelImage(width: 1, height: 1, alpha: .premultiplied) { pixels in
                for (index, value) in [100, 50, 25, 128].enumerated() { pixels[index] = UInt8(value) }
            }
            #expect(download(Texture(premultiplied)) == [25, 50, 100, 128])
            for (one, other) in zip(download(Texture(straight)), [25, 50, 100, 128] as [UInt8]) {
                #expect(abs(Int(one) - Int(other)) <= 1)
            }
        }

        @Test func shareTheMemoryOfTheImage() {
            let image = PixelImage.plain(64, 64, PixelColor(red: 1, green: 2, blue: 3))
            weak let pixels = image.sharedPixels
            var texture: Texture? = Texture(image)
            withExtendedLifetime(image) { #expect(texture?.size == image.size && pixels === image.sharedPixels) }
            texture = nil
        }

        @Test func stayAsTheyWereWhenTheImageIsChanged() {
            var image = PixelImage.plain(2, 2, PixelColor(red: 1, green: 2, blue: 3))
            let texture = Texture(image)
            _ = image.withUnsafeMutableBytes { $0.initializeMemory(as: UInt8.self, repeating: 255) }
            #expect(download(texture).prefix(4) == [3, 2, 1, 255])
            #expect(image[0, 0] == PixelColor(red: 255, green: 255, blue: 255))
        }

        @Test func letGoOfTheMemory() async throws {
            final class Watch { weak var pixels: PixelStorage? }
            let watch = Watch()
            do {
                let image = PixelImage.plain(32, 32, .clear)
                watch.pixels = image.sharedPixels
                _ = Texture(image)
            }
            try await wait(for: "the memory to be given back") { watch.pixels == nil }
        }
    }
}
