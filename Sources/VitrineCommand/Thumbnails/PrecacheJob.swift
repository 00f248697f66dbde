import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Makes the thumbnails of one input that are not in the cache.
struct PrecacheJob: Sendable {
    private let service: ImagePipeline
    private let boxes: [ImageResizer]
    private let parts: PartOptions
    private let web: WebPageOptions
    /// Set when the desktop's cache is filled.
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
        service = ImagePipeline(configuration)
    }

    /// Waits until everything is on disk.
    func finish() async {
        if desktop == nil { try? await service.cache.flush() }
    }

    func run(_ item: InputItem) async -> PrecacheReport {
        var report = PrecacheReport()
        report.input = item.name
        do {
            let options = parts.options(page: item.page)
            let (source, kind) = try await BlockingExecutor.shared.run { Result { try item.source(options, web: web) } }.get()
            if let desktop {
                let result = await fill(desktop, item, source, kind)
                report.made = result.made
                report.skipped = result.skipped
                if let error = result.error { throw error }
            } else {
                try await fillCache(source, &report)
            }
        } catch {
            report.failed += 1
            report.error = Diagnostics.describe(error).reason
        }
        return report
    }

    private func fillCache(_ source: any ImageSource, _ report: inout PrecacheReport) async throws {
        var missing: [ImageRequest] = []
        for box in boxes {
            var request = ImageRequest(source, size: box, priority: .veryLow)
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

    /// All sizes from one decode, as far as they are missing. What the desktop keeps no thumbnails of is passed over,
    /// as is what could not be shown before and has not changed since.
    private func fill(
        _ desktop: DesktopThumbnailCache, _ item: InputItem, _ source: any ImageSource, _ kind: FileKind?
    ) async -> DesktopResult {
        let sizes = boxes.compactMap { DesktopThumbnailSize(covering: $0.size.longestSide) }
        return await BlockingExecutor.shared.run {
            var result = DesktopResult()
            guard let path = item.path, let original = desktop.original(path), !desktop.hasFailed(path) else {
                result.skipped = sizes.count
                return result
            }
            let missing = sizes.filter { !desktop.hasThumbnail(of: path, size: $0) }
            result.skipped = sizes.count - missing.count
            guard !missing.isEmpty else { return result }
            do {
                let isDrawing = kind == .pdf || kind == .image(.svg)
                let images = try source.images(
                    missing.map { RenderRequest(size: PixelSize($0.side), allowsUpscaling: isDrawing) })
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
