import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// What `vitrine thumbnail` does to each input: asks the service for all sizes at once, and writes them.
struct ThumbnailJob: Sendable {
    /// Above this quality the cache's own loss (JPEG at 0.95) might be seen.
    private static let highestCachedQuality = 0.9

    private let service: ImagePipeline
    private let desktop: RecordedThumbnails?
    private let boxes: [ImageResizer]
    private let parts: PartOptions
    private let web: WebPageOptions
    private let allowsEmbeddedPreview: Bool
    private let allowsPartial: Bool
    private let processors: [ImageProcessor]
    private let format: FormatArgument?
    private let quality: Double
    private let isProgressive: Bool
    private let keepsMetadata: Bool

    init(_ command: ThumbnailCommand, _ service: ImagePipeline) throws {
        self.service = service
        desktop = service.configuration.shared as? RecordedThumbnails
        boxes = try command.geometry.resizers(gravity: command.gravity.gravity)
        parts = command.parts
        web = command.web
        allowsEmbeddedPreview = command.embeddedPreview
        allowsPartial = command.allowPartial
        var processors: [ImageProcessor] = []
        if let color = command.background?.color { processors.append(.background(color)) }
        if let radius = command.round { processors.append(.roundCorners(radius)) }
        self.processors = processors
        format = command.format
        quality = command.quality
        isProgressive = command.progressive
        keepsMetadata = command.keepMetadata
    }

    /// One report for each size.
    func run(_ item: InputItem, _ targets: [OutputPlan.Target]) async -> [ThumbnailReport] {
        var report = ThumbnailReport(item)
        let start = ContinuousClock.now
        var requests: [ImageRequest] = []
        do {
            var options = parts.options(page: item.page)
            options.allowsEmbeddedPreview = allowsEmbeddedPreview
            options.allowsPartial = allowsPartial
            let wanted = options
            let (source, kind) = try await BlockingExecutor.shared.run { Result { try item.source(wanted, web: web) } }.get()
            try await describe(item, kind, wanted, &report)
            requests = boxes.map { box in
                var request = ImageRequest(source, size: box)
                request.executionPriority = .normal
                return request
            }
        } catch {
            report.fail(error, after: start)
            return [report]
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
                reports[index].fail(error, after: start)
            }
        }
        return reports
    }

    /// Looks at the header: pictures that cannot be read are told from it, in its own words.
    private func describe(
        _ item: InputItem, _ kind: FileKind?, _ options: SourceDetector.Options, _ report: inout ThumbnailReport
    ) async throws {
        guard case .input(let input) = item.content else { return }
        if case .bytes(let bytes, _) = input { report.inputBytes = bytes.count }
        switch kind {
        case .image?:
            let info = try await ImageDecoder().info(of: input)
            report.inputSize = info.size
            if info.frameCount > 1 { report.page = options.page }
        case .pdf?: report.page = options.page
        case .media?:
            if case .second(let second) = options.moment { report.time = second }
        case nil: break
        }
    }

    /// Whether the cache's copy is as good as the picture itself for what is written.
    private func mayUseCache(_ item: InputItem, _ target: OutputPlan.Target) -> Bool {
        guard processors.isEmpty, !keepsMetadata, !item.isWebPage, parts.password == nil else { return false }
        switch outputFormat(for: target) {
        case .png, .gif: return false
        case .jpeg, .webp, .avif, .jxl, .auto: return quality <= Self.highestCachedQuality
        }
    }

    private func write(
        _ image: Image, of item: InputItem, to target: OutputPlan.Target, _ report: inout ThumbnailReport
    ) async throws {
        let output: OutputFormat = outputFormat(for: target).outputFormat(quality: quality)
        let actual = output.imageFormat(for: image)
        var options = EncodeOptions(isProgressive: isProgressive)
        if keepsMetadata, case .input(let input) = item.content, try FileKind(of: input)?.isImage == true {
            options.metadata = try ImageMetadata(reading: ByteSource(input)).sanitizedForUprightPixels()
        }
        let encodeOptions = options
        let bytes = try await BlockingExecutor.shared.run { () throws(ImageError) in
            try image.encoded(as: output, options: encodeOptions)
        }
        switch target {
        case .standardOutput:
            Output.contents(bytes)
            report.output = "-"
        case .file(let path):
            try save(bytes, to: path, besides: item)
            report.output = path
        case .stem(let stem):
            let path = "\(stem).\(actual.fileExtension)"
            try save(bytes, to: path, besides: item)
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

    private func save(_ bytes: [UInt8], to path: String, besides item: InputItem) throws {
        if let source = item.path, OutputPlan.isSameFile(source, path) {
            throw ImageError.invalidRequest(reason: "the output \(path) is the input")
        }
        if !item.folder.isEmpty { try Directory.create(FilePath.parent(of: path), mode: 0o777) }
        if Self.isEmptyFile(path) {
            // Made by a file manager that has it open and reads it from there: another file in its place is not seen.
            let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_NOFOLLOW)
            try bytes.withUnsafeBytes { try file.write($0) }
        } else {
            try AtomicFile.write(bytes, to: path)
        }
    }

    private static func isEmptyFile(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }
}

extension FileKind {
    /// Whether it is a picture.
    var isImage: Bool {
        if case .image = self { true } else { false }
    }
}
