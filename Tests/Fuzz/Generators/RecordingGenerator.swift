import TestSupport
import VitrineImaging

/// Containers of recordings with a picture, whose lengths are wrong at times.
extension FuzzGenerators {
    static func recording(_ r: inout FuzzRandom) -> [UInt8] {
        // At times a picture with a right header, without which no cover is found.
        let starts: [[UInt8]] = [
            [0xFF, 0xD8, 0xFF, 0xD9], [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10], Array("GIF89a".utf8), Array("BM".utf8),
        ]
        let picture = r.chance(4) ? r.pick(starts) + r.bytes(r.below(40)) : png(&r)
        func wide(_ t: String) -> [UInt8] { t.utf8.flatMap { [$0, 0] } }
        func lie(_ n: Int) -> Int { r.chance(5) ? max(0, n + r.range(-24...24)) : r.chance(12) ? r.size() : n }
        switch r.below(6) {
        case 0:  // ASF
            func object(_ guid: [UInt8], _ body: [UInt8]) -> [UInt8] {
                guid + [UInt8](repeating: 0, count: 8) + little(lie(body.count + 24), 8) + body
            }
            let name = wide("WM/Picture\0")
            let value = [3] + little(lie(picture.count), 4) + wide("image/jpeg\0") + wide("d\0") + picture
            var objects: [UInt8] = []
            for _ in 0..<(1 + r.below(3)) {
                if r.flag() {
                    var body = little(1 + r.below(3), 2)
                    for _ in 0..<2 {
                        body += little(lie(name.count), 2) + name + little(1, 2) + little(lie(value.count), 2) + value
                    }
                    objects += object([0x40, 0xA4, 0xD0, 0xD2, 0x07, 0xE3, 0xD2, 0x11], body)
                } else {
                    var body = little(1 + r.below(3), 2)
                    for _ in 0..<2 {
                        body +=
                            little(0, 2) + little(0, 2) + little(lie(name.count), 2) + little(1, 2)
                            + little(lie(value.count), 4) + name + value
                    }
                    let inner = object([0x94, 0x1C, 0x23, 0x44, 0x98, 0x94, 0xD1, 0x49], body)
                    objects += object(
                        [0xB5, 0x03, 0xBF, 0x5F, 0x2E, 0xA9, 0xCF, 0x11], [UInt8](repeating: 0, count: 22) + inner)
                }
            }
            return [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11] + [UInt8](repeating: 0, count: 8)
                + little(lie(30 + objects.count), 8) + little(3, 4) + [1, 2] + objects
        case 1:  // Matroska
            func size(_ n: Int) -> [UInt8] {
                r.chance(6) ? [0xFF] : n < 127 ? [UInt8(0x80 | n)] : [0x10 | UInt8(n >> 24 & 15)] + big(n & 0xFFFFFF, 3)
            }
            func element(_ id: [UInt8], _ body: [UInt8]) -> [UInt8] { id + size(lie(body.count)) + body }
            let file = element(
                [0x61, 0xA7],
                element([0x46, 0x6E], Array("cover.jpg".utf8)) + element([0x46, 0x60], Array("image/jpeg".utf8))
                    + element([0x46, 0x5C], picture))
            let attachments = element([0x19, 0x41, 0xA4, 0x69], file + file)
            let seek = element(
                [0x11, 0x4D, 0x9B, 0x74],
                element(
                    [0x4D, 0xBB],
                    element([0x53, 0xAB], [0x19, 0x41, 0xA4, 0x69])
                        + element([0x53, 0xAC], big(lie(60), 1 + r.below(8)))))
            return element([0x1A, 0x45, 0xDF, 0xA3], r.bytes(20))
                + element([0x18, 0x53, 0x80, 0x67], seek + r.bytes(r.below(10)) + attachments)
        case 2:  // ID3
            let version = 2 + r.below(3)
            func safe(_ n: Int) -> [UInt8] {
                [UInt8(n >> 21 & 127), UInt8(n >> 14 & 127), UInt8(n >> 7 & 127), UInt8(n & 127)]
            }
            let body =
                version == 2
                ? [0] + Array("JPG".utf8) + [3, 0] + picture
                : [UInt8(r.below(4))] + Array("image/jpeg".utf8) + [0, 3] + r.bytes(r.below(6)) + [0] + picture
            var frames: [UInt8] = []
            for _ in 0..<(1 + r.below(3)) {
                let n = lie(body.count)
                frames +=
                    version == 2
                    ? Array("PIC".utf8) + big(n, 3) + body
                    : Array("APIC".utf8) + (version == 4 && r.flag() ? safe(n) : big(n, 4))
                        + big(r.chance(2) ? 0 : r.below(256), 2) + body
            }
            let ext: [UInt8] = r.chance(4) ? big(r.size(), 4) + r.bytes(6) : []
            var out =
                Array("ID3".utf8) + [UInt8(version), 0, UInt8(r.chance(2) ? 0 : r.below(256))]
                + safe(lie(ext.count + frames.count)) + ext + frames
            if r.chance(3) { out += Array("fLaC".utf8) + r.bytes(60) }
            if r.chance(3) { out += Array("APETAGEX".utf8) + r.bytes(24) }
            return out
        case 3:  // FLAC, Vorbis in Ogg
            let block =
                big(3, 4) + big(lie(10), 4) + Array("image/jpeg".utf8) + big(lie(0), 4)
                + [UInt8](repeating: 0, count: 16) + big(lie(picture.count), 4) + picture
            func comments() -> [UInt8] {
                let text =
                    "METADATA_BLOCK_PICTURE=" + "AAAAAwAAAAppbWFnZS9qcGVnAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE/9j/2Q=="
                let c = Array(text.utf8)
                return little(lie(3), 4) + Array("abc".utf8) + little(lie(2), 4) + little(lie(c.count), 4) + c
                    + little(lie(10), 4) + Array("COVERART=/".utf8)
            }
            if r.flag() {
                var out = Array("fLaC".utf8)
                out += [6] + big(lie(block.count), 3) + block
                let c = comments()
                return out + [0x84] + big(lie(c.count), 3) + c
            }
            let c = Array("\u{3}vorbis".utf8) + comments()
            func page(_ packet: [UInt8], _ n: Int) -> [UInt8] {
                var table: [UInt8] = [], left = packet.count
                while left >= 255 { table.append(255); left -= 255 }
                table.append(UInt8(left))
                return Array("OggS".utf8) + [0, 0] + [UInt8](repeating: 0, count: 8) + little(7, 4) + little(n, 4)
                    + little(0, 4) + [UInt8(table.count)] + table + packet
            }
            return page(Array("\u{1}vorbis".utf8) + r.bytes(23), 0) + page(c, 1) + (r.flag() ? page(c, 2) : [])
        case 4:  // MP4
            func box(_ t: String, _ b: [UInt8]) -> [UInt8] { big(lie(b.count + 8), 4) + Array(t.utf8) + b }
            let data = box("data", big(13, 4) + big(0, 4) + picture)
            let meta =
                (r.flag() ? big(0, 4) : []) + box("hdlr", r.bytes(25))
                + box("ilst", box("covr", data + data) + box("covr", data))
            return box("ftyp", Array("M4A \0\0\0\0".utf8))
                + box("moov", box("udta", box("meta", meta)) + box("meta", meta))
        default:  // APE at the end
            var items: [UInt8] = []
            for _ in 0..<(1 + r.below(3)) {
                let v = Array("cover.jpg\0".utf8) + picture;
                items += little(lie(v.count), 4) + little(2, 4) + Array("Cover Art (Front)\0".utf8) + v
            }
            let footer =
                Array("APETAGEX".utf8) + little(2_000, 4) + little(lie(items.count + 32), 4) + little(lie(2), 4)
                + r.bytes(12)
            var out = r.bytes(40) + items + footer
            if r.chance(3) { out += Array("000123LYRICS200".utf8) }
            if r.chance(3) { out += Array("TAG".utf8) + r.bytes(125) }
            return out
        }
    }
}
