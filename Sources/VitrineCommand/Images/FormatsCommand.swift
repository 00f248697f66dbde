import ArgumentParser
import VitrineImaging
import VitrinePipeline
import VitrineWebPages

/// `vitrine formats`: the kinds of files that can be shown, and how each is read on this machine.
struct FormatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "formats",
        abstract: "Lists the kinds of files that can be shown, and how each is read.",
        discussion: """
            A kind is read by a decoder of vitrine itself, by a library, or by an image that files of the kind hold \
            of themselves. The helper programs are looked up as for any other command.

              vitrine formats
              vitrine formats --json | jq -r 'select(.missing != []) | .name'
            """)

    @Flag(help: "Print one JSON object per kind instead of text.")
    var json = false

    func run() {
        for kind in FormatReport.all {
            if json {
                Output.json(kind)
            } else {
                Output.entry(kind.label, kind.text, at: 46)
            }
        }
    }
}

/// One kind of files: its names, and how it is read.
private struct FormatReport: Encodable {
    /// The groups of the kinds, in their order.
    enum Group: String, Encodable {
        case image, raw, document, video, recording, text
        case webPage = "web page"
    }

    /// One way to read a kind, by a decoder in one process.
    struct Reader: Encodable, Equatable {
        /// `decoder`, `library`, `embedded image`, `waveform` or `browser`.
        var method: String
        /// The library; null for the others.
        var library: String?
        /// The program that decodes.
        var process: String
        /// The option without which it is not used; null if it needs none.
        var option: String?

        var line: String {
            var method = library ?? (method == "decoder" ? "own decoder" : method)
            if self.method == "waveform" { method = "waveform by \(method)" }
            let place = process == "vitrine" ? method : "\(method) in \(process)"
            return option.map { "\(place) with \($0)" } ?? place
        }

        private enum CodingKeys: String, CodingKey {
            case method, library, process, option
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(method, forKey: .method)
            try container.encode(library, forKey: .library)
            try container.encode(process, forKey: .process)
            try container.encode(option, forKey: .option)
        }
    }

    let name: String
    /// The name for people.
    let title: String
    let group: Group
    let mediaTypes: [String]
    let extensions: [String]
    let readers: [Reader]
    /// Whether `vitrine thumbnail` writes the format.
    let isOutput: Bool
    /// The programs that are needed and not installed.
    let missing: [String]

    init(
        _ name: String, title: String, in group: Group, mediaTypes: [String], extensions: [String], readers: [Reader]
    ) {
        (self.name, self.title, self.group) = (name, title, group)
        (self.mediaTypes, self.extensions) = (mediaTypes, extensions)
        // A library may have a decoder for some files of a format, and another one for the rest.
        self.readers = readers.indices.filter { !readers[..<$0].contains(readers[$0]) }.map { readers[$0] }
        isOutput = FormatArgument.allCases.contains { $0 != .auto && $0.rawValue == name }
        var missing: [String] = []
        for program in readers.filter({ $0.option == nil }).map(\.process) where program != "vitrine" {
            if !missing.contains(program), !Self.isInstalled(program) { missing.append(program) }
        }
        self.missing = missing
    }

    /// The name and the extensions, in columns of a terminal.
    var label: String { name.padded(to: 15) + " " + extensions.map { "." + $0 }.joined(separator: " ") }

    /// The ways to read the kind.
    var text: String {
        let text = readers.map(\.line).joined(separator: ", ")
        return missing.isEmpty ? text : text + "; missing: " + missing.joined(separator: ", ")
    }

    // MARK: Kinds

    /// Images, files that hold images, documents, videos and web pages, in this order.
    static var all: [FormatReport] {
        Codecs.standard.formats.map(image)
            + [
                FormatReport(
                    "pdf", title: "PDF", in: .document, mediaTypes: ["application/pdf"], extensions: ["pdf"],
                    readers: [Reader(method: "library", library: "poppler", process: "vitrine-pdf")])
            ]
            + MediaFormat.allCases.map(media)
            + [
                FormatReport(
                    "font", title: "fonts", in: .text,
                    mediaTypes: ["font/ttf", "font/otf", "font/collection", "font/woff", "font/woff2"],
                    extensions: SourceContent.Kind.font.fileExtensions,
                    readers: [Reader(method: "library", library: "freetype", process: "vitrine-text")]),
                FormatReport(
                    "text", title: "text, source code, Markdown", in: .text,
                    mediaTypes: ["text/plain", "text/markdown"], extensions: ["txt", "md"],
                    readers: [Reader(method: "library", library: "pango", process: "vitrine-text")]),
                FormatReport(
                    "web-page", title: "web pages", in: .webPage, mediaTypes: ["text/html"], extensions: [],
                    readers: [Reader(method: "browser", process: "chromium")]),
            ]
    }

    private static func isInstalled(_ program: String) -> Bool {
        program == "chromium"
            ? WebPageSource.isAvailable : SourceDetector.helpers.contains { $0.program == program && $0.isAvailable }
    }

    private static func image(_ format: ImageFormat) -> FormatReport {
        var readers: [Reader] = []
        // This program may be its own worker.
        let isIsolated = ImageDecoder().isIsolated(format) && WorkerPool.own == nil
        let process = isIsolated ? "vitrine-worker" : "vitrine"
        if format.holdsPictures {
            // Names in 7z are compressed, and pages in RAR mostly.
            if format != .comic7z { readers.append(Reader(method: "embedded image", process: process)) }
            if format == .comicRAR || format == .comic7z {
                readers.append(Reader(method: "library", library: "libarchive", process: "vitrine-worker"))
            }
            if RawDevelopment.develops(format) {
                readers.append(
                    Reader(method: "library", library: "LibRaw", process: "vitrine-worker", option: "--develop-raw"))
            }
        } else {
            for decoder in Codecs.standard.decoders(for: format) {
                readers.append(
                    Reader(
                        method: decoder.library == nil ? "decoder" : "library", library: decoder.library,
                        process: process))
            }
            if let library = workerLibraries[format] {
                readers.append(Reader(method: "library", library: library, process: "vitrine-worker"))
            }
        }
        return FormatReport(
            format.rawValue, title: FormatNames.name(format),
            in: !format.holdsPictures ? .image : RawDevelopment.develops(format) ? .raw : .document,
            mediaTypes: format.mediaTypes, extensions: format.fileExtensions, readers: readers)
    }

    /// The libraries of `vitrine-worker` for formats without a decoder in this process, or with a partial one.
    private static let workerLibraries: [ImageFormat: String] = [
        .tiff: "libvips", .heic: "libheif", .avif: "libheif", .jp2: "OpenJPEG", .svg: "libvips", .jxl: "libjxl",
        .icns: "OpenJPEG",
    ]

    private static func media(_ media: MediaFormat) -> FormatReport {
        var name = media.rawValue.split(separator: "/").last.map(String.init) ?? media.rawValue
        if name.hasPrefix("x-") { name.removeFirst(2) }
        let cover = Reader(method: "embedded image", process: "vitrine")
        return FormatReport(
            media.isAudio ? "\(name)-audio" : name, title: FormatNames.name(media),
            in: media.isAudio ? .recording : .video, mediaTypes: [media.rawValue], extensions: media.fileExtensions,
            readers: (media.isAudio ? [cover] : []) + [
                Reader(method: "library", library: "libavcodec", process: "vitrine-video")
            ]
                + (media.isAudio
                    ? [
                        Reader(
                            method: "waveform", library: "libavcodec", process: "vitrine-video", option: "--waveform")
                    ] : []))
    }
}
