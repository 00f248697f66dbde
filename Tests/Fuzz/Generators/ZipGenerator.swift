import TestSupport
import VitrineImaging

/// ZIP archives whose entries and directory are changed.
extension FuzzGenerators {
    static func zip(_ r: inout FuzzRandom, _ base: [[ZipSample.Entry]]) -> [UInt8] {
        var entries = r.pick(base)
        for _ in 0..<r.below(4) {
            let i = r.below(entries.count)
            switch r.below(9) {
            case 0:
                entries[i].name = r.pick([
                    "mimetype", "META-INF/container.xml", "[Content_Types].xml", "_rels/.rels", "ComicInfo.xml",
                    "preview.png", "a/b.opf", "../x.jpg", "", "/", "1.jpg", "word/a", "res/mipmap/ic_launcher.png",
                    "AndroidManifest.xml",
                ])
            case 1: entries[i].method = r.pick([0, 8, 9, 12, 14, 99])
            case 2: entries[i].size = r.size()
            case 3: entries[i].flags = r.pick([0, 1, 8, 0x40, 0x800])
            case 4: entries.append(entries[i])
            case 5:
                var c = entries[i].content;
                if !c.isEmpty {
                    for _ in 0..<3 {
                        c[r.below(c.count)] = r.pick([
                            UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"),
                            UInt8(ascii: "&"), UInt8(ascii: ";"), UInt8(ascii: "!"), UInt8(ascii: "["),
                            UInt8(ascii: "/"), 0, 255,
                        ])
                    }; entries[i].content = c
                }
            case 6:
                let s = RandomDeflate.stream(r.below(3_000), &r, spoil: r.chance(3))
                entries[i].content = s.bytes; entries[i].method = 8; entries[i].size = s.output.count
            case 7: entries[i].unixMode = r.pick([0o120777, 0o100644, 0o040755, 0])
            default:
                var c = entries[i].content;
                if c.count > 4 {
                    let a = r.below(c.count); c.removeSubrange(a..<min(c.count, a + 1 + r.below(20)));
                    entries[i].content = c
                }
            }
        }
        var sample = ZipSample(entries)
        if r.chance(6) { sample.isZip64 = true }
        if r.chance(8) { sample.prefix = r.bytes(r.below(30)) }
        if r.chance(8) { sample.comment = "PK\u{5}\u{6} comment" }
        var bytes = sample.bytes
        if r.chance(4) {
            for _ in 0..<(1 + r.below(3)) {
                let n = min(bytes.count, 80); bytes[bytes.count - 1 - r.below(n)] = r.byte()
            }
        }
        return bytes
    }
}
