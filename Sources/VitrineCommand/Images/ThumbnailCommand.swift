import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine thumbnail`: one smaller image per input, page and size.
struct ThumbnailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumbnail",
        abstract: "Makes a smaller image of each image, PDF page, video or web page.",
        discussion: """
            Several inputs run in parallel. One failed input does not stop the others.

              vitrine thumbnail ~/Pictures/*.jpg --size 320 --format webp -o thumbnails/
              vitrine thumbnail manual.pdf --pages 1-3 --sizes 128,512 -o pages/
              vitrine thumbnail video.mp4 --time 12.5 --exact -o frame.jpg
              vitrine thumbnail video.mp4 moon.gif --animated --size 320 -o previews/

            The user's cache keeps thumbnails, and a second run takes them from there. Lossless outputs, qualities \
            above 0.9, --keep-metadata, --round, --background, web pages and encrypted documents bypass the cache.

            An output never replaces an input. The file that -o names is replaced. In a directory, only a file that an \
            earlier run can have made is replaced: of the same format, no larger, and without metadata. Inputs whose \
            outputs would have one name give them their whole names, as in lake.pdf.jpg.
            """)

    @Argument(help: "Images, PDFs, videos, directories or web addresses; - is standard input.", completion: .file())
    var inputs: [String]

    @OptionGroup(title: "Size") var geometry: GeometryOptions

    @Option(help: "Part that a crop keeps: center, top, bottom-right and so on, attention, or X,Y from 0 to 1.")
    var gravity = GravityArgument(.center)

    @OptionGroup(title: "Pages, videos, web pages") var parts: PartOptions
    @OptionGroup(title: "Pages, videos, web pages") var web: WebPageOptions

    @Option(
        name: [.customShort("o"), .long],
        help: "File for one input, directory for several, - for standard output. (default: NAME-thumbnail.EXT here)",
        completion: .file(), transform: OutputArgument.normalized)
    var output: String?

    @Flag(
        help: """
            Replace files in the directory of -o that no earlier run can have made. Inputs are never replaced.
            """)
    var overwrite = false

    @Option(
        help: """
            Format of the output; auto is PNG for transparency, else JPEG. (default: by the output's extension, or \
            auto)
            """)
    var format: FormatArgument?

    @Option(
        help: ArgumentHelp(
            "Quality of lossy formats, from 0 (smallest file) to 100 (best), or from 0 to 1. (default: 80, or 60 with --animated)",
            valueName: "quality"))
    var quality: QualityArgument?

    @OptionGroup(title: "Animated previews") var preview: PreviewOptions

    @Flag(help: "Write progressive JPEG and interlaced PNG.")
    var progressive = false

    @Flag(help: "Copy Exif and XMP, without embedded previews. Otherwise the output has no metadata.")
    var keepMetadata = false

    @Option(help: ArgumentHelp("Radius of rounded corners, in pixels of the output. (default: 0)", valueName: "pixels"))
    var round: Double?

    @Option(help: ArgumentHelp("CSS color behind transparent pixels. (default: none)", valueName: "color"))
    var background: ColorArgument?

    @Flag(help: "Use the preview that is stored in the file if it is large enough. This is fast.")
    var embeddedPreview = false

    @Flag(help: "Use the readable part of files that end early. Otherwise they fail.")
    var allowPartial = false

    @Flag(help: "Use the files in directories, and keep their directories below -o.")
    var recursive = false

    @OptionGroup var caches: CacheOptions
    @OptionGroup var decoder: DecoderOptions
    @OptionGroup var progress: ProgressOption

    @Flag(help: "Print one JSON object per output instead of text.")
    var json = false

    func validate() throws {
        if let round {
            guard round >= 0, round.isFinite else { throw ValidationError("--round is a radius in pixels, 0 or more") }
        }
        if recursive, output == nil || output == "-" {
            throw ValidationError("--recursive needs -o with a directory for the results")
        }
        _ = try geometry.resizers()
        if preview.animated { try validatePreview() }
    }

    /// Rejects options that a preview does not have.
    private func validatePreview() throws {
        let others = [
            (progressive, "--progressive"), (keepMetadata, "--keep-metadata"), (round != nil, "--round"),
            (background != nil, "--background"), (embeddedPreview, "--embedded-preview"),
            (allowPartial, "--allow-partial"), (caches.desktop, "--desktop"), (parts.page != nil, "--page"),
            (parts.pages != nil, "--pages"), (parts.time != nil, "--time"), (parts.exact, "--exact"),
        ]
        if let other = others.first(where: \.0) { throw ValidationError("use either --animated or \(other.1)") }
        let named = format ?? output.flatMap { Directory.isDirectory($0) ? nil : FormatArgument(path: $0) } ?? .auto
        guard [.webp, .avif, .auto].contains(named) else {
            throw ValidationError("a clip is webp or avif, not \(named.rawValue)")
        }
    }

    /// The extensions that results without a name of their own can get.
    private var extensions: [String] {
        let formats: [ImageFormat] =
            switch format ?? .auto {
            case .jpeg: [.jpeg]
            case .png: [.png]
            case .webp: [.webp]
            case .avif: [.avif]
            case .jxl: [.jxl]
            case .gif: [.gif]
            case .auto: preview.animated ? [.webp] : [.jpeg, .png]
            }
        return formats.map(\.fileExtension)
    }

    func run() async throws {
        var expansion = InputExpansion(isRecursive: recursive, pages: parts.pages, password: parts.password)
        if let output { expansion.excluded = [output] }
        let items = await BlockingExecutor.shared.run { [expansion, inputs] in expansion.items(inputs) }
        let found = items.compactMap { try? $0.get() }
        let plan = try OutputPlan(
            items: found, sizes: geometry.boxes.map(\.description), extensions: extensions,
            isFormatGiven: format != nil, output: output,
            isOne: inputs.count == 1 && !Directory.isDirectory(inputs[0]))
        let service = caches.service()
        let files = OutputFiles(inputs: InputFiles(found), replacesAll: overwrite)
        let job = try ThumbnailJob(self, service, files: files)
        var targets = plan.targets.makeIterator()
        let work = items.map { item in ((try? item.get()).flatMap { _ in targets.next() } ?? [], item) }
        var failures = 0
        let bar = ProgressBar(total: work.count, isQuiet: progress.quiet)
        let width = Batch.width(pixels: geometry.boxes.map(\.pixels).max() ?? 0)
        // Another image is decoded while one goes from a helper or decoder to the encoder.
        if width > ProcessorCount.active { service.concurrency += 1 }
        await Batch.run(work, width: width, progress: bar, name: { $0.1.name }) { _, work in
            switch work.1 {
            case .success(let item): await job.run(item, work.0)
            case .failure(let failure): [ThumbnailReport(failure)]
            }
        } report: { reports in
            for report in reports {
                if report.error != nil { failures += 1 }
                if progress.quiet, !json, report.error == nil { continue }
                report.print(asJSON: json, toStandardError: output == "-")
            }
        }
        if !caches.noCache { try? await service.cache.flush() }
        if failures > 0 { throw ExitCode(1) }
    }
}

/// The options of clips.
struct PreviewOptions: ParsableArguments {
    @Flag(
        help: "Write a short animation of each animation or video: WebP, or AVIF by --format or the output's extension.")
    var animated = false

    @Option(help: ArgumentHelp("Length of a clip.", valueName: "seconds"))
    var duration = 3.0

    @Option(help: ArgumentHelp("Frames a second of a clip, at most.", valueName: "rate"))
    var fps = 10.0

    @Flag(help: "Show parts from all over a video instead of one that begins at its poster.")
    var spread = false

    func validate() throws {
        guard duration > 0, fps > 0, (duration * fps).isFinite, duration * fps <= 300 else {
            throw ValidationError("--duration and --fps are numbers above 0, and give at most 300 frames")
        }
    }
}
