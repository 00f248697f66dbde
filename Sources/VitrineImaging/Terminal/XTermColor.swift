/// The 256 colours of xterm: a cube of 6 × 6 × 6 from 16 and a ramp of 24 greys from 232 (xterm's `256colres.h`). The
/// first 16 differ between terminals and are not used.
enum XTermColor {
    private static let levels = [0, 95, 135, 175, 215, 255]

    /// The number of the closest colour.
    static func nearest(to color: Color) -> Int {
        let rgb = [Int(color.red), Int(color.green), Int(color.blue)]
        let steps = rgb.map { value in levels.indices.min { abs(levels[$0] - value) < abs(levels[$1] - value) } ?? 0 }
        let cube = distance(rgb, steps.map { levels[$0] })
        let mean = rgb.reduce(0, +) / 3
        let gray = max(0, min(23, (mean - 3) / 10))
        if distance(rgb, [Int](repeating: 8 + gray * 10, count: 3)) < cube { return 232 + gray }
        return 16 + steps[0] * 36 + steps[1] * 6 + steps[2]
    }

    private static func distance(_ a: [Int], _ b: [Int]) -> Int {
        zip(a, b).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }
    }
}
