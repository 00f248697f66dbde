import NIOCore
import VitrineCache
import VitrineCore
import VitrineImaging

/// Encodes images as results, with a deadline for AVIF and JPEG XL.
final class ResultEncoder: Sendable {
    /// An image that becomes a result.
    struct Picture: Sendable {
        let image: PixelImage
        let job: RenderJob
        let original: SourceTable.Original
        /// A format that takes less time than AVIF and JPEG XL; nil for JPEG, or PNG for translucent images.
        let alternative: ImageFormat?

        /// Where its result in a quicker format is kept.
        var provisionalKey: CacheKey { job.provisionalKey(alternative) }
    }

    /// Runs the encoders.
    let executor: BlockingExecutor
    let background: BackgroundEncodes
    private let configuration: Renderer.Configuration
    private let cache: ResultCache

    /// - Parameter old: An encoder whose threads and background work the new one shares.
    init(_ configuration: Renderer.Configuration, cache: ResultCache, continuing old: ResultEncoder?) {
        self.configuration = configuration
        self.cache = cache
        executor = old?.executor ?? BlockingExecutor(threads: max(2, Renderer.processors), name: "vitrine-enc")
        background = old?.background ?? BackgroundEncodes(limit: configuration.backgroundEncodes)
    }

    /// Encodes an image and stores its result.
    ///
    /// - Parameter place: The place of the render.
    func encoded(
        _ picture: Picture, plan: EncodingPlan, place: Place
    ) async throws(RequestError) -> RenderedImage {
        let (image, job, original) = (picture.image, picture.job, picture.original)
        let isSlow = plan.format == .avif || plan.format == .jxl
        guard isSlow, job.options.format == nil, let deadline = configuration.encodeDeadline else {
            let bytes = try await bytes(of: image, plan, original)
            let result = cache.finished(bytes, image: image, original: original)
            await cache.store(result, job: job, original: original)
            return result
        }
        let quick = plan.replacing(picture.alternative, options: job.options, settings: configuration.settings)
        guard background.begin(job.key) else {
            var result = cache.finished(try await bytes(of: image, quick, original), image: image, original: original)
            result.isProvisional = true
            // Kept for a moment, or each request would be a render as long as the background is busy.
            result.source.freshUntil = min(
                result.source.freshUntil, configuration.clock.now + configuration.minimumFreshness)
            if original.isStorable {
                let key = picture.provisionalKey
                await cache.keep(result, forKey: key, job, tags: original.tags, levels: .memory)
                shareProvisional(result, job: job, key: key, original: original, isBeingMade: false)
            }
            return result
        }
        let encoding = Task { [self] in await outcome(of: image, plan, original) }
        if let outcome = await encoding.value(within: deadline) {
            background.end(job.key)
            let result = cache.finished(try outcome.get(), image: image, original: original)
            await cache.store(result, job: job, original: original)
            return result
        }
        return try await provisional(picture, quick: quick, place: place, encoding: encoding)
    }

    /// Answers in a format that takes less time, while the better one is completed for the next request.
    private func provisional(
        _ picture: Picture, quick: EncodingPlan, place: Place,
        encoding: Task<Result<[UInt8], RequestError>, Never>
    ) async throws(RequestError) -> RenderedImage {
        let (image, job, original) = (picture.image, picture.job, picture.original)
        place.keep(cost: 4 * image.size.pixelCount)
        let key = picture.provisionalKey
        let store: @Sendable () async -> Void = { [self] in
            // The place is held until its pixels are not needed any more.
            defer { place.release() }
            if case .success(let bytes) = await encoding.value {
                await cache.store(
                    cache.finished(bytes, image: image, original: original), job: job, original: original)
            }
            cache.values[key] = nil
            background.end(job.key)
        }
        do throws(RequestError) {
            var result = cache.finished(try await bytes(of: image, quick, original), image: image, original: original)
            result.isProvisional = true
            if original.isStorable {
                await cache.keep(result, forKey: key, job, tags: original.tags, levels: .memory)
                shareProvisional(result, job: job, key: key, original: original, isBeingMade: true)
            }
            Task { await store() }
            return result
        } catch {
            Task { await store() }
            throw error
        }
    }

    private func shareProvisional(
        _ image: RenderedImage, job: RenderJob, key: CacheKey, original: SourceTable.Original, isBeingMade: Bool
    ) {
        cache.remote?.shareProvisional(
            SharedResult(image, tags: original.tags), job: job, key: key, for: configuration.minimumFreshness,
            isBeingMade: isBeingMade)
    }

    private func bytes(
        of image: PixelImage, _ plan: EncodingPlan, _ original: SourceTable.Original
    ) async throws(RequestError) -> [UInt8] {
        try await outcome(of: image, plan, original).get()
    }

    private func outcome(
        of image: PixelImage, _ plan: EncodingPlan, _ original: SourceTable.Original
    ) async -> Result<[UInt8], RequestError> {
        let source = plan.stripsMetadata && !plan.keepsCopyright ? nil : original.bytes
        let result = await executor.run { Result { () throws(ImageError) in try plan.encode(image, metadata: source) } }
        return result.mapError { RequestError(rendering: $0) }
    }
}
