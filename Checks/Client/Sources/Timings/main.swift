// Prints the processor time of decoding, resizing and encoding, in microseconds: one line for each operation. Its
// argument is a JPEG file. `compare-debug` runs it as a debug and as a release build.
import Foundation
import VitrineImaging

let path = CommandLine.arguments.dropFirst().first ?? "../../Samples/lake.jpg"

/// The processor time of this process so far, in microseconds.
func processorTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}

/// Calls a body twice and prints the time of the second call, which gets its memory from the first.
func measure<Value>(_ name: String, _ body: () throws -> Value) throws -> Value {
    _ = try body()
    let begin = processorTime()
    let value = try body()
    print(name, processorTime() - begin, separator: "\t")
    return value
}

let decoder = ImageDecoder(isolation: .inProcess)
// The first call loads libraries.
_ = try decoder.decode(.file(path), at: .fit(32))
for side in [400, 1600] {
    _ = try measure("decode JPEG at \(side)") { try decoder.decode(.file(path), at: .fit(side)) }
}
let whole = try measure("decode JPEG") { try decoder.decode(.file(path)) }
let picture = try measure("resize to 1600") { try ImageResizer.fit(1600).resize(whole) }
_ = try measure("crop to 800 x 800 by attention") {
    try ImageResizer.crop(width: 800, height: 800, gravity: .attention).resize(whole)
}
let formats: [(String, OutputFormat)] = [
    ("JPEG", .jpeg(quality: 0.8)), ("PNG", .png), ("WebP", .webp(quality: 0.8)), ("GIF", .gif),
    ("AVIF", .avif(quality: 0.6)),
]
for (name, format) in formats {
    let bytes = try measure("encode \(name)") { try picture.encoded(as: format) }
    _ = try measure("decode \(name) at 400") { try decoder.decode(.bytes(bytes, name: name), at: .fit(400)) }
}
let processors: [(String, ImageProcessor)] = [
    ("rotate", .rotate(degrees: 30)), ("rotate by a quarter", .rotate(degrees: 90)), ("blur", .blur(radius: 8)),
    ("sharpen", .sharpen(amount: 1, radius: 1)), ("round corners", .roundCorners(40)), ("trim", .trim(tolerance: 10)),
]
for (name, processor) in processors {
    _ = try measure(name) { try picture.processed(by: [processor]) }
}
_ = try measure("dominant colours") { picture.dominantColors(count: 5) }
_ = try measure("ThumbHash") { ThumbHash.encode(picture) }
_ = try measure("BlurHash") { try BlurHash.encode(picture, x: 4, y: 3) }
