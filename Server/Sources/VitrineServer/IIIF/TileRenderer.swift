import NIOCore
import VitrineCache
import VitrineCore
import VitrineImageCore
import VitrineImaging
import VitrineJPEG

/// Makes tiles of local images, which it cuts from the bands of their levels.
final class TileRenderer: Sendable {
    /// A local image whose tiles are asked for.
    private struct Picture: Sendable {
        let source: SourceTable.Source
        let names: [String]
        let root: LocalRoot
        let header: LocalRoot.Header

        var size: PixelSize { header.header.size }
        /// Whether parts of it can be decoded without the others, once a JPEG was surveyed.
        var hasParts: Bool { header.hasParts }
        var isJPEG: Bool { header.header.format == .jpeg }
        /// Whether parts are found by a survey.
        var isSurveyed: Bool { isJPEG && hasParts }
        /// Identifies this version of it.
        var version: CacheKey { source.key.appending(header.version) }
    }

    /// The pixels that tiles are cut from.
    let bands: TileBands
    private let configuration: Renderer.Configuration
    private let sources: SourceTable
    private let admission: Admission
    private let cache: ResultCache
    private let encoders: BlockingExecutor
    private let background: BackgroundEncodes

    init(
        _ bands: TileBands, configuration: Renderer.Configuration, sources: SourceTable, cache: ResultCache,
        encoder: ResultEncoder, admission: Admission
    ) {
        self.bands = bands
        self.configuration = configuration
        self.sources = sources
        self.admission = admission
        self.cache = cache
        encoders = encoder.executor
        background = encoder.background
    }

    /// Returns a tile of a local image that is cut from a band of its level; nil for other images, and for images
    /// that have changed meanwhile.
    ///
    /// - Throws: 400 for a part that the image does not have, and the errors of its decode.
    func tile(_ job: RenderJob, _ priority: SharedPriority) async throws(RequestError) -> Renderer.Made? {
        guard job.kind == .image, bands.capacity > 0, let parameters = job.options.sourceRules?.iiif,
            case .local(let names) = job.source.place, let root = sources.root, job.options.page == 1,
            let header = try await header(of: job.source, names, root)
        else { return nil }
        let picture = Picture(source: job.source, names: names, root: root, header: header)
        let size = picture.size
        let part = try parameters.part(of: size)
        guard parameters.degrees == 0, !parameters.isMirrored, !job.options.hasEffects, !header.header.isVector,
            let place = TilePlace(
                part, of: size, bandBytes: bands.bandBytes, hasParts: picture.hasParts || hasPyramid(picture))
        else { return nil }
        let began = ContinuousClock.now
        let key = TileBands.Key(job.source.key, version: header.version, factor: place.factor, band: place.band)
        guard let band = try await band(key, place: place, picture: picture, job: job, priority: priority) else {
            return nil
        }
        let decoded = ContinuousClock.now
        let plan = EncodingPlan(job.options, negotiated: nil, header: header.header, settings: configuration.settings)
        var original = sources.original(of: header)
        original.canonicalPath = try parameters.canonicalPath(for: size)
        let (rect, corner) = (place.tile, place.band)
        let outcome = await encoders.run {
            Result { () throws(ImageError) -> (PixelImage, [UInt8]) in
                let image = try band.processed(by: [
                    .crop(
                        x: rect.x - corner.x, y: rect.y - corner.y, width: rect.size.width, height: rect.size.height)
                ])
                return (image, try plan.encode(image, metadata: nil))
            }.mapError { RequestError(rendering: $0) }
        }
        let (image, bytes) = try outcome.get()
        var made = Renderer.Made(image: cache.finished(bytes, image: image, original: original))
        await cache.store(made.image, job: job, original: original)
        made.times.decode = decoded - began
        made.times.decoding = .init(began: began, duration: decoded - began)
        made.times.encode = .now - decoded
        made.times.encoding = .init(began: decoded, duration: made.times.encode)
        return made
    }

    /// The header of the present version of a local image; nil for other sources.
    private func header(
        of source: SourceTable.Source, _ names: [String], _ root: LocalRoot
    ) async throws(RequestError) -> LocalRoot.Header? {
        let limits = configuration.limits, most = configuration.sources.maximumBytes, bands = bands
        return try await sources.executor.run { () throws(RequestError) in
            let version = try root.version(of: names)
            if let kept = bands.header(of: source.key, version: version) { return kept }
            guard let header = try root.header(of: names, limits, upTo: most) else { return nil }
            bands.keep(header, of: source.key)
            return header
        }
    }

    // MARK: Bands

    private func band(
        _ key: TileBands.Key, place: TilePlace, picture: Picture, job: RenderJob, priority: SharedPriority
    ) async throws(RequestError) -> PixelImage? {
        if let band = bands[key] { return band }
        // A damaged band is not decoded again for each of its tiles.
        let failureKey = picture.version.appending("band \(key.factor) \(key.x) \(key.y)")
        if let failure = cache.failures[failureKey] { throw failure }
        let (band, _) = try await bands.work.value(for: key, priority: priority.value) {
            [self] (priority: SharedPriority) async throws(RequestError) in
            // It may have come while this one waited for the last one.
            if let band = bands[key] { return band }
            if let band = try bands[pyramid: picture.version]?.band(place) {
                bands.keep(band, for: key)
                return band
            }
            if let band = await storedBand(key, place) {
                bands.keep(band, for: key)
                return band
            }
            do throws(RequestError) {
                return try await makeBand(key, place: place, picture: picture, job: job, priority: priority)
            } catch {
                cache.failures.add(error, for: failureKey)
                throw error
            }
        }
        // The version was looked at before the file was opened.
        let now = try await sources.executor.run { () throws(RequestError) in
            try picture.root.version(of: picture.names)
        }
        return now == picture.header.version ? band : nil
    }

    private func makeBand(
        _ key: TileBands.Key, place: TilePlace, picture: Picture, job: RenderJob, priority: SharedPriority
    ) async throws(RequestError) -> PixelImage {
        let file = try await sources.executor.run { () throws(RequestError) in try picture.root.opened(picture.names) }
        defer { withExtendedLifetime(file) {} }
        let region = place.region(of: picture.size)
        if isForPyramid(place, picture) {
            guard let band = try await pyramid(of: picture, file: file, job: job, priority: priority).band(place) else {
                throw Self.anotherSize
            }
            bands.keep(band, for: key)
            return band
        }
        var index: RowIndex?
        if picture.isSurveyed {
            if place.factor >= surveyFactor(picture) {
                let survey = try await survey(picture, file: file, job: job, priority: priority)
                if let band = try survey.pyramid.band(place) { return band }
            } else if let region, region.y > 0 {
                // The rows at the top are found without an index.
                index = try await self.index(of: picture, file: file, job: job, priority: priority)
            }
        }
        let bytes = picture.header.header.estimatedBytes(decodingTo: place.band.size, sourceBytes: 0)
        let slot = try await admission.render(bytes: bytes, priority: priority.value)
        defer { slot.release() }
        let image = try await decode(place, region: region, index: index, file: file)
        bands.keep(image, for: key)
        if isWorthStoring(place, picture) {
            let header = picture.header
            bands.beginStoring()
            Task { [self] in
                await storeBand(image, key: key, header: header, job: job)
                bands.endStoring()
            }
        }
        return image
    }

    private func decode(
        _ place: TilePlace, region: PixelRect?, index: RowIndex?, file: OpenedFile
    ) async throws(RequestError) -> PixelImage {
        var input = ImageInput.file(file.path)
        var options = DecodeOptions.means
        options.region = region
        if let wanted = region, let index {
            let part = await encoders.run {
                Result { () throws(ImageError) in
                    try index.part(wanted.y..<(wanted.y + wanted.size.height), of: .file(file.path))
                }
            }
            if case .success(let part?) = part {
                input = .bytes(part.bytes, name: "the source")
                options.region = PixelRect(
                    x: wanted.x, y: part.firstRow, width: wanted.size.width, height: wanted.size.height)
            }
        }
        do {
            let image = try await decoder(for: place.band.size).image(
                from: input, at: Self.resizer(place.band.size), options: options)
            guard image.size == place.band.size else { throw Self.anotherSize }
            return image
        } catch {
            throw RequestError(rendering: error)
        }
    }

    private static let anotherSize = RequestError(500, code: "internal", reason: "The image has another size.")

    private static func resizer(_ size: PixelSize) -> ImageResizer {
        ImageResizer(size: size, mode: .stretch, allowsUpscaling: true)
    }

    private func decoder(for size: PixelSize) -> ImageDecoder {
        // The limit is for results. This one is bounded by its bytes.
        var limits = configuration.limits
        limits.maximumOutputSide = max(limits.maximumOutputSide, size.width, size.height)
        return ImageDecoder(limits: limits, isolation: configuration.isolation)
    }
}

/// The survey of a JPEG file: one pass that notes where its rows begin, and makes its small levels.
extension TileRenderer {
    /// The most pixels of a level that is made by a survey, as the first tile waits for it.
    private static let largestSurvey = 2_000_000

    /// The reduction of the largest level that a survey makes.
    private func surveyFactor(_ picture: Picture) -> Int {
        var factor = 4
        let most = min(bands.bandBytes / 4, Self.largestSurvey)
        while factor < 64, TilePlace.level(factor, of: picture.size).pixelCount > most { factor *= 2 }
        return factor
    }

    /// The index of a JPEG file, made at the first need; nil for a file that has none.
    private func index(
        of picture: Picture, file: OpenedFile, job: RenderJob, priority: SharedPriority
    ) async throws(RequestError) -> RowIndex? {
        if let known = bands.index(of: picture.source.key, version: picture.header.version) { return known }
        return try await survey(picture, file: file, job: job, priority: priority).index
    }

    private func survey(
        _ picture: Picture, file: OpenedFile, job: RenderJob, priority: SharedPriority
    ) async throws(RequestError) -> TileBands.Survey {
        let (source, version) = (picture.source.key, picture.header.version)
        return try await bands.surveys.value(for: picture.version, priority: priority.value) {
            [self] (priority: SharedPriority) async throws(RequestError) in
            let (factor, size) = (surveyFactor(picture), picture.size)
            let level = TilePlace.level(factor, of: size)
            let bytes = picture.header.header.estimatedBytes(decodingTo: level, sourceBytes: 0)
            let slot = try await admission.render(bytes: bytes, priority: priority.value)
            defer { slot.release() }
            // A file that cannot be read is an error of the decode of its parts.
            let found = try? await decoder(for: level).surveyed(.file(file.path), at: level)
            if Task.isCancelled { throw .cancelled }
            var index = found?.index
            if index?.size != size { index = nil }
            let pyramid = TileBands.Pyramid(levels: await levels(of: found?.image, factor, size))
            bands.keep(index, of: source, version: version)
            keepLevels(of: pyramid, picture, job)
            return TileBands.Survey(index: index, pyramid: pyramid)
        }.value
    }

    /// A level and all smaller ones.
    private func levels(of image: PixelImage?, _ factor: Int, _ size: PixelSize) async -> [(factor: Int, image: PixelImage)] {
        guard let image else { return [] }
        return await encoders.run {
            var levels = [(factor: factor, image: image)]
            while let last = levels.last, max(last.image.width, last.image.height) > 256 {
                let next = TilePlace.level(2 * last.factor, of: size)
                guard let smaller = try? Self.resizer(next).resize(last.image) else { break }
                levels.append((2 * last.factor, smaller))
            }
            return levels
        }
    }

    private func keepLevels(of pyramid: TileBands.Pyramid, _ picture: Picture, _ job: RenderJob) {
        let header = picture.header
        let all = Array(
            pyramid.bands(of: job.source.key, version: header.version, bandBytes: bands.bandBytes))
        // The small ones are kept longest.
        for band in all { bands.keep(band.image, for: band.key) }
        guard configuration.resultDisk.bytes > 0, picture.size.pixelCount >= Self.largeJPEG else { return }
        bands.beginStoring()
        Task { [self] in
            for band in all { await storeBand(band.image, key: band.key, header: header, job: job) }
            bands.endStoring()
        }
    }
}

/// The levels of an image on disk, of which tiles are made without the image: a pyramid.
///
/// Its bands are entries of the cache of results, so that its size is bounded together with theirs, and purges of the
/// source remove it.
extension TileRenderer {
    /// Images of fewer pixels are decoded anew each time.
    private static let smallPicture = 2_000_000
    /// From this number of pixels on, the reduced levels of a JPEG are stored as well. Of smaller ones, decoding costs
    /// no more.
    private static let largeJPEG = 24_000_000

    /// Whether one decode makes all levels.
    private func isForPyramid(_ place: TilePlace, _ picture: Picture) -> Bool {
        // The first scans of a progressive JPEG suffice for its small levels.
        hasPyramid(picture) && Self.pyramidFactors(picture.size).contains(place.factor)
            && (!picture.isJPEG || place.factor < 8)
    }

    /// The reductions of the levels of a pyramid, down to one that fits a tile.
    private static func pyramidFactors(_ size: PixelSize) -> [Int] {
        var factors = [1], last = 1
        while max(size.width, size.height) > 512 * last {
            last *= 2
            factors.append(last)
        }
        return factors
    }

    /// Whether all levels of an image are stored once they were made.
    private func hasPyramid(_ picture: Picture) -> Bool {
        configuration.resultDisk.bytes > 0 && !picture.hasParts && picture.size.pixelCount > Self.smallPicture
            && 4 * picture.size.pixelCount <= bands.capacity
    }

    private func isWorthStoring(_ place: TilePlace, _ picture: Picture) -> Bool {
        guard configuration.resultDisk.bytes > 0, picture.size.pixelCount > Self.smallPicture else { return false }
        if picture.isJPEG, picture.hasParts { return place.factor > 1 && picture.size.pixelCount >= Self.largeJPEG }
        return place.factor > 1 || !picture.hasParts
    }

    private func storedBand(_ key: TileBands.Key, _ place: TilePlace) async -> PixelImage? {
        guard configuration.resultDisk.bytes > 0,
            let stored = (try? await cache.values.value(forKey: key.stored, levels: .readDisk)) ?? nil,
            stored.source.version == key.version, stored.size == place.band.size
        else { return nil }
        let image = try? await decoder(for: place.band.size).image(
            from: .bytes(Array(stored.bytes.readableBytesView), name: "the cache"))
        return image?.size == place.band.size ? image : nil
    }

    private func storeBand(_ image: PixelImage, key: TileBands.Key, header: LocalRoot.Header, job: RenderJob) async {
        let isExact = key.factor == 1 && header.isLossless
        let original = sources.original(of: header)
        let bytes = await encoders.run {
            try? image.encoded(as: isExact || image.alpha != .opaque ? .png : .jpeg(quality: 0.95))
        }
        guard let bytes else { return }
        await cache.keep(
            cache.finished(bytes, image: image, original: original), forKey: key.stored, job, levels: .writeDisk)
    }

    /// Decodes an image once for all its levels, and stores these.
    private func pyramid(
        of picture: Picture, file: OpenedFile, job: RenderJob, priority: SharedPriority
    ) async throws(RequestError) -> TileBands.Pyramid {
        let version = picture.version
        return try await bands.wholes.value(for: version, priority: priority.value) {
            [self] (priority: SharedPriority) async throws(RequestError) in
            // It may have come while this one waited for the last one.
            if let pyramid = bands[pyramid: version] { return pyramid }
            let factors = Self.pyramidFactors(picture.size)
            let sizes = factors.map { TilePlace.level($0, of: picture.size) }
            let bytes = picture.header.header.estimatedBytes(decodingTo: nil, sourceBytes: 0)
            let slot = try await admission.render(bytes: bytes, priority: priority.value)
            let images: [PixelImage]
            do throws(RequestError) {
                images = try await decode(sizes, file)
                guard images.map(\.size) == sizes else { throw Self.anotherSize }
            } catch {
                slot.release()
                throw error
            }
            let pyramid = TileBands.Pyramid(levels: zip(factors, images).map { (factor: $0, image: $1) })
            guard background.begin(version) else {
                slot.release()
                return pyramid
            }
            // The place is held until its pixels are not needed any more.
            slot.keep(cost: sizes.reduce(0) { $0 + 4 * $1.pixelCount })
            bands[pyramid: version] = pyramid
            bands.beginStoring()
            Task { [self] in
                let header = picture.header
                for band in pyramid.bands(
                    of: picture.source.key, version: header.version, bandBytes: bands.bandBytes)
                {
                    await storeBand(band.image, key: band.key, header: header, job: job)
                }
                bands[pyramid: version] = nil
                slot.release()
                background.end(version)
                bands.endStoring()
            }
            return pyramid
        }.value
    }

    static func cut(_ rect: PixelRect, from image: PixelImage) throws(ImageError) -> PixelImage {
        try image.processed(by: [.crop(x: rect.x, y: rect.y, width: rect.size.width, height: rect.size.height)])
    }

    private func decode(_ sizes: [PixelSize], _ file: OpenedFile) async throws(RequestError) -> [PixelImage] {
        let first: PixelImage
        do {
            let size = sizes.first ?? PixelSize(1)
            first = try await decoder(for: size).image(from: .file(file.path), at: Self.resizer(size))
        } catch {
            throw RequestError(rendering: error)
        }
        let outcome = await encoders.run {
            Result { () throws(ImageError) in
                var images = [first]
                // Each level is made of the one before.
                for size in sizes.dropFirst() {
                    images.append(try Self.resizer(size).resize(images[images.count - 1]))
                }
                return images
            }.mapError { RequestError(rendering: $0) }
        }
        return try outcome.get()
    }
}
