// An application with a page and the images for it: `swift run images-in-an-application DIRECTORY`, then open
// http://127.0.0.1:8090.
import Foundation
import Hummingbird
import VitrineServer

let directory = CommandLine.arguments.dropFirst().first ?? FileManager.default.currentDirectoryPath

// Both are secrets of a real application, and random.
let (key, salt) = (Array("a key".utf8), Array("a salt".utf8))
var configuration = ServerConfiguration()
configuration.localRoot = directory
configuration.keys = [key]
configuration.salts = [salt]
let images = try ImageRoutes(configuration)
let signer = URLSigner(key: key, salt: salt)

func thumbnail(_ name: String) -> String {
    let escaped = name.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? ""
    let path = "/rs:fill:200:200/plain/local:///\(escaped)"
    return "/images/\(signer.sign(path))\(path)"
}

let router = Router(context: ImageRequestContext.self)
router.get("/") { _, _ in
    let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    let pictures = names.filter { $0.hasSuffix(".jpg") || $0.hasSuffix(".png") }
    let page = pictures.map { "<img src=\"\(thumbnail($0))\" width=200 height=200 alt=\"\">" }.joined(separator: "\n")
    return Response(
        status: .ok, headers: [.contentType: "text/html; charset=utf-8"], body: .init(byteBuffer: .init(string: page)))
}
router.addImages(images, at: "/images")
let application = Application(router: router, configuration: .init(address: .hostname("127.0.0.1", port: 8090)))
try await application.runService()
