import NIOCore
import VitrineCache
import VitrineCore
import VitrineImaging

/// Encoding, with a deadline for AVIF and JPEG XL.
extension Renderer {
    func encoded(
        _ image: PixelImage, plan: EncodingPlan, job: RenderJob, original: SourceTable.Original, place: Place,
        alternative: ImageFormat?
    ) async throws(RequestError) -> RenderedImage {
        let isSlow = plan.format == .avif || plan.format == .jxl
        guard isSlow, job.options.format == nil, let deadline = configuration.encodeDeadline else {
            let bytes = try await bytes(of: image, plan, original)
            let result = finished(bytes, image: image, original: original)
            await store(result, job: job, original: original)
            return result
        }
        let quick = plan.replacing(alternative, options: job.options, settings: configuration.settings)
        guard background.begin(job.key) else {
            var result = finished(try await bytes(of: image, quick, original), image: image, original: original)
            result.isProvisional = true
            // Kept for a moment, or each request would be a render as long as the background is busy.
            result.freshUntil = min(result.freshUntil, configuration.clock.now + configuration.minimumFreshness)
            if original.isStorable {
                let key = Self.provisionalKey(job, alternative)
                await keep(result, forKey: key, job, tags: original.tags, levels: .memory)
                shareProvisional(result, job: job, key: key, original: original, isBeingMade: false)
            }
            return result
        }
        let encoding = Task { [self] in await outcome(of: image, plan, original) }
        if let outcome = await Self.value(of: encoding, within: deadline) {
            background.end(job.key)
            let result = finished(try outcome.get(), image: image, original: original)
            await store(result, job: job, original: original)
            return result
        }
        return try await provisional(
            image, quick: quick, job: job, original: original, place: place, alternative: alternative,
            encoding: encoding)
    }

    /// Answers in a format that takes less time, while the better one is completed for the next request.
    func provisional(
        _ image: PixelImage, quick: EncodingPlan, job: RenderJob, original: SourceTable.Original, place: Place,
        alternative: ImageFormat?, encoding: Task<Result<[UInt8], RequestError>, Never>
    ) async throws(RequestError) -> RenderedImage {
        place.keep(cost: 4 * image.size.pixelCount)
        let key = Self.provisionalKey(job, alternative)
        let store: @Sendable () async -> Void = { [self] in
            // The place is held until its pixels are not needed any more.
            defer { place.release() }
            if case .success(let bytes) = await encoding.value {
                await self.store(finished(bytes, image: image, original: original), job: job, original: original)
            }
            results[key] = nil
            background.end(job.key)
        }
        do throws(RequestError) {
            var result = finished(try await bytes(of: image, quick, original), image: image, original: original)
            result.isProvisional = true
            if original.isStorable {
                await keep(result, forKey: key, job, tags: original.tags, levels: .memory)
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
        remote?.shareProvisional(
            SharedResult(image, tags: original.tags), job: job, key: key, for: configuration.minimumFreshness,
            isBeingMade: isBeingMade)
    }

    static func provisionalKey(_ job: RenderJob, _ alternative: ImageFormat?) -> CacheKey {
        job.key.appending("provisional").appending(alternative?.rawValue ?? "any")
    }

    func bytes(
        of image: PixelImage, _ plan: EncodingPlan, _ original: SourceTable.Original
    ) async throws(RequestError) -> [UInt8] {
        try await outcome(of: image, plan, original).get()
    }

    func outcome(
        of image: PixelImage, _ plan: EncodingPlan, _ original: SourceTable.Original
    ) async -> Result<[UInt8], RequestError> {
        let source = plan.stripsMetadata && !plan.keepsCopyright ? nil : original.bytes
        let result = await encoders.run { Result { () throws(ImageError) in try plan.encode(image, metadata: source) } }
        return result.mapError { RequestError(rendering: $0) }
    }

    func finished(_ bytes: [UInt8], image: PixelImage, original: SourceTable.Original) -> RenderedImage {
        let format = ImageFormat.detect(Array(bytes.prefix(64)))
        return rendered(
            bytes, mediaType: format?.mediaType ?? "application/octet-stream", format: format, size: image.size,
            original)
    }

    /// The value of a task, or nil if it takes longer.
    static func value<T: Sendable>(of task: Task<T, Never>, within time: Duration) async -> T? {
        let first = FirstValue<T?>()
        let timer = Task {
            try await Task.sleep(for: time)
            first.set(nil)
        }
        Task { first.set(await task.value) }
        defer { timer.cancel() }
        return await first.value
    }
}
