import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// `vitrine thumbnail`: one smaller picture per input, page and size.
struct ThumbnailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumbnail",
        abstract: "Makes a smaller picture of each picture, page, film or web page.",
        discussion: """
            What a file is, is told by its content. Several inputs run in parallel; one bad input does not stop the \
            others. An existing output is replaced only by a finished one. Thumbnails are kept in the user's cache, \
            and taken from there the next time, unless they are written without loss, with a quality above 0.9, with \
            metadata, or changed by other options.
            """)

    @Argument(help: "Pictures, PDFs, films, directories, http addresses; - is standard input.")
    var inputs: [String]

    @OptionGroup var geometry: GeometryOptions
    @OptionGroup var parts: PartOptions
    @OptionGroup var web: WebPageOptions
    @OptionGroup var caches: CacheOptions
    @OptionGroup var isolation: IsolationOption

    @Flag(help: "Take directories apart, into the same directories below -o.")
    var recursive = false

    @Option(help: "Where a crop is cut: center, top, left, bottom-right …, attention, or X,Y from 0 to 1.")
    var gravity = GravityArgument(.center)

    @Option(help: "Format of the result; auto is PNG when there is transparency, else JPEG.")
    var format: FormatArgument?

    @Option(help: "From 0 (smallest) to 1 (best).")
    var quality = 0.8

    @Option(help: "Radius of rounded corners, in pixels of the result.")
    var round: Double?

    @Option(help: "CSS colour to put behind transparent pixels.")
    var background: ColorArgument?

    @Flag(help: "Allow the small picture stored in the file to stand in, if it is large enough.")
    var embeddedPreview = false

    @Flag(help: "Make a picture of what is there when a file ends early.")
    var allowPartial = false

    @Flag(help: "Write JPEG in several scans, PNG interlaced.")
    var progressive = false

    @Flag(help: "Carry Exif and XMP over (upright, without the embedded preview). Without it all metadata is dropped.")
    var keepMetadata = false

    @Option(name: [.customShort("o"), .long], help: "File for one input, directory for several, - for standard output.")
    var output: String?

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    func validate() throws {
        guard !quality.isNaN else { throw ValidationError("--quality is not a number") }
        guard (0...1).contains(quality) else { throw ValidationError("--quality goes from 0 to 1") }
        if let round {
            guard round >= 0, round.isFinite else { throw ValidationError("--round is a radius in pixels") }
        }
        if recursive, output == nil || output == "-" {
            throw ValidationError("--recursive needs -o with the directory for the results")
        }
        _ = try geometry.resizers()
    }

    func run() async throws {
        var expansion = InputExpansion(isRecursive: recursive, pages: parts.pages, password: parts.password)
        if let output { expansion.excluded = [output] }
        let items = await BlockingExecutor.shared.run { [expansion, inputs] in expansion.items(inputs) }
        let plan = try OutputPlan(
            items: items.compactMap { try? $0.get() }, sizes: geometry.boxes.map(\.description), output: output,
            isOne: inputs.count == 1 && !Directory.isDirectory(inputs[0]))
        let service = caches.service()
        let job = try ThumbnailJob(self, service)
        var targets = plan.targets.makeIterator()
        let work = items.map { item in ((try? item.get()).flatMap { _ in targets.next() } ?? [], item) }
        var failures = 0
        await Batch.run(work) { _, work in
            switch work.1 {
            case .success(let item): await job.run(item, work.0)
            case .failure(let failure): [ThumbnailReport(failure)]
            }
        } report: { reports in
            for report in reports {
                if report.error != nil { failures += 1 }
                report.print(asJSON: json, toStandardError: output == "-")
            }
        }
        if !caches.noCache { try? await service.cache.flush() }
        if failures > 0 { throw ExitCode(1) }
    }
}
