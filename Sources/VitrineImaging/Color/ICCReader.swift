/// Big-endian numbers out of a profile; every read outside it is 0, so that no file can make one trap.
///
/// Source: ICC.1:2022 §4 (number types), §7.3 (tag table).
struct ICCReader: Sendable {
    let bytes: [UInt8]

    func u8(_ offset: Int) -> Int { offset >= 0 && offset < bytes.count ? Int(bytes[offset]) : 0 }
    func u16(_ offset: Int) -> Int { u8(offset) << 8 | u8(offset &+ 1) }
    func u32(_ offset: Int) -> Int { u16(offset) << 16 | u16(offset &+ 2) }
    /// s15Fixed16Number.
    func fixed(_ offset: Int) -> Double { Double(Int32(truncatingIfNeeded: u32(offset))) / 65_536 }
    /// Four characters as a number, for comparing with ``signature(_:)``.
    static func signature(_ text: StaticString) -> Int {
        text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | Int($1) } }
    }

    func matches(_ text: StaticString, at offset: Int) -> Bool { u32(offset) == Self.signature(text) }

    /// Where the data of a tag stands; nil if it is absent or reaches outside the profile.
    func tag(_ name: StaticString) -> Range<Int>? {
        let wanted = Self.signature(name)
        for i in 0..<min(u32(128), 1_024) {
            let entry = 132 + 12 * i
            guard entry + 12 <= bytes.count else { return nil }
            guard u32(entry) == wanted else { continue }
            let start = u32(entry + 4)
            let count = u32(entry + 8)
            guard count >= 8, start >= 128, start <= bytes.count, count <= bytes.count - start else { return nil }
            return start..<(start + count)
        }
        return nil
    }
}
