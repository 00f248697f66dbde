// Accepts images and serves their thumbnails: `swift run uploads-in-an-application DIRECTORY`, then
//     curl -i --data-binary @lake.jpg http://127.0.0.1:8091/images
import Hummingbird
import VitrineImaging
import VitrineStores

Isolation.standard = .always
let store = ImageStore(.root(CommandLine.arguments.dropFirst().first ?? "."), path: ["images"])
let router = Router()

router.post("images") { request, _ in
    let bytes = Array(buffer: try await request.body.collect(upTo: 20 << 20))
    do {
        let info = try ImageInfo(of: .bytes(bytes))
        guard info.size.width <= 8000, info.size.height <= 8000 else { throw HTTPError(.contentTooLarge) }
        let name = try await store.save(bytes)
        return Response(status: .created, headers: [.location: "/thumbnails/\(name)"])
    } catch is ImageError, StoreError.image {
        throw HTTPError(.unprocessableContent, message: "this is not an image that can be shown")
    }
}

router.get("thumbnails/{name}") { _, context in
    do {
        let bytes = try await store.load(context.parameters.require("name"), as: .thumbnail)
        let type = try ImageInfo(of: .bytes(bytes)).format.mediaType
        return Response(status: .ok, headers: [.contentType: type], body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
    } catch StoreError.notFound, StoreError.invalidName {
        throw HTTPError(.notFound)
    }
}

try await Application(router: router, configuration: .init(address: .hostname("127.0.0.1", port: 8091))).runService()
