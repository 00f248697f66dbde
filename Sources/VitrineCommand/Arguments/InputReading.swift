import Foundation
import VitrineImaging

/// Turns a word of the command line into an input: `-` is standard input, anything else a path.
enum InputArgument {
    static func read(_ word: String) throws -> ImageInput {
        guard word == "-" else { return .file(word) }
        let limit = ImageLimits.standard.maximumInputBytes
        var bytes: [UInt8] = []
        while bytes.count <= limit, let part = try FileHandle.standardInput.read(upToCount: 1 << 16), !part.isEmpty {
            bytes += part
        }
        return .bytes(bytes, name: "standard input")
    }
}
