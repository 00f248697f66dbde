import Synchronization
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineJPEG

/// The place of a tile: a rectangle of the image that is reduced by a power of two.
///
/// Each reduced image, a level, is decoded in bands, all of whose tiles are cut from the same pixels. A band has some
/// rows of its level, whole ones unless the level is very wide. It is short where parts of the file can be decoded
/// alone, so that each tile waits for little work and needs little memory.
struct TilePlace: Sendable, Hashable {
    /// The longest side of a tile; larger results are made like other images.
    static let longestSide = 1_024
    /// Bands end at multiples of this number of rows, at which most viewers' tiles end as well.
    private static let bandStep = 512
    /// Levels of at most so many pixels are one band.
    private static let smallLevel = 1_500_000

    /// Pixels of the image for one of the level, along a side.
    let factor: Int
    /// The size of the level.
    let level: PixelSize
    /// The tile in the level.
    let tile: PixelRect
    /// The part of the level that is decoded together.
    let band: PixelRect

    /// nil for a part that is not scaled by a power of two, or does not begin at a pixel of the level.
    ///
    /// - Parameters:
    ///   - bandBytes: The most bytes of a band.
    ///   - hasParts: Whether parts of the file can be decoded alone.
    init?(_ part: IIIFParameters.Part, of whole: PixelSize, bandBytes: Int, hasParts: Bool) {
        guard max(part.size.width, part.size.height) <= Self.longestSide else { return nil }
        func reduced(_ side: Int, _ factor: Int) -> Int { (side + factor - 1) / factor }
        var factor = 1
        while reduced(part.region.width, factor) > part.size.width { factor *= 2 }
        let tile = PixelRect(
            x: part.x / factor, y: part.y / factor, width: part.size.width, height: part.size.height)
        let (right, bottom) = (part.x + part.region.width, part.y + part.region.height)
        guard reduced(part.region.width, factor) == part.size.width,
            reduced(part.region.height, factor) == part.size.height, part.x % factor == 0, part.y % factor == 0,
            right % factor == 0 || right == whole.width, bottom % factor == 0 || bottom == whole.height
        else { return nil }
        let level = Self.level(factor, of: whole)
        guard let step = Self.step(of: level, bandBytes: bandBytes, hasParts: hasParts) else { return nil }
        let (x, y) = (tile.x / step.width * step.width, tile.y / step.height * step.height)
        let band = PixelRect(
            x: x, y: y, width: min(step.width, level.width - x), height: min(step.height, level.height - y))
        // A tile that reaches into the next band would need both.
        guard tile.x + tile.size.width <= x + band.size.width, tile.y + tile.size.height <= y + band.size.height
        else { return nil }
        (self.factor, self.level, self.tile, self.band) = (factor, level, tile, band)
    }

    static func level(_ factor: Int, of whole: PixelSize) -> PixelSize {
        PixelSize(width: (whole.width + factor - 1) / factor, height: (whole.height + factor - 1) / factor)
    }

    /// The size of the bands of a level but those at its edges; nil if there is no memory for one.
    static func step(of level: PixelSize, bandBytes: Int, hasParts: Bool) -> PixelSize? {
        let most = bandBytes / max(1, 4 * level.width)
        if most >= level.height, !hasParts || level.pixelCount <= smallLevel { return level }
        if most >= bandStep {
            return PixelSize(width: level.width, height: hasParts ? bandStep : most / bandStep * bandStep)
        }
        let width = bandBytes / (4 * bandStep) / bandStep * bandStep
        return width > 0 ? PixelSize(width: width, height: bandStep) : nil
    }

    /// The bands of a level.
    static func bands(of level: PixelSize, step: PixelSize) -> [PixelRect] {
        stride(from: 0, to: level.height, by: step.height).flatMap { y in
            stride(from: 0, to: level.width, by: step.width).map { x in
                PixelRect(
                    x: x, y: y, width: min(step.width, level.width - x), height: min(step.height, level.height - y))
            }
        }
    }

    /// The band in pixels of the image; nil for all of them.
    func region(of whole: PixelSize) -> PixelRect? {
        guard band.size != level else { return nil }
        let (left, top) = (band.x * factor, band.y * factor)
        return PixelRect(
            x: left, y: top, width: min(whole.width - left, band.size.width * factor),
            height: min(whole.height - top, band.size.height * factor))
    }
}

/// The bands that were used last, and the headers of their images. All limits hold at every moment.
final class TileBands: Sendable {
    struct Key: Hashable, Sendable {
        let source: CacheKey
        /// Of the source.
        let version: String
        let factor: Int
        let x: Int
        let y: Int

        init(_ source: CacheKey, version: String, factor: Int, band: PixelRect) {
            (self.source, self.version, self.factor, x, y) = (source, version, factor, band.x, band.y)
        }

        /// Where the band is kept on disk. Another version of the source replaces it.
        var stored: CacheKey { source.appending("band-1").appending("\(factor) \(x) \(y)") }
    }

    /// The result of one pass over a JPEG file.
    struct Survey: Sendable {
        /// nil for a file that has none.
        let index: RowIndex?
        /// The small levels; none of a file that cannot be decoded.
        let pyramid: Pyramid
    }

    /// An image and its reductions, the largest first.
    struct Pyramid: Sendable {
        let levels: [(factor: Int, image: PixelImage)]

        /// The band of a tile; nil if its level was not made.
        func band(_ place: TilePlace) throws(RequestError) -> PixelImage? {
            guard let level = levels.first(where: { $0.factor == place.factor })?.image, level.size == place.level
            else { return nil }
            if place.band.size == level.size { return level }
            do { return try TileRenderer.cut(place.band, from: level) } catch { throw RequestError(rendering: error) }
        }

        /// The bands of all levels, of which each is cut when it is asked for.
        func bands(
            of source: CacheKey, version: String, bandBytes: Int
        ) -> some Sequence<(key: Key, image: PixelImage)> {
            levels.lazy.flatMap { factor, image in
                let step = TilePlace.step(of: image.size, bandBytes: bandBytes, hasParts: true) ?? image.size
                return TilePlace.bands(of: image.size, step: step).lazy.compactMap { rect in
                    let band = rect.size == image.size ? image : try? TileRenderer.cut(rect, from: image)
                    return band.map { (key: Key(source, version: version, factor: factor, band: rect), image: $0) }
                }
            }
        }
    }

    private struct Entry {
        var image: PixelImage
        var used: UInt64
    }

    private struct State {
        var bands: [Key: Entry] = [:]
        var bytes = 0
        var clock: UInt64 = 0
        var headers: [CacheKey: (version: String, header: LocalRoot.Header)] = [:]
        var indexes: [CacheKey: (version: String, index: RowIndex?)] = [:]
        var indexBytes = 0
        /// The pyramids that are being stored.
        var pyramids: [CacheKey: Pyramid] = [:]
        var storing = 0
        /// Fulfilled when none is stored any more.
        var stored = AsyncPromise<Void>()
    }

    /// The bytes that the indexes of JPEG files may have.
    private static let mostIndexBytes = 8 << 20
    /// Headers take a few hundred bytes each.
    private static let mostHeaders = 4_096

    private let state = Mutex(State())
    /// The bytes that all bands may have.
    let capacity: Int
    /// The decodes under way.
    let work: SharedWork<Key, PixelImage>
    /// The surveys under way.
    let surveys: SharedWork<CacheKey, Survey>
    /// The decodes of whole images under way.
    let wholes: SharedWork<CacheKey, Pyramid>

    /// - Parameter overloaded: Returns the error of callers whose time has passed in queues of this server.
    init(capacity: Int, overloaded: @escaping @Sendable () -> RequestError) {
        self.capacity = capacity
        work = SharedWork(overloaded: overloaded)
        surveys = SharedWork(overloaded: overloaded)
        wholes = SharedWork(overloaded: overloaded)
    }

    /// The bytes of a band, at most: two fit at once.
    var bandBytes: Int { capacity / 2 }

    /// The bytes of all bands.
    var bytes: Int { state.withLock { $0.bytes } }

    subscript(key: Key) -> PixelImage? {
        state.withLock { state in
            state.clock += 1
            guard var entry = state.bands[key] else { return nil }
            entry.used = state.clock
            state.bands[key] = entry
            return entry.image
        }
    }

    func keep(_ image: PixelImage, for key: Key) {
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

    private static func bytes(of image: PixelImage) -> Int { image.bytesPerRow * image.height }

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

    // MARK: Indexes

    /// The index of a JPEG file; nil if it is not known whether there is one.
    func index(of source: CacheKey, version: String) -> RowIndex?? {
        state.withLock { state in
            guard let kept = state.indexes[source], kept.version == version else { return nil }
            return .some(kept.index)
        }
    }

    func keep(_ index: RowIndex?, of source: CacheKey, version: String) {
        state.withLock { state in
            func bytes(_ index: RowIndex?) -> Int { (index?.byteCount ?? 0) + 256 }
            if let old = state.indexes.removeValue(forKey: source) { state.indexBytes -= bytes(old.index) }
            if state.indexBytes + bytes(index) > Self.mostIndexBytes { (state.indexes, state.indexBytes) = ([:], 0) }
            state.indexes[source] = (version, index)
            state.indexBytes += bytes(index)
        }
    }

    // MARK: Bands on disk

    /// The pyramid of a version of an image while it is being stored. Tiles are cut from it meanwhile.
    subscript(pyramid version: CacheKey) -> Pyramid? {
        get { state.withLock { $0.pyramids[version] } }
        set {
            // The old one is freed behind the lock.
            let old = state.withLock { state in
                defer { state.pyramids[version] = newValue }
                return state.pyramids[version]
            }
            withExtendedLifetime(old) {}
        }
    }

    func beginStoring() { state.withLock { $0.storing += 1 } }

    func endStoring() {
        let stored = state.withLock { state -> AsyncPromise<Void>? in
            state.storing -= 1
            guard state.storing == 0 else { return nil }
            defer { state.stored = AsyncPromise() }
            return state.stored
        }
        stored?.fulfill(())
    }

    /// Returns when no band is on its way to the disk.
    func whenStored() async {
        await state.withLock { $0.storing > 0 ? $0.stored : nil }?.value()
    }
}
