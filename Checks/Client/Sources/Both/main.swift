// A program that imports Vitrine beside a module with types of the same kind: no call names a module.
import Foundation
import OtherTypes
import Vitrine

let names = Cache<String, Image>()
names["lake"] = Image("lake")
let reports = ValueCache<String>(name: "both-\(ProcessInfo.processInfo.processIdentifier)")
let report = try await reports.value(forKey: "bremen") { "sunny" }
let lake = try await ImagePipeline.shared.image(
    for: ImageRequest(.file(CommandLine.arguments[1] + "/lake.jpg"), resizing: .fill(width: 80, height: 80)))
let edge: Color = .red
let mode: ContentMode = .fill
let priority: Priority = .high
var request = ImageRequest(.file("lake.jpg"), resizing: .fit(100), priority: .high)
request.processors = [.border(width: 2, color: .black)]
let tile = PixelImage(size: PixelSize(8), color: PixelColor(red: 200, green: 0, blue: 0))
let small = CacheFormat<PixelImage>("small") { image in try ImageResizer.fit(16).resize(image) }
precondition(report == "sunny" && min(lake.width, lake.height) == 80 && small.name == "small" && tile.width == 8)
try await reports.removeAll()
print("Vitrine and other types go together")
