import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine precache`: thumbnails on disk before a program requests them.
struct PrecacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "precache",
        abstract: "Fills the cache with thumbnails of all files in directories.",
        discussion: """
            A second run makes only the missing thumbnails. Programs find them when they request the same size; with \
            --desktop, file managers do. Commands that write an output for each file need --recursive for a directory. \
            precache writes nothing but the cache, and accepts the option.

              vitrine precache ~/Pictures --sizes 256,1024
              vitrine precache ~/Pictures --desktop
            """)

    @Argument(help: "Directories and files. Directories include everything below them.", completion: .file())
    var inputs: [String]

    @Flag(help: "Use the files in directories. precache does so without this option, too.")
    var recursive = false

    @OptionGroup(title: "Size") var geometry: GeometryOptions
    @OptionGroup(title: "Pages, videos, web pages") var parts: PartOptions
    @OptionGroup(title: "Pages, videos, web pages") var web: WebPageOptions

    @Flag(help: "Fill the cache of file managers instead, with the sizes 128, 256, 512 or 1024.")
    var desktop = false

    @Option(help: "Name of the cache, for programs that have several. (default: the unnamed cache)")
    var name: String?

    @Option(help: "Directory of the caches. (default: vitrine in the user's cache directory)", completion: .directory)
    var root: String?

    @OptionGroup var decoder: DecoderOptions
    @OptionGroup var progress: ProgressOption

    @Flag(help: "Print the totals as a JSON object instead of text.")
    var json = false

    func validate() throws {
        _ = try geometry.resizers()
        guard parts.password == nil else {
            throw ValidationError("precache takes no --password: thumbnails of encrypted documents are never stored")
        }
        if desktop {
            let sides = Set(DesktopThumbnailSize.allCases.map(\.side))
            guard geometry.boxes.allSatisfy({ $0.width == $0.height && sides.contains($0.width ?? 0) }),
                geometry.mode == .fit
            else { throw ValidationError("--desktop takes the sizes 128, 256, 512 and 1024, and no --mode") }
            guard parts.page == nil, parts.pages == nil, parts.time == nil else {
                throw ValidationError("--desktop takes no --page, --pages or --time")
            }
        }
    }

    func run() async throws {
        let expansion = InputExpansion(isRecursive: true, mayBeEmpty: true, pages: parts.pages)
        let items = await BlockingExecutor.shared.run { [inputs] in expansion.items(inputs) }
        let work = PrecacheJob(
            boxes: try geometry.resizers(), parts: parts, web: web,
            desktop: desktop ? DesktopThumbnailCache() : nil, name: name, root: root)
        var total = PrecacheReport()
        let bar = ProgressBar(total: items.count, isQuiet: progress.quiet)
        await Batch.run(items, progress: bar, name: { $0.name }) { _, item in
            switch item {
            case .success(let item): await work.run(item)
            case .failure(let failure): PrecacheReport(failure)
            }
        } report: { report in
            if let failure = report.failure, !(failure.isPassedOver && progress.quiet) {
                Diagnostics.write(failure.line)
            }
            total.add(report)
        }
        await work.finish()
        if json {
            Output.json(total)
        } else if !progress.quiet {
            let passedOver = total.passedOver > 0 ? ", \(total.passedOver) without an image" : ""
            Output.row(
                "\(total.made) made, \(total.skipped) in the cache already\(passedOver), \(total.failed) failed")
        }
        if total.failed > 0 { throw ExitCode(1) }
    }
}

/// The result of one input, or the totals of all.
private struct PrecacheReport: Sendable, Encodable {
    var made = 0
    var skipped = 0
    var failed = 0
    /// Files found in directories that have no image.
    var passedOver = 0
    var failure: InputFailure?

    init() {}

    init(_ failure: InputFailure) {
        fail(failure)
    }

    private enum CodingKeys: String, CodingKey {
        case made, skipped, failed, passedOver
    }

    mutating func fail(_ failure: InputFailure) {
        self.failure = failure
        if failure.isPassedOver { passedOver += 1 } else { failed += 1 }
    }

    mutating func add(_ other: PrecacheReport) {
        made += other.made
        skipped += other.skipped
        failed += other.failed
        passedOver += other.passedOver
    }
}

/// Makes the missing thumbnails of one input.
private struct PrecacheJob: Sendable {
    private let service: ImagePipeline
    private let boxes: [ImageResizer]
    private let parts: PartOptions
    private let web: WebPageOptions
    /// The cache of file managers, if that is filled.
    private let desktop: DesktopThumbnailCache?

    init(
        boxes: [ImageResizer], parts: PartOptions, web: WebPageOptions, desktop: DesktopThumbnailCache?, name: String?,
        root: String?
    ) {
        self.boxes = boxes
        self.parts = parts
        self.web = web
        self.desktop = desktop
        var configuration = ImagePipeline.Configuration(name: name, root: root)
        configuration.usesMemoryCache = false
        configuration.usesDiskCache = desktop == nil
        configuration.memoryPressure = nil
        configuration.limits = CommandLimits.current
        service = ImagePipeline(configuration)
    }

    /// Waits until everything is on disk.
    func finish() async {
        if desktop == nil { try? await service.cache.flush() }
    }

    func run(_ item: InputItem) async -> PrecacheReport {
        var report = PrecacheReport()
        do {
            let options = parts.options(page: item.page)
            let opened = try await item.open(options, web: web)
            if let desktop {
                let result = await fill(desktop, opened)
                report.made = result.made
                report.skipped = result.skipped
                if let error = result.error { throw error }
            } else {
                try await fillCache(opened.source, &report)
            }
        } catch {
            report.fail(InputFailure(item, error))
        }
        return report
    }

    private func fillCache(_ source: any ImageSource, _ report: inout PrecacheReport) async throws {
        var missing: [ImageRequest] = []
        for box in boxes {
            var request = ImageRequest(source, resizing: box, priority: .veryLow)
            request.cacheLevels = .disk
            if await service.contains(request, at: .disk) { report.skipped += 1 } else { missing.append(request) }
        }
        for task in missing.map({ service.start($0) }) {
            _ = try await task.value
            report.made += 1
        }
    }

    private struct DesktopResult: Sendable {
        var made = 0
        var skipped = 0
        var error: (any Error)?
    }

    /// Makes all missing sizes from one decode. Files that file managers keep no thumbnails of fail, and so do unchanged
    /// files that failed before, without another decode.
    private func fill(
        _ desktop: DesktopThumbnailCache, _ opened: InputItem.Opened
    ) async -> DesktopResult {
        let (item, source, kind) = (opened.item, opened.source, opened.kind)
        let sizes = boxes.compactMap { DesktopThumbnailSize(covering: $0.size.longestSide) }
        return await BlockingExecutor.shared.run {
            var result = DesktopResult()
            guard let path = item.path else {
                result.error = InputFailure(name: item.name, reason: "file managers keep thumbnails of files only")
                return result
            }
            guard let original = desktop.original(path) else {
                result.error = InputFailure(
                    name: item.name, reason: "it is a thumbnail itself, or no regular file that can be read")
                return result
            }
            guard !desktop.hasFailed(path) else {
                let location = desktop.failureLocation(of: path)
                result.error = InputFailure(
                    name: item.name, reason: "it failed before and has not changed; remove \(location) to try again")
                return result
            }
            let missing = sizes.filter { !desktop.hasThumbnail(of: path, size: $0) }
            result.skipped = sizes.count - missing.count
            guard !missing.isEmpty else { return result }
            do {
                let isDrawing = kind == .pdf || kind == .image(.svg)
                let images = try source.images(
                    missing.map {
                        RenderRequest(
                            size: PixelSize($0.side), allowsUpscaling: isDrawing, limits: CommandLimits.current)
                    })
                let details = DesktopThumbnailCache.Details(of: source)
                for (image, size) in zip(images, missing) {
                    try desktop.store(image, of: original, size: size, details: details)
                    result.made += 1
                }
            } catch {
                if (error as? ImagePipelineError)?.isLasting == true { _ = try? desktop.storeFailure(of: original) }
                result.error = error
            }
            return result
        }
    }
}
