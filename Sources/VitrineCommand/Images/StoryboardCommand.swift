import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine storyboard`: small frames of a video on one sheet, and their times as WebVTT.
struct StoryboardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storyboard",
        abstract: "Puts small frames of a video on one image, and writes their times as WebVTT.",
        discussion: """
            Players show the frames beside their seek bar. Only key frames are decoded.

              vitrine storyboard video.mp4 -o video.jpg
              vitrine storyboard video.mp4 --interval 5 --width 240 -o video.webp --vtt video.vtt
            """)

    @Argument(help: "A video; - is standard input.", completion: .file())
    var input: String

    @Option(
        name: [.customShort("o"), .long], help: "Image file to write. Its extension decides the format.",
        completion: .file(extensions: ["jpg", "jpeg", "png", "webp", "avif", "jxl"]))
    var output: String

    @Option(
        help: "WebVTT file to write. (default: the image file's name with the extension vtt, if no such file exists)",
        completion: .file(extensions: ["vtt"]))
    var vtt: String?

    @Option(help: ArgumentHelp("Seconds between frames. (default: for 100 frames at most)", valueName: "seconds"))
    var interval: Double?

    @Option(help: ArgumentHelp("Width of each frame, from 16 to 1024.", valueName: "pixels"))
    var width = 160

    @Option(help: "Frames per row, from 1 to 64.")
    var columns = 10

    @Option(help: "Quality from 0 to 100, or from 0 to 1.")
    var quality = QualityArgument(OutputFormat.defaultQuality)

    func validate() throws {
        guard (16...1024).contains(width) else { throw ValidationError("--width is a number from 16 to 1024") }
        guard (1...64).contains(columns) else { throw ValidationError("--columns is a number from 1 to 64") }
        if let interval, !(interval.isFinite && interval > 0) {
            throw ValidationError("--interval is a number of seconds above 0")
        }
        if format == nil { throw ValidationError("--output needs the extension jpg, png, webp, avif or jxl") }
    }

    /// The format of the output's extension; nil for those that cannot hold a sheet.
    private var format: FormatArgument? {
        let format = FormatArgument(path: output)
        return format == .gif ? nil : format
    }

    /// The path of the WebVTT file.
    private var cues: String {
        if let vtt { return vtt }
        let name = FilePath.name(of: output)
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name[...]
        return output.dropLast(name.count) + stem + ".vtt"
    }

    func run() async throws {
        for path in [output, cues] where Directory.isDirectory(path) {
            throw ValidationError("\(path) is a directory; name a file")
        }
        let item = try InputItem(word: input)
        guard case .input(let video) = item.content else {
            throw ValidationError("\(input) is an address; download the video first")
        }
        let inputs = InputFiles([item])
        for path in [output, cues] {
            if let reason = inputs.refusal(of: path, madeFrom: item.path) { throw ValidationError(reason) }
        }
        // Nobody named this file: it may hold subtitles.
        if vtt == nil, FilePath.exists(cues) {
            throw ValidationError("\(cues) exists; name the WebVTT file with --vtt, or remove it")
        }
        let files = try await BlockingExecutor.shared.run { [self] in Result { try make(video) } }.get()
        for (path, bytes) in files {
            do {
                try AtomicFile.write(bytes, to: path)
            } catch {
                Diagnostics.write("\(path): cannot write it: \(error.writeCause)")
                throw ExitCode(1)
            }
        }
    }

    /// The paths and bytes of both files.
    private func make(_ video: ImageInput) throws -> [(path: String, bytes: [UInt8])] {
        let board = try Storyboard(of: video, interval: interval, cellWidth: width, columns: columns)
        let image = try board.sheet.encoded(as: (format ?? .auto).outputFormat(quality: quality.value))
        // The name of a file is no URL: each byte that has a meaning there is encoded.
        let name = FilePath.name(of: output)
        let url = name.utf8.reduce(into: "") { text, byte in
            let plain = (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
            text += plain || [45, 46, 95, 126].contains(byte)
                ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
        return [(output, image), (cues, Array(board.webVTT(sheet: url).utf8))]
    }
}
