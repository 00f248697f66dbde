#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// One channel of a ThumbHash: a triangle of cosine factors.
struct ThumbHashChannel {
    let constant: Double
    /// The other factors, row by row; encoded ones scaled to 0…1.
    let factors: [Double]
    /// The largest of them by size.
    let scale: Double

    static let none = ThumbHashChannel(constant: 1, factors: [], scale: 0)

    private init(constant: Double, factors: [Double], scale: Double) {
        self.constant = constant
        self.factors = factors
        self.scale = scale
    }

    /// Transforms `samples`, `width` by `height` of them.
    init(_ samples: [Double], width: Int, height: Int, nx: Int, ny: Int) {
        let wavesX = Self.waves(width, nx), wavesY = Self.waves(height, ny)
        // Separable: sums along each row for every wave, then along the columns.
        var rows = [Double](repeating: 0, count: nx * height)
        samples.withUnsafeBufferPointer { samples in
            wavesX.withUnsafeBufferPointer { waves in
                for y in 0..<height {
                    for wave in 0..<nx {
                        var even = 0.0, odd = 0.0
                        var x = 0
                        // Two sums: one would wait for each addition.
                        while x &+ 1 < width {
                            even += samples[y &* width &+ x] * waves[wave &* width &+ x]
                            odd += samples[y &* width &+ x &+ 1] * waves[wave &* width &+ x &+ 1]
                            x &+= 2
                        }
                        if x < width { even += samples[y &* width &+ x] * waves[wave &* width &+ x] }
                        rows[wave &* height &+ y] = even + odd
                    }
                }
            }
        }
        var constant = 0.0, factors: [Double] = [], scale = 0.0
        for waveY in 0..<ny {
            for waveX in 0..<nx where waveX * ny < nx * (ny - waveY) {
                var sum = 0.0
                for y in 0..<height { sum += rows[waveX * height + y] * wavesY[waveY * height + y] }
                sum /= Double(width * height)
                if waveX == 0 && waveY == 0 {
                    constant = sum
                } else {
                    factors.append(sum)
                    scale = max(scale, abs(sum))
                }
            }
        }
        self.init(
            constant: constant, factors: scale > 0 ? factors.map { 0.5 + 0.5 / scale * $0 } : factors, scale: scale)
    }

    /// cos(π wave (position + ½) / side) for every position of every wave.
    static func waves(_ side: Int, _ count: Int) -> [Double] {
        (0..<count).flatMap { wave in
            (0..<side).map { cos(Double.pi / Double(side) * Double(wave) * (Double($0) + 0.5)) }
        }
    }
}
