import Foundation
import VitrineImaging
import VitrinePipeline

/// Turns a word of the command line into an input: `-` is standard input, `file://…` and anything else a path.
enum InputArgument {
    static func read(_ word: String) throws -> ImageInput {
        guard word == "-" else { return .file(FileURI.path(of: word) ?? word) }
        let limit = ImageLimits.standard.maximumInputBytes
        var bytes: [UInt8] = []
        while bytes.count <= limit, let part = try FileHandle.standardInput.read(upToCount: 1 << 16), !part.isEmpty {
            bytes += part
        }
        return .bytes(bytes, name: "standard input")
    }

    /// Whether the word is the address of a web page.
    static func isWebAddress(_ word: String) -> Bool {
        let start = word.prefix(8).lowercased()
        return start.hasPrefix("http://") || start.hasPrefix("https://")
    }
}
