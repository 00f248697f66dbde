import Foundation
package import VitrineImaging

/// Generated landscapes for screenshots and checks, a different one for each number.
package enum PaintedPicture {
    /// Returns a landscape of hills and sky. It is noisy, so decoding costs as much as for a photo.
    package static func landscape(_ number: Int, width: Int, height: Int) -> PixelImage {
        var random = Random(seed: UInt64(number) &* 0x9E37_79B9_7F4A_7C15 &+ 1)
        let palette = Palette(&random)
        let sun = (x: random.unit * 0.7 + 0.15, y: random.unit * 0.3 + 0.12, radius: random.unit * 0.05 + 0.03)
        let ridges = (0..<4).map { index in
            Ridge(base: 0.45 + 0.14 * Double(index), height: 0.16 - 0.02 * Double(index), &random)
        }
        let lines = ridges.map { ridge in (0..<width).map { ridge.level(at: Double($0) / Double(width)) } }
        return PixelImage(width: width, height: height, alpha: .opaque) { pixels in
            for y in 0..<height {
                let v = Double(y) / Double(height)
                for x in 0..<width {
                    var color = palette.sky(v)
                    let (dx, dy) = (Double(x) / Double(width) - sun.x, (v - sun.y) * Double(height) / Double(width))
                    let distance = (dx * dx + dy * dy).squareRoot() / sun.radius
                    color = color.mixed(with: palette.sun, distance < 1 ? 1 : 0.5 / (distance * distance + 0.3))
                    for (index, line) in lines.enumerated() where v > line[x] {
                        color = palette.ridge(index, depth: v - line[x])
                    }
                    let grain = Double(random.next() >> 56) / 256 * 10 - 5
                    color.write(to: pixels, at: (y * width + x) * 4, adding: grain)
                }
            }
        }
    }

    private struct RGB {
        var red: Double, green: Double, blue: Double

        func mixed(with other: RGB, _ share: Double) -> RGB {
            let share = min(1, max(0, share)), rest = 1 - share
            return RGB(
                red: red * rest + other.red * share, green: green * rest + other.green * share,
                blue: blue * rest + other.blue * share)
        }

        func write(to pixels: UnsafeMutableRawBufferPointer, at offset: Int, adding grain: Double) {
            pixels[offset] = UInt8(min(255, max(0, red + grain)))
            pixels[offset + 1] = UInt8(min(255, max(0, green + grain)))
            pixels[offset + 2] = UInt8(min(255, max(0, blue + grain)))
            pixels[offset + 3] = 255
        }

        /// Returns the colour of a hue from 0 to 1.
        init(hue: Double, saturation: Double, value: Double) {
            func channel(_ shift: Double) -> Double {
                let k = (shift + hue * 6).truncatingRemainder(dividingBy: 6)
                return 255 * value * (1 - saturation * max(0, min(k, 4 - k, 1)))
            }
            (red, green, blue) = (channel(5), channel(3), channel(1))
        }

        init(red: Double, green: Double, blue: Double) { (self.red, self.green, self.blue) = (red, green, blue) }
    }

    private struct Palette {
        let zenith: RGB, horizon: RGB, sun: RGB, near: RGB, far: RGB

        init(_ random: inout Random) {
            let day = random.unit, ground = random.unit
            zenith = RGB(hue: 0.55 + 0.15 * day, saturation: 0.55, value: 0.45 + 0.4 * day)
            horizon = RGB(hue: 0.04 + 0.1 * day, saturation: 0.45 - 0.3 * day, value: 0.97)
            sun = RGB(hue: 0.12, saturation: 0.3, value: 1)
            far = RGB(hue: 0.6 + 0.1 * ground, saturation: 0.35, value: 0.6)
            near = RGB(hue: 0.22 + 0.2 * ground, saturation: 0.6, value: 0.22)
        }

        func sky(_ v: Double) -> RGB { zenith.mixed(with: horizon, v / 0.55) }

        func ridge(_ index: Int, depth: Double) -> RGB {
            far.mixed(with: near, Double(index) / 3).mixed(with: horizon, max(0, 0.25 - depth))
        }
    }

    private struct Ridge {
        let base: Double
        let height: Double
        private let waves: [(frequency: Double, phase: Double, height: Double)]

        init(base: Double, height: Double, _ random: inout Random) {
            (self.base, self.height) = (base, height)
            waves = (0..<6).map { octave in
                let frequency = Double(1 << octave) * (2 + 3 * random.unit)
                return (frequency, random.unit * 2 * .pi, 1 / Double(1 << octave))
            }
        }

        func level(at x: Double) -> Double {
            base - height * waves.reduce(0) { $0 + $1.height * sin(x * $1.frequency + $1.phase) } / 2
        }
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    private struct Random: RandomNumberGenerator {
        private var state: UInt64
        init(seed: UInt64) { state = seed }

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }

        var unit: Double { mutating get { Double(next() >> 11) / Double(1 << 53) } }
    }
}
