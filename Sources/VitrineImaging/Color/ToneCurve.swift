#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// How a device value relates to a linear one: a `curv` or `para` element, both from 0...1 to 0...1.
///
/// Source: ICC.1:2022 §10.6 (curveType), §10.18 (parametricCurveType).
enum ToneCurve: Sendable {
    case identity
    case gamma(Double)
    /// Function types 1 to 4 all as type 4: `(a x + b)^g + e` from `d` on, `c x + f` below.
    case parametric(g: Double, a: Double, b: Double, c: Double, d: Double, e: Double, f: Double)
    case table([Float])

    /// The curve at `offset`, and the bytes it occupies; nil if it breaks the rules.
    static func parse(_ reader: ICCReader, at offset: Int, end: Int) -> (curve: ToneCurve, count: Int)? {
        guard offset >= 0, end <= reader.bytes.count, end - offset >= 12 else { return nil }
        if reader.matches("curv", at: offset) { return parseTable(reader, at: offset, end: end) }
        guard reader.matches("para", at: offset) else { return nil }
        let kind = reader.u16(offset + 8)
        let counts = [1, 3, 4, 5, 7]
        guard kind < counts.count, end - offset >= 12 + 4 * counts[kind] else { return nil }
        let p = (0..<7).map { $0 < counts[kind] ? reader.fixed(offset + 12 + 4 * $0) : 0 }
        let length = 12 + 4 * counts[kind]
        switch kind {
        case 0: return (.gamma(p[0]), length)
        case 1:
            let d = p[1] == 0 ? 0 : -p[2] / p[1]
            return (.parametric(g: p[0], a: p[1], b: p[2], c: 0, d: d, e: 0, f: 0), length)
        case 2:
            let d = p[1] == 0 ? 0 : -p[2] / p[1]
            return (.parametric(g: p[0], a: p[1], b: p[2], c: 0, d: d, e: p[3], f: p[3]), length)
        case 3: return (.parametric(g: p[0], a: p[1], b: p[2], c: p[3], d: p[4], e: 0, f: 0), length)
        default: return (.parametric(g: p[0], a: p[1], b: p[2], c: p[3], d: p[4], e: p[5], f: p[6]), length)
        }
    }

    private static func parseTable(_ reader: ICCReader, at offset: Int, end: Int) -> (curve: ToneCurve, count: Int)? {
        let count = reader.u32(offset + 8)
        guard count <= (end - offset - 12) / 2 else { return nil }
        switch count {
        case 0: return (.identity, 12)
        case 1: return (.gamma(Double(reader.u16(offset + 12)) / 256), 14)
        default:
            let values = (0..<count).map { Float(reader.u16(offset + 12 + 2 * $0)) / 65_535 }
            return (.table(values), 12 + 2 * count)
        }
    }

    /// The curve at `x`, both clamped to 0...1; a curve that is not a number there counts as 0.
    func callAsFunction(_ x: Float) -> Float {
        let x = x > 0 ? min(x, 1) : 0
        switch self {
        case .identity: return x
        case .gamma(let g): return Self.unit(pow(Double(x), g))
        case .parametric(let g, let a, let b, let c, let d, let e, let f):
            let x = Double(x)
            return Self.unit(x >= d ? pow(max(0, a * x + b), g) + e : c * x + f)
        case .table(let values):
            let position = x * Float(values.count - 1)
            let i = min(Int(position), values.count - 2)
            return values[i] + (values[i + 1] - values[i]) * (position - Float(i))
        }
    }

    private static func unit(_ value: Double) -> Float { value > 0 ? Float(min(value, 1)) : 0 }
}
