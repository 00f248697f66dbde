/// How much there is to see in a frame, from a grid of samples.
struct FrameContent {
    static let columns = 64
    static let rows = 36

    /// Deviation from the mean, of 255.
    let deviation: Double
    /// Brighter than all but the brightest twentieth; of 255.
    let highlight: Double

    /// Fades, title cards without a title, colour bars of one colour: deviations measured on encoded plain frames stay
    /// below 2.
    private static let leastDeviation = 6.0
    /// What still passes as black after a camera's noise.
    private static let leastHighlight = 36.0

    /// - Parameter luma: Brightness from 0 to 255 at a column and a row.
    init(_ luma: (_ column: Int, _ row: Int) -> Double) {
        var values: [Double] = []
        values.reserveCapacity(Self.columns * Self.rows)
        for row in 0..<Self.rows {
            for column in 0..<Self.columns { values.append(luma(column, row)) }
        }
        let mean = values.reduce(0, +) / Double(values.count)
        deviation = (values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(values.count)).squareRoot()
        values.sort()
        highlight = values[values.count - values.count / 20]
    }

    /// From rows of red, green and blue.
    init(rgb: UnsafeRawBufferPointer) {
        self.init { column, row in
            let start = 3 * (row * Self.columns + column)
            guard start + 2 < rgb.count else { return 0 }
            return 0.2126 * Double(rgb[start]) + 0.7152 * Double(rgb[start + 1]) + 0.0722 * Double(rgb[start + 2])
        }
    }

    /// Whether it does as a poster: neither nearly black nor nearly of one colour.
    var isGood: Bool { deviation >= Self.leastDeviation && highlight >= Self.leastHighlight }

    /// The larger, the more there is to see.
    var score: Double { deviation + (isGood ? 1_000 : 0) }
}
