import Foundation

/// How different two colours look.
enum ColorDifference {
    /// L*, a* and b* of a colour in sRGB, under D65.
    static func lab(_ levels: [UInt8]) -> [Double] {
        let v = levels.map { level in
            let v = Double(level) / 255
            return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4)
        }
        func f(_ t: Double) -> Double { t > 216.0 / 24_389 ? cbrt(t) : (24_389.0 / 27 * t + 16) / 116 }
        let x = f((0.4124564 * v[0] + 0.3575761 * v[1] + 0.1804375 * v[2]) / 0.95047)
        let y = f(0.2126729 * v[0] + 0.7151522 * v[1] + 0.0721750 * v[2])
        let z = f((0.0193339 * v[0] + 0.1191920 * v[1] + 0.9503041 * v[2]) / 1.08883)
        return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
    }

    /// CIEDE2000 of two colours in sRGB.
    ///
    /// Source: G. Sharma et al., "The CIEDE2000 color-difference formula", Color Research and Application 30 (2005).
    static func ciede2000(_ one: [UInt8], _ other: [UInt8]) -> Double {
        let (p, q) = (lab(one), lab(other))
        let mean = (hypot(p[1], p[2]) + hypot(q[1], q[2])) / 2
        let g = 0.5 * (1 - (pow(mean, 7) / (pow(mean, 7) + pow(25.0, 7))).squareRoot())
        let (a1, a2) = ((1 + g) * p[1], (1 + g) * q[1])
        let (c1, c2) = (hypot(a1, p[2]), hypot(a2, q[2]))
        func hue(_ b: Double, _ a: Double) -> Double {
            let degrees = atan2(b, a) * 180 / .pi
            return degrees < 0 ? degrees + 360 : degrees
        }
        let (h1, h2) = (hue(p[2], a1), hue(q[2], a2))
        var turn = c1 * c2 == 0 ? 0 : h2 - h1
        if turn > 180 { turn -= 360 } else if turn < -180 { turn += 360 }
        let dh = 2 * (c1 * c2).squareRoot() * sin(turn / 2 * .pi / 180)
        let (l, c) = ((p[0] + q[0]) / 2, (c1 + c2) / 2)
        var h = c1 * c2 == 0 ? h1 + h2 : (h1 + h2) / 2
        if c1 * c2 != 0, abs(h1 - h2) > 180 { h += h1 + h2 < 360 ? 180 : -180 }
        func cosine(_ degrees: Double) -> Double { cos(degrees * .pi / 180) }
        let t = 1 - 0.17 * cosine(h - 30) + 0.24 * cosine(2 * h) + 0.32 * cosine(3 * h + 6) - 0.20 * cosine(4 * h - 63)
        let rotation = 30 * exp(-pow((h - 275) / 25, 2))
        let chroma = 2 * (pow(c, 7) / (pow(c, 7) + pow(25.0, 7))).squareRoot()
        let sl = 1 + 0.015 * pow(l - 50, 2) / (20 + pow(l - 50, 2)).squareRoot()
        let (sc, sh) = (1 + 0.045 * c, 1 + 0.015 * c * t)
        let (x, y, z) = ((q[0] - p[0]) / sl, (c2 - c1) / sc, dh / sh)
        return (x * x + y * y + z * z - sin(2 * rotation * .pi / 180) * chroma * y * z).squareRoot()
    }
}
