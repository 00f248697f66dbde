import Synchronization
import VitrineCache
import VitrineCore
import VitrineImaging

/// The place of a tile: a rectangle of the picture that is reduced by a power of two.
///
/// Each reduced picture, a level, is decoded in bands of rows, all of whose tiles are cut from the same pixels. A band
/// of a large level is short, so that it needs little memory.
struct TilePlace: Sendable, Hashable {
    /// The longest side of a tile; larger results are made like other images.
    static let longestSide = 1_024
    /// Bands end at multiples of this number of rows, at which most viewers' tiles end as well.
    private static let bandStep = 512

    /// Pixels of the picture for one of the level, along a side.
    let factor: Int
    /// The size of the level.
    let level: PixelSize
    /// The tile in the level.
    let tile: PixelRect
    /// The rows of the level that are decoded together.
    let rows: Range<Int>

    /// nil for a part that is not scaled by a power of two, or does not begin at a pixel of the level.
    ///
    /// - Parameter bandBytes: The most bytes of a band.
    init?(_ part: IIIFParameters.Part, of whole: PixelSize, bandBytes: Int) {
        guard max(part.size.width, part.size.height) <= Self.longestSide else { return nil }
        func reduced(_ side: Int, _ factor: Int) -> Int { (side + factor - 1) / factor }
        var factor = 1
        while reduced(part.region.width, factor) > part.size.width { factor *= 2 }
        let level = PixelSize(width: reduced(whole.width, factor), height: reduced(whole.height, factor))
        let tile = PixelRect(
            x: part.x / factor, y: part.y / factor, width: part.size.width, height: part.size.height)
        let (right, bottom) = (part.x + part.region.width, part.y + part.region.height)
        guard reduced(part.region.width, factor) == part.size.width,
            reduced(part.region.height, factor) == part.size.height, part.x % factor == 0, part.y % factor == 0,
            right % factor == 0 || right == whole.width, bottom % factor == 0 || bottom == whole.height
        else { return nil }
        let most = bandBytes / max(1, 4 * level.width)
        let step = most >= level.height ? level.height : most / Self.bandStep * Self.bandStep
        guard step > 0 else { return nil }
        let first = tile.y / step * step
        // A tile that reaches into the next band would need both.
        guard tile.y + tile.size.height <= first + step else { return nil }
        (self.factor, self.level, self.tile) = (factor, level, tile)
        rows = first..<min(level.height, first + step)
    }

    /// The rows in pixels of the picture; nil for all of them.
    func region(of whole: PixelSize) -> PixelRect? {
        guard rows.count < level.height else { return nil }
        let top = rows.lowerBound * factor
        return PixelRect(
            x: 0, y: top, width: whole.width, height: min(whole.height, rows.upperBound * factor) - top)
    }

    /// The size of the band.
    var bandSize: PixelSize { PixelSize(width: level.width, height: rows.count) }
}

/// The bands that were used last, and the headers of their pictures. All limits hold at every moment.
final class TileBands: Sendable {
    struct Key: Hashable, Sendable {
        let source: CacheKey
        /// Of the source.
        let version: String
        let factor: Int
        let firstRow: Int
    }

    private struct Entry {
        var image: Image
        var used: UInt64
    }

    private struct State {
        var bands: [Key: Entry] = [:]
        var bytes = 0
        var clock: UInt64 = 0
        var headers: [CacheKey: (version: String, header: LocalRoot.Header)] = [:]
    }

    /// Headers take a few hundred bytes each.
    private static let mostHeaders = 4_096

    private let state = Mutex(State())
    /// The bytes that all bands may have.
    let capacity: Int
    /// The decodes under way.
    let work: SharedWork<Key, Image>

    /// - Parameter overloaded: Returns the error of callers whose time has passed in queues of this server.
    init(capacity: Int, overloaded: @escaping @Sendable () -> RequestError) {
        self.capacity = capacity
        work = SharedWork(overloaded: overloaded)
    }

    /// The bytes of a band, at most: three fit at once.
    var bandBytes: Int { capacity / 3 }

    /// The bytes of all bands.
    var bytes: Int { state.withLock { $0.bytes } }

    subscript(key: Key) -> Image? {
        state.withLock { state in
            state.clock += 1
            guard var entry = state.bands[key] else { return nil }
            entry.used = state.clock
            state.bands[key] = entry
            return entry.image
        }
    }

    func keep(_ image: Image, for key: Key) {
        let bytes = Self.bytes(of: image)
        guard bytes <= capacity else { return }
        // Images are freed behind the lock.
        let dropped = state.withLock { state -> [Entry] in
            var dropped: [Entry] = []
            if let old = state.bands.removeValue(forKey: key) {
                state.bytes -= Self.bytes(of: old.image)
                dropped.append(old)
            }
            while state.bytes + bytes > capacity, let oldest = state.bands.min(by: { $0.value.used < $1.value.used }) {
                state.bands[oldest.key] = nil
                state.bytes -= Self.bytes(of: oldest.value.image)
                dropped.append(oldest.value)
            }
            state.clock += 1
            state.bands[key] = Entry(image: image, used: state.clock)
            state.bytes += bytes
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    private static func bytes(of image: Image) -> Int { image.bytesPerRow * image.height }

    func header(of source: CacheKey, version: String) -> LocalRoot.Header? {
        state.withLock { state in
            guard let kept = state.headers[source], kept.version == version else { return nil }
            return kept.header
        }
    }

    func keep(_ header: LocalRoot.Header, of source: CacheKey) {
        state.withLock { state in
            if state.headers.count >= Self.mostHeaders { state.headers = [:] }
            state.headers[source] = (header.version, header)
        }
    }
}

/// Tiles of local pictures.
extension Renderer {
    /// Returns a tile of a local picture that is cut from a band of its level; nil for other images, and for pictures
    /// that have changed meanwhile.
    ///
    /// - Throws: 400 for a part that the picture does not have, and the errors of its decode.
    func tile(_ job: RenderJob, _ priority: SharedPriority) async throws(RequestError) -> Made? {
        guard job.kind == .image, tiles.capacity > 0, let parameters = job.options.sourceRules?.iiif,
            case .local(let names) = job.source.place, let root = sources.root, job.options.page == 1,
            let header = try await header(of: job.source, names, root)
        else { return nil }
        let size = header.header.size
        let part = try parameters.part(of: size)
        guard parameters.degrees == 0, !parameters.isMirrored, !job.options.grayscale, !header.header.isVector,
            let place = TilePlace(part, of: size, bandBytes: tiles.bandBytes)
        else { return nil }
        let began = ContinuousClock.now
        let key = TileBands.Key(
            source: job.source.key, version: header.version, factor: place.factor, firstRow: place.rows.lowerBound)
        guard let band = try await band(key, place, names, root, header, priority) else { return nil }
        let decoded = ContinuousClock.now
        let plan = EncodingPlan(job.options, negotiated: nil, header.header, configuration.settings)
        var original = SourceTable.Original(
            bytes: [], version: header.version, expires: configuration.clock.now + configuration.sources.localFreshness,
            isStorable: true, isStale: false, lastModified: header.lastModified, isLocal: true)
        original.canonicalPath = try parameters.canonicalPath(for: size)
        let rect = place.tile, firstRow = place.rows.lowerBound
        let outcome = await encoders.run {
            Result { () throws(ImageError) -> (Image, [UInt8]) in
                let image = try band.processed(by: [
                    .crop(x: rect.x, y: rect.y - firstRow, width: rect.size.width, height: rect.size.height)
                ])
                return (image, try plan.encode(image, metadata: nil))
            }.mapError { RequestError(rendering: $0) }
        }
        let (image, bytes) = try outcome.get()
        var made = Made(image: finished(bytes, image, original))
        await store(made.image, job, original)
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
        let limits = configuration.limits, most = configuration.sources.maximumBytes, tiles = tiles
        return try await sources.executor.run { () throws(RequestError) in
            let version = try root.version(of: names)
            if let kept = tiles.header(of: source.key, version: version) { return kept }
            guard let header = try root.header(of: names, limits, upTo: most) else { return nil }
            tiles.keep(header, of: source.key)
            return header
        }
    }

    private func band(
        _ key: TileBands.Key, _ place: TilePlace, _ names: [String], _ root: LocalRoot, _ header: LocalRoot.Header,
        _ priority: SharedPriority
    ) async throws(RequestError) -> Image? {
        if let band = tiles[key] { return band }
        // A damaged band is not decoded again for each of its tiles.
        let failureKey = key.source.appending(key.version).appending("band \(key.factor) \(key.firstRow)")
        if let failure = failures[failureKey] { throw failure }
        let (band, _) = try await tiles.work.value(for: key, priority: priority.value) {
            [self] (priority: SharedPriority) async throws(RequestError) in
            // It may have come while this one waited for the last one.
            if let band = tiles[key] { return band }
            let region = place.region(of: header.header.size)
            let bytes = header.header.estimatedBytes(
                decodingTo: region == nil ? place.level : place.bandSize, sourceBytes: 0)
            let slot = try await admission.render(bytes: bytes, priority: priority.value)
            defer { slot.release() }
            do throws(RequestError) {
                let image = try await decode(place, region, names, root)
                tiles.keep(image, for: key)
                return image
            } catch {
                failures.add(error, for: failureKey)
                throw error
            }
        }
        // The version was looked at before the file was opened.
        let now = try await sources.executor.run { () throws(RequestError) in try root.version(of: names) }
        return now == header.version ? band : nil
    }

    private func decode(
        _ place: TilePlace, _ region: PixelRect?, _ names: [String], _ root: LocalRoot
    ) async throws(RequestError) -> Image {
        let file = try await sources.executor.run { () throws(RequestError) in try root.opened(names) }
        var options = DecodeOptions()
        options.region = region
        let size = place.bandSize
        let resizer = ImageResizer(size: size, mode: .fill, allowsUpscaling: true)
        do {
            // The limit is for results. This one is bounded by its bytes.
            var limits = configuration.limits
            limits.maximumOutputSide = max(limits.maximumOutputSide, size.width, size.height)
            let decoder = ImageDecoder(limits: limits, isolation: configuration.isolation)
            let image = try await decoder.image(from: .file(file.path), at: resizer, options: options)
            withExtendedLifetime(file) {}
            guard image.size == size else { throw RequestError(500, "internal", "The picture has another size.") }
            return image
        } catch {
            throw RequestError(rendering: error)
        }
    }
}
