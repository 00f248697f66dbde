// Three placeholders of one image that fit beside its record in a database. A second argument is a directory for them.
import Foundation
import Vitrine

let samples = CommandLine.arguments.dropFirst().first ?? "Samples"
let directory = CommandLine.arguments.dropFirst(2).first

// When the image is added: make the placeholders from a small version, and store them with the other data.
let image = try await ImageDecoder().image(from: .file(samples + "/lake.jpg"), at: .fit(96))
let color = image.averageColor
let blurHash = try BlurHash.encode(image)
let thumbHash = ThumbHash.encode(image)
print("colour: 3 bytes,", color.red, color.green, color.blue)
print("BlurHash: \(blurHash.utf8.count) characters")
print("ThumbHash: \(thumbHash.count) bytes")

// When it is shown: the data give an image at once. A view scales it up, as this program does. A BlurHash and a colour
// have no proportions, so the record has the size as well.
let size = image.size
let placeholders = [
    "color": PixelImage(size: size, color: color),
    "blurhash": try BlurHash.decode(blurHash, size: PixelSize(width: 32, height: 21)),
    "thumbhash": try ThumbHash.decode(thumbHash),
]
for (name, placeholder) in placeholders.sorted(by: { $0.key < $1.key }) {
    print("\(name):", placeholder.size)
    guard let directory else { continue }
    let shown = try ImageResizer.stretch(width: 240, height: 160).resize(placeholder)
    try Data(shown.encoded(as: .png)).write(to: URL(filePath: directory).appending(path: name + ".png"))
}
