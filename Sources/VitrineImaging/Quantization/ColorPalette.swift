/// Few colours that stand for many.
///
/// The boxes of colour space with the least variance (``ColorBoxes``) give the colours; rounds of k-means settle the
/// borders between them (S. Lloyd, "Least Squares Quantization in PCM", IEEE Transactions on Information Theory 1982).
struct ColorPalette {
    /// A colour, its channels from 0 to 255, and how many of the counted pixels it stands for.
    struct Entry {
        var color: SIMD3<Float>
        var weight: Float
    }

    /// The commonest first; none when no pixel counted.
    private(set) var entries: [Entry]

    /// - Parameters:
    ///   - count: How many colours at the most; none when it is not positive.
    ///   - rounds: How often the borders move. Each costs a comparison of every occupied cell with every colour.
    init(_ histogram: ColorHistogram, count: Int, rounds: Int = 4) {
        guard count > 0 else {
            entries = []
            return
        }
        entries = ColorBoxes(histogram, count: count).sums.map(Entry.init)
        if rounds > 0, entries.count > 1 {
            let cells = histogram.sums.filter { $0[0] > 0 }.map(Entry.init)
            for _ in 0..<rounds { settle(cells) }
        }
        entries.sort { $0.weight > $1.weight }
    }

    /// The colours as opaque pixels, red in the lowest byte.
    var pixels: [UInt32] { entries.map { PixelMath.straight($0.rounded) } }

    /// Moves every colour to the mean of the cells that are nearest to it.
    private mutating func settle(_ cells: [Entry]) {
        var sums = [SIMD4<Double>](repeating: .zero, count: entries.count)
        entries.withUnsafeBufferPointer { entries in
            for cell in cells {
                var best = 0, least = Float.infinity
                for index in entries.indices {
                    let d = entries[index].color - cell.color
                    let distance = (d * d).sum()
                    if distance < least { (best, least) = (index, distance) }
                }
                let color = cell.color * cell.weight
                sums[best] += SIMD4(Double(cell.weight), Double(color.x), Double(color.y), Double(color.z))
            }
        }
        entries = sums.filter { $0[0] > 0 }.map(Entry.init)
    }
}

extension ColorPalette.Entry {
    /// The mean of colours, from their count and their sums of red, green and blue.
    init(_ sum: SIMD4<Double>) {
        let mean = sum / sum[0]
        self.init(color: SIMD3(Float(mean[1]), Float(mean[2]), Float(mean[3])), weight: Float(sum[0]))
    }

    /// The colour in bytes.
    var rounded: Color {
        func level(_ v: Float) -> UInt8 { UInt8(min(255, max(0, v.rounded()))) }
        return Color(red: level(color.x), green: level(color.y), blue: level(color.z))
    }
}
