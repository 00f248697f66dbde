import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The work of `vitrine thumbnail` on one input: requests all sizes at once, and writes them.
struct ThumbnailJob: Sendable {
    /// Above this quality, the loss of the cache (JPEG at 0.95) could be visible.
    private static let highestCachedQuality = 0.9
    /// The quality of clips.
    private static let previewQuality = 0.6

    private let service: ImagePipeline
    private let desktop: RecordedThumbnails?
    private let boxes: [ImageResizer]
    private let parts: PartOptions
    private let web: WebPageOptions
    private let decode: DecodeOptions
    private let processors: [ImageProcessor]
    private let format: FormatArgument?
    private let quality: Double
    private let preview: PreviewOptions
    private let isProgressive: Bool
    private let keepsMetadata: Bool
    private let files: OutputFiles
    /// The longest side that a result can have; 0 if only its own size tells.
    private let longestSide: Int

    init(_ command: ThumbnailCommand, _ service: ImagePipeline, files: OutputFiles) throws {
        self.files = files
        longestSide = command.geometry.boxes.flatMap { [$0.width, $0.height] }.compactMap(\.self).max() ?? 0
        self.service = service
        desktop = service.configuration.externalThumbnails as? RecordedThumbnails
        boxes = try command.geometry.resizers(gravity: command.gravity.gravity)
        parts = command.parts
        web = command.web
        decode = DecodeOptions(allowsEmbeddedPreview: command.embeddedPreview, allowsPartial: command.allowPartial)
        var processors: [ImageProcessor] = []
        if let color = command.background?.color { processors.append(.background(color)) }
        if let radius = command.round { processors.append(.roundCorners(radius)) }
        self.processors = processors
        format = command.format
        quality =
            command.quality?.value ?? (command.preview.animated ? Self.previewQuality : OutputFormat.defaultQuality)
        preview = command.preview
        isProgressive = command.progressive
        keepsMetadata = command.keepMetadata
    }

    /// Makes the thumbnails of one input, and returns a report for each size.
    func run(_ item: InputItem, _ targets: [OutputPlan.Target]) async -> [ThumbnailReport] {
        var report = ThumbnailReport(item)
        let start = ContinuousClock.now
        do {
            var options = parts.options(page: item.page)
            options.decode = decode
            let wanted = options
            let opened = try await item.open(wanted, web: web)
            try await describe(opened, options: wanted, report: &report)
            return preview.animated
                ? await makePreviews(of: opened, targets: targets, report: report, since: start)
                : await makeThumbnails(of: opened, targets: targets, report: report, since: start)
        } catch {
            report.fail(InputFailure(item, error), after: start)
            return [report]
        }
    }

    private func makeThumbnails(
        of opened: InputItem.Opened, targets: [OutputPlan.Target], report: ThumbnailReport,
        since start: ContinuousClock.Instant
    ) async -> [ThumbnailReport] {
        let item = opened.item
        var requests = boxes.map { box in
            var request = ImageRequest(opened.source, resizing: box)
            request.executionPriority = .normal
            return request
        }
        var reports: [ThumbnailReport] = []
        for (index, target) in targets.prefix(requests.count).enumerated() {
            requests[index].cacheLevels = mayUseCache(item, target) ? .all : []
            var next = report
            next.source = await service.contains(requests[index], at: .disk) ? .disk : .made
            reports.append(next)
        }
        let tasks = requests.map { service.start($0) }
        for (index, task) in tasks.enumerated() {
            do {
                let image = try await task.value.processed(by: processors)
                if desktop?.gave(task.request) == true { reports[index].source = .desktop }
                try await write(image, of: item, to: targets[index], &reports[index])
                reports[index].milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
            } catch {
                reports[index].fail(InputFailure(item, error), after: start)
            }
        }
        return reports
    }

    /// Makes a clip at each size.
    private func makePreviews(
        of opened: InputItem.Opened, targets: [OutputPlan.Target], report: ThumbnailReport,
        since start: ContinuousClock.Instant
    ) async -> [ThumbnailReport] {
        let item = opened.item
        var reports: [ThumbnailReport] = []
        for (box, target) in zip(boxes, targets) {
            var report = report
            do {
                var request = ClipRequest(
                    opened.source, resizing: box, duration: preview.duration, framesPerSecond: preview.fps,
                    format: outputFormat(for: target) == .avif ? .avif(quality: quality) : .webp(quality: quality),
                    part: preview.spread ? .spread : .beginning)
                if item.isAddress { request.cacheLevels = [] }
                let bytes = try await service.clip(for: request)
                let info = try await ImageDecoder().info(of: .bytes(bytes, name: item.name))
                try save(bytes, as: info.format, size: info.size, of: item, to: target, &report)
                report.source = .made
                report.milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
            } catch {
                report.fail(InputFailure(item, error), after: start)
            }
            reports.append(report)
        }
        return reports
    }

    /// Reads the header for the report. Unreadable images fail here, with the most exact reason.
    private func describe(
        _ opened: InputItem.Opened, options: SourceDetector.Options, report: inout ThumbnailReport
    ) async throws {
        guard case .input(let input) = opened.item.content else { return }
        if case .bytes(let bytes, _) = input { report.inputBytes = bytes.count }
        switch opened.kind {
        case .image?:
            let info = try await ImageDecoder(limits: CommandLimits.current).info(of: input)
            report.inputSize = info.size
            if info.frameCount > 1 { report.page = options.page }
        case .pdf?: report.page = options.page
        case .media?:
            if case .second(let second) = options.moment { report.time = second }
        case .font?, .text?, nil: break
        }
    }

    /// Whether the copy in the cache is good enough for the output.
    private func mayUseCache(_ item: InputItem, _ target: OutputPlan.Target) -> Bool {
        guard processors.isEmpty, !keepsMetadata, !item.isAddress, parts.password == nil else { return false }
        switch outputFormat(for: target) {
        case .png, .gif: return false
        case .jpeg, .webp, .avif, .jxl, .auto: return quality <= Self.highestCachedQuality
        }
    }

    private func write(
        _ image: PixelImage, of item: InputItem, to target: OutputPlan.Target, _ report: inout ThumbnailReport
    ) async throws {
        let output: OutputFormat = outputFormat(for: target).outputFormat(quality: quality)
        let actual = output.imageFormat(for: image)
        var options = EncodeOptions(isProgressive: isProgressive)
        if keepsMetadata, case .input(let input) = item.content, try FileKind(of: input)?.isImage == true {
            options.metadata = try ImageMetadata(of: input).sanitizedForUprightPixels()
        }
        let encodeOptions = options
        let bytes = try await BlockingExecutor.shared.run { () throws(ImageError) in
            try image.encoded(as: output, options: encodeOptions)
        }
        try save(bytes, as: actual, size: image.size, of: item, to: target, &report)
    }

    private func save(
        _ bytes: [UInt8], as format: ImageFormat, size: PixelSize, of item: InputItem, to target: OutputPlan.Target,
        _ report: inout ThumbnailReport
    ) throws {
        let result = OutputFiles.Result(
            format: format, longestSide: max(longestSide, size.width, size.height), hasMetadata: keepsMetadata)
        switch target {
        case .standardOutput:
            Output.contents(bytes)
            report.output = "-"
        case .file(let path, isNamed: true):
            try save(bytes, to: path, replacingOnly: nil, of: item)
            report.output = path
        case .file(let path, isNamed: false):
            try save(bytes, to: path, replacingOnly: result, of: item)
            report.output = path
        case .stem(let stem):
            let path = "\(stem).\(format.fileExtension)"
            try save(bytes, to: path, replacingOnly: result, of: item)
            report.output = path
        }
        report.format = format.rawValue
        report.size = size
        report.bytes = bytes.count
    }

    /// The format of `--format`, or of the output's extension, or automatic.
    private func outputFormat(for target: OutputPlan.Target) -> FormatArgument {
        if let format { return format }
        if case .file(let path, _) = target, let named = FormatArgument(path: path) { return named }
        return .auto
    }

    private func save(
        _ bytes: [UInt8], to path: String, replacingOnly result: OutputFiles.Result?, of item: InputItem
    ) throws {
        do {
            if !item.folder.isEmpty { try Directory.create(FilePath.parent(of: path), mode: 0o777) }
            try files.write(bytes, to: path, replacingOnly: result, madeFrom: item.path)
        } catch let error as FileError {
            throw InputFailure(name: item.name, reason: error.about(path).failedWrite)
        }
    }
}

extension FileKind {
    /// Whether it is an image.
    fileprivate var isImage: Bool {
        if case .image = self { true } else { false }
    }
}

/// The result of one input at one size, as a line of text or JSON.
struct ThumbnailReport: Sendable, Encodable {
    var input: String
    var output: String?
    var format: String?
    var size: PixelSize?
    var bytes: Int?
    var milliseconds = 0.0
    var error: String?
    /// Why it was passed over: it was found in a directory, and has no image.
    var passedOver: String?
    var inputSize: PixelSize?
    var inputBytes: Int?
    /// Counted from 1; nil for inputs without pages.
    var page: Int?
    /// Second of a video; nil for its poster and for other inputs.
    var time: Double?
    var source: ThumbnailOrigin?

    init(_ item: InputItem) {
        input = item.name
        guard let path = item.path else { return }
        var status = stat()
        if stat(path, &status) == 0 { inputBytes = Int(status.st_size) }
    }

    init(_ failure: InputFailure) {
        input = failure.name
        set(failure)
    }

    private mutating func set(_ failure: InputFailure) {
        if failure.isPassedOver { passedOver = failure.reason } else { error = failure.reason }
    }

    mutating func fail(_ failure: InputFailure, after start: ContinuousClock.Instant) {
        set(failure)
        source = nil
        milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
    }

    private enum CodingKeys: String, CodingKey {
        case input, output, format, width, height, bytes, milliseconds, error, passedOver, page, time, source
    }

    /// Every key is present. Values that do not apply are null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(input, forKey: .input)
        try container.encode(output, forKey: .output)
        try container.encode(format, forKey: .format)
        try container.encode(size?.width, forKey: .width)
        try container.encode(size?.height, forKey: .height)
        try container.encode(bytes, forKey: .bytes)
        try container.encode((milliseconds * 1000).rounded() / 1000, forKey: .milliseconds)
        try container.encode(error, forKey: .error)
        try container.encode(passedOver, forKey: .passedOver)
        try container.encode(page, forKey: .page)
        try container.encode(time, forKey: .time)
        try container.encode(source, forKey: .source)
    }

    func print(asJSON: Bool, toStandardError: Bool) {
        if asJSON {
            emit(JSONLine.text(self), toStandardError: toStandardError)
        } else if let error {
            Diagnostics.write("\(input): \(error)")
        } else if let passedOver {
            Diagnostics.write("\(input): passed over: \(passedOver)")
        } else {
            let from = [inputSize.map(\.description), inputBytes.map(Self.bytes)].compactMap(\.self)
            let to = [size.map(\.description), format, bytes.map(Self.bytes)].compactMap(\.self)
            emit(
                "\(input)  \(from.joined(separator: " "))  →  \(output ?? "")  \(to.joined(separator: " "))  "
                    + milliseconds.formatted("%.1f ms"),
                toStandardError: toStandardError)
        }
    }

    private func emit(_ line: String, toStandardError: Bool) {
        if toStandardError { Diagnostics.write(line) } else { Output.row(line) }
    }

    private static func bytes(_ count: Int) -> String {
        count < 1000 ? "\(count) B" : count < 1_000_000
            ? (Double(count) / 1e3).formatted("%.1f kB") : (Double(count) / 1e6).formatted("%.1f MB")
    }
}
