import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging

/// `vitrine thumbnail`: one smaller picture per input.
struct ThumbnailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumbnail",
        abstract: "Makes a smaller picture of each input.",
        discussion: """
            Several inputs run in parallel; one bad input does not stop the others. An existing output is replaced \
            only by a finished one.
            """)

    @Argument(help: "Pictures; - is standard input.")
    var inputs: [String]

    @OptionGroup var geometry: GeometryOptions

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

    @Option(help: "Page of a document or frame of an animation, from 0.")
    var page = 0

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
        guard page >= 0 else { throw ValidationError("--page counts from 0") }
        _ = try geometry.resizer()
    }

    func run() async throws {
        let plan = try OutputPlan(inputs: inputs, output: output)
        let job = try ThumbnailJob(self)
        var failures = 0
        await Batch.run(Array(zip(inputs, plan.targets))) { _, pair in
            await job.run(input: pair.0, target: pair.1)
        } report: { report in
            if report.error != nil { failures += 1 }
            report.print(asJSON: json, toStandardError: output == "-")
        }
        if failures > 0 { throw ExitCode(1) }
    }
}

/// What `vitrine thumbnail` does to each input.
struct ThumbnailJob: Sendable {
    private let decoder = ImageDecoder()
    private let resizer: ImageResizer
    private let options: DecodeOptions
    private let processors: [ImageProcessor]
    private let format: FormatArgument?
    private let quality: Double
    private let isProgressive: Bool
    private let keepsMetadata: Bool

    init(_ command: ThumbnailCommand) throws {
        resizer = try command.geometry.resizer(gravity: command.gravity.gravity)
        options = DecodeOptions(
            page: command.page, embeddedPreview: command.embeddedPreview ? .whenLargeEnough : .never,
            allowPartial: command.allowPartial)
        var processors: [ImageProcessor] = []
        if let color = command.background?.color { processors.append(.background(color)) }
        if let radius = command.round { processors.append(.roundCorners(radius)) }
        self.processors = processors
        format = command.format
        quality = command.quality
        isProgressive = command.progressive
        keepsMetadata = command.keepMetadata
    }

    func run(input word: String, target: OutputPlan.Target) async -> ThumbnailReport {
        var report = ThumbnailReport(input: word)
        let start = ContinuousClock.now
        do {
            let input = try InputArgument.read(word)
            if case .bytes(let bytes, _) = input { report.inputBytes = bytes.count }
            report.inputSize = try await decoder.info(of: input).size
            let image = try await decoder.image(from: input, at: resizer, options: options).processed(by: processors)
            try await write(image, from: input, to: target, &report)
        } catch {
            let (_, reason) = Diagnostics.describe(error)
            report.error = reason
        }
        report.milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
        return report
    }

    private func write(
        _ image: Image, from input: ImageInput, to target: OutputPlan.Target, _ report: inout ThumbnailReport
    ) async throws {
        let output: OutputFormat = outputFormat(for: target).outputFormat(quality: quality)
        let actual = output.imageFormat(for: image)
        var options = EncodeOptions(isProgressive: isProgressive)
        if keepsMetadata {
            options.metadata = try ImageMetadata(reading: ByteSource(input)).sanitizedForUprightPixels()
        }
        let encodeOptions = options
        let bytes = try await BlockingExecutor.shared.run { () throws(ImageError) in
            try image.encoded(as: output, options: encodeOptions)
        }
        switch target {
        case .standardOutput:
            try FileHandle.standardOutput.write(contentsOf: Data(bytes))
            report.output = "-"
        case .file(let path):
            try save(bytes, to: path, besides: input)
            report.output = path
        case .stem(let stem):
            let path = "\(stem).\(actual.fileExtension)"
            try save(bytes, to: path, besides: input)
            report.output = path
        }
        report.format = actual.rawValue
        report.size = image.size
        report.bytes = bytes.count
    }

    /// The format asked for, else the one the output's name asks for, else automatic.
    private func outputFormat(for target: OutputPlan.Target) -> FormatArgument {
        if let format { return format }
        if case .file(let path) = target, let named = FormatArgument(path: path) { return named }
        return .auto
    }

    private func save(_ bytes: [UInt8], to path: String, besides input: ImageInput) throws {
        if case .file(let source) = input, OutputPlan.isSameFile(source, path) {
            throw ImageError.invalidRequest(reason: "the output \(path) is the input")
        }
        try AtomicFile.write(bytes, to: path)
    }
}
