/// The seven passes of Adam7 (PNG specification, third edition, §8.2).
enum PNGInterlacing {
    /// Where the pixels of one pass lie.
    struct Pass: Sendable {
        let x: Int
        let y: Int
        let columnStep: Int
        let rowStep: Int

        /// Pixels a row of the pass, of a picture that wide.
        func columns(of width: Int) -> Int { width > x ? (width - x + columnStep - 1) / columnStep : 0 }
        /// Rows of the pass, of a picture that high.
        func rows(of height: Int) -> Int { height > y ? (height - y + rowStep - 1) / rowStep : 0 }
    }

    static let passes = [
        Pass(x: 0, y: 0, columnStep: 8, rowStep: 8), Pass(x: 4, y: 0, columnStep: 8, rowStep: 8),
        Pass(x: 0, y: 4, columnStep: 4, rowStep: 8), Pass(x: 2, y: 0, columnStep: 4, rowStep: 4),
        Pass(x: 0, y: 2, columnStep: 2, rowStep: 4), Pass(x: 1, y: 0, columnStep: 2, rowStep: 2),
        Pass(x: 0, y: 1, columnStep: 1, rowStep: 2),
    ]

    /// How many passes are worth decoding when `reduction` stored pixels fall on one of the result.
    ///
    /// Five passes are every second pixel of every second row, three are every fourth; leaving the others out takes
    /// samples instead of means. With at least 64 samples left for a pixel of the result a 12-megapixel photo keeps
    /// 50 dB (five passes, to 200 pixels) and 48 dB (three, to 100 pixels) against all seven, for 0.27 and 0.06 of the
    /// time. Palettes and low depths are often dithered in patterns of a few pixels, which samples would turn into
    /// plain areas of a wrong colour: they get every pass.
    static func passCount(reduction: Double, header: PNGHeader) -> Int {
        guard header.colorType != .palette, header.depth >= 8 else { return 7 }
        return reduction >= 32 ? 3 : reduction >= 16 ? 5 : 7
    }

    /// Fills pixels that did not come, from `pass` and its row `row` on, with the one to the left or above that an
    /// earlier pass has: the blocky preview of an interlaced picture.
    static func fill(_ plane: inout FullPlane, pass: Int, row: Int) {
        var first = row
        for index in max(1, pass)..<7 {
            let grid = passes[index]
            let columns = grid.columns(of: plane.width)
            let rows = grid.rows(of: plane.height)
            // Even-numbered passes come between columns, odd-numbered ones between rows.
            let (left, up) = index & 1 == 1 ? (grid.x, 0) : (0, grid.y)
            for r in min(first, rows)..<rows {
                for c in 0..<columns {
                    plane.repeatPixel(
                        y: grid.y + r * grid.rowStep, x: grid.x + c * grid.columnStep, left: left, up: up)
                }
            }
            first = 0
        }
    }
}
