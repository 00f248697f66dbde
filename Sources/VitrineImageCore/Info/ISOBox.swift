/// A box of the ISO base media file format.
///
/// Source: ISO/IEC 14496-12 §4.2.
package struct ISOBox {
    /// Boxes of one level looked at.
    package static let maximumSiblings = 4_096

    package var type: FourCC
    /// The range behind the box's own header, cut to the range of its parent.
    package var payload: Range<Int>

    /// The boxes that stand side by side in `range`; ends where they stop making sense.
    package static func children(_ reader: ByteReader, in range: Range<Int>) -> [ISOBox] {
        var boxes: [ISOBox] = []
        var offset = range.lowerBound
        while boxes.count < maximumSiblings, offset <= range.upperBound &- 8,
            let size32 = try? reader.u32(at: offset), let type = try? reader.fourCC(at: offset &+ 4)
        {
            var (size, header) = (size32, 8)
            if size32 == 1 {
                guard let size64 = try? reader.u64(at: offset &+ 8) else { break }
                (size, header) = (size64, 16)
            } else if size32 == 0 {
                size = range.upperBound &- offset  // to the end
            }
            guard size >= header else { break }
            let end = min(range.upperBound, size > range.upperBound &- offset ? range.upperBound : offset &+ size)
            guard offset &+ header <= end else { break }
            boxes.append(ISOBox(type: type, payload: Range(from: offset &+ header, to: end)))
            offset = end
        }
        return boxes
    }

    /// The payload behind version and flags of a full box; nil if it is too short to have them.
    package var fullPayload: Range<Int>? {
        payload.count >= 4 ? Range(from: payload.lowerBound &+ 4, to: payload.upperBound) : nil
    }
}

extension [ISOBox] {
    /// The first box of a type.
    package subscript(type: FourCC) -> ISOBox? { first { $0.type == type } }
}
