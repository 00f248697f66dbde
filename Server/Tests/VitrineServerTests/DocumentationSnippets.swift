// The snippets of README.md and of the guide to servers. Scripts/check-snippets compares them.
// They are compiled and not run.
import HTTPTypes
import Hummingbird
import NIOCore
import VitrineImaging
import VitrinePipeline
import VitrineServer

private func readme() async throws {
    var configuration = ServerConfiguration()
    configuration.localRoot = "../vitrine/Samples"
    let images = try ImageRoutes(configuration)

    let router = Router(context: ImageRequestContext.self)
    router.addImages(images, at: "/images")
    try await Application(router: router).runService()
}

private func presets() throws -> ImageRoutes {
    let card = ImageStyle("card", resizing: .crop(width: 300, height: 200), format: .webp(quality: 0.75))
    var configuration = ServerConfiguration()
    configuration.localRoot = "Pictures"
    try configuration.addPreset(card)
    let images = try ImageRoutes(configuration)
    return images
}

private func thumbnail(of name: String, width: Int) async throws -> [UInt8] { [] }

private func guide(_ router: Router<BasicRequestContext>) {
    router.get("thumbnails/{name}") { request, context in
        let bytes = try await thumbnail(of: context.parameters.require("name"), width: 256)
        return Response(
            status: .ok, headers: [.contentType: "image/webp"], body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}
