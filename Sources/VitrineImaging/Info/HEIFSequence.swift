/// The picture track of an image sequence (AVIF `avis`, HEIC `hevc`).
///
/// Source: ISO/IEC 14496-12 §8.2 to §8.7; ISO/IEC 23008-12 §7. Loops: the edit list as libavif documents it.
struct HEIFSequence {
    private(set) var size: PixelSize
    private(set) var samples = 1
    private(set) var seconds: Double?
    /// Times shown, 0 for ever; for ever when the file does not say.
    private(set) var plays = 0

    /// The first track with pictures; nil when there is none.
    init?(_ reader: ByteReader, _ movie: ISOBox) {
        for track in ISOBox.children(reader, in: movie.payload) where track.type == "trak" {
            let boxes = ISOBox.children(reader, in: track.payload)
            guard let media = boxes["mdia"].map({ ISOBox.children(reader, in: $0.payload) }),
                let handler = media["hdlr"], (try? reader.fourCC(at: handler.payload.lowerBound + 8)) == "pict",
                let table = media["minf"].map({ ISOBox.children(reader, in: $0.payload) })?["stbl"],
                let header = boxes["tkhd"], header.payload.count >= 84,
                let width = try? reader.u32(at: header.payload.upperBound - 8),
                let height = try? reader.u32(at: header.payload.upperBound - 4)
            else { continue }
            size = PixelSize(width: width >> 16, height: height >> 16)  // 16.16 fixed point
            let samples = ISOBox.children(reader, in: table.payload)
            if let sizes = samples["stsz"], let count = try? reader.u32(at: sizes.payload.lowerBound + 8) {
                self.samples = max(1, count)
            }
            if let box = media["mdhd"] { seconds = HEIFSequence.duration(reader, box.payload) }
            plays = HEIFSequence.plays(reader, boxes, header) ?? 0
            return
        }
        return nil
    }

    func apply(to info: inout ImageInfo) {
        info.colorModel = .yCbCr
        info.frameCount = samples
        guard samples > 1 else { return }
        info.duration = seconds ?? 0
        info.loopCount = plays
    }

    private static func duration(_ reader: ByteReader, _ payload: Range<Int>) -> Double? {
        let at = payload.lowerBound
        guard let version = try? reader.u8(at: at) else { return nil }
        let scale = try? reader.u32(at: at + (version == 1 ? 20 : 12))
        let units = version == 1 ? try? reader.u64(at: at + 24) : try? reader.u32(at: at + 16)
        guard let scale, scale > 0, let units else { return nil }
        return Double(units) / Double(scale)
    }

    private static func plays(_ reader: ByteReader, _ track: [ISOBox], _ header: ISOBox) -> Int? {
        guard let edits = track["edts"].map({ ISOBox.children(reader, in: $0.payload) })?["elst"],
            let flags = try? reader.u32(at: edits.payload.lowerBound), flags & 1 != 0
        else { return track["edts"] == nil ? nil : 1 }
        let at = header.payload.lowerBound
        guard let version = try? reader.u8(at: at),
            let total = version == 1 ? try? reader.u64(at: at + 28) : try? reader.u32(at: at + 20),
            total != (version == 1 ? Int.max : 0xFFFF_FFFF),
            let segment = flags >> 24 == 1
                ? try? reader.u64(at: edits.payload.lowerBound + 8) : try? reader.u32(at: edits.payload.lowerBound + 8),
            segment > 0
        else { return 0 }
        return max(1, total / segment)
    }
}
