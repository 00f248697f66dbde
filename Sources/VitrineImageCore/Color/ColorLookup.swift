/// A table profile from device values to the connection space: `mft1`, `mft2` or `mAB `.
///
/// Source: ICC.1:2022 §10.10 (lut16Type), §10.11 (lut8Type), §10.12 (lutAToBType). Between grid points it interpolates
/// in the simplex that holds the value: J. Kasson et al., "Performing color space conversions with three-dimensional
/// linear interpolation", J. Electronic Imaging 4 (1995), here in any number of dimensions.
struct ColorLookup: Sendable {
    /// The meaning of three numbers of 0...1.
    enum Encoding: Sendable { case labLegacy, lab, xyz }

    let inputs: Int
    let encoding: Encoding
    private var before: [ToneCurve] = []
    /// Grid points along each axis, and nodes from one to the next.
    private var steps = SIMD4<Int32>(repeating: 1)
    private var strides = SIMD4<Int32>(repeating: 1)
    private var nodes: [SIMD4<Float>] = []
    private var middle: [ToneCurve] = []
    private var matrix: [Float] = []
    private var after: [ToneCurve] = []
    /// ``after`` at 1,025 places for each of three channels, one lane a channel.
    private var exits: [SIMD4<Float>] = []

    /// Grid nodes a table may have; a 4-channel profile of 33 steps has 1.2 million.
    private static let maximumNodes = 1_500_000

    /// Reads the table of a profile with `channels` device channels; nil if it is malformed.
    init?(_ reader: ICCReader, tag: Range<Int>, channels: Int, isLab: Bool) {
        let start = tag.lowerBound
        guard tag.count >= 32, reader.u8(start + 8) == channels, reader.u8(start + 9) == 3 else { return nil }
        inputs = channels
        if reader.matches("mft1", at: start) || reader.matches("mft2", at: start) {
            let isWide = reader.matches("mft2", at: start)
            encoding = !isLab ? .xyz : isWide ? .labLegacy : .lab
            guard readTables(reader, tag, isWide: isWide) else { return nil }
        } else if reader.matches("mAB ", at: start) {
            encoding = isLab ? .lab : .xyz
            guard readStages(reader, tag) else { return nil }
        } else {
            return nil
        }
        let curves = after
        exits = curves.isEmpty ? [] : (0...Self.exitSteps).map { i in
            let x = Float(i) / Float(Self.exitSteps)
            return SIMD4(curves[0](x), curves[1](x), curves[2](x), 0)
        }
    }

    private static let exitSteps = 1_024

    private mutating func readTables(_ reader: ICCReader, _ tag: Range<Int>, isWide: Bool) -> Bool {
        let start = tag.lowerBound
        let width = isWide ? 2 : 1
        let scale: Float = isWide ? 1 / 65_535 : 1 / 255
        let steps = reader.u8(start + 10)
        let entries = isWide ? reader.u16(start + 48) : 256
        let exits = isWide ? reader.u16(start + 50) : 256
        guard (2...4_096).contains(entries), (2...4_096).contains(exits) else { return false }
        func value(_ offset: Int) -> Float { Float(isWide ? reader.u16(offset) : reader.u8(offset)) * scale }
        var offset = start + (isWide ? 52 : 48)
        func tables(_ count: Int, _ length: Int) -> [ToneCurve]? {
            guard tag.upperBound - offset >= count * length * width else { return nil }
            defer { offset += count * length * width }
            return (0..<count).map { i in .table((0..<length).map { value(offset + (i * length + $0) * width) }) }
        }
        guard let first = tables(inputs, entries) else { return false }
        before = first
        guard readGrid([Int](repeating: steps, count: inputs), reader, at: offset, end: tag.upperBound, isWide: isWide)
        else { return false }
        offset += nodes.count * 3 * width
        guard let last = tables(3, exits) else { return false }
        after = last
        return true
    }

    private mutating func readStages(_ reader: ICCReader, _ tag: Range<Int>) -> Bool {
        let start = tag.lowerBound
        func offset(_ field: Int) -> Int? {
            let value = reader.u32(start + field)
            return value == 0 || value >= tag.count ? nil : start + value
        }
        func curves(_ field: Int, _ count: Int) -> [ToneCurve]? {
            guard var position = offset(field) else { return [] }
            var result: [ToneCurve] = []
            for _ in 0..<count {
                guard let (curve, length) = ToneCurve.parse(reader, at: position, end: tag.upperBound)
                else { return nil }
                result.append(curve)
                position += (length + 3) & ~3
            }
            return result
        }
        guard let a = curves(28, inputs), let m = curves(20, 3), let b = curves(12, 3) else { return false }
        (before, middle, after) = (a, m, b)
        if let position = offset(16) {
            guard tag.upperBound - position >= 48 else { return false }
            matrix = (0..<12).map { Float(reader.fixed(position + 4 * $0)) }
        }
        guard let position = offset(24) else { return inputs == 3 }
        guard tag.upperBound - position >= 20 else { return false }
        let steps = (0..<inputs).map { reader.u8(position + $0) }
        return readGrid(
            steps, reader, at: position + 20, end: tag.upperBound, isWide: reader.u8(position + 16) == 2)
    }

    private mutating func readGrid(
        _ steps: [Int], _ reader: ICCReader, at offset: Int, end: Int, isWide: Bool
    ) -> Bool {
        guard steps.allSatisfy({ $0 >= 2 }) else { return false }
        var count = 1
        for step in steps {
            count *= step
            guard count <= Self.maximumNodes else { return false }
        }
        guard end - offset >= count * 3 * (isWide ? 2 : 1) else { return false }
        for i in stride(from: steps.count - 1, through: 0, by: -1) {
            self.steps[i] = Int32(steps[i])
            if i + 1 < steps.count { strides[i] = strides[i + 1] * Int32(steps[i + 1]) }
        }
        nodes.reserveCapacity(count)
        reader.bytes.withUnsafeBufferPointer { bytes in
            if isWide {
                for p in stride(from: offset, to: offset + count * 6, by: 6) {
                    func value(_ p: Int) -> Float { Float(Int(bytes[p]) << 8 | Int(bytes[p + 1])) }
                    nodes.append(SIMD4(value(p), value(p + 2), value(p + 4), 0) / 65_535)
                }
            } else {
                for p in stride(from: offset, to: offset + count * 3, by: 3) {
                    nodes.append(SIMD4(Float(bytes[p]), Float(bytes[p + 1]), Float(bytes[p + 2]), 0) / 255)
                }
            }
        }
        return true
    }

    /// Returns 256 results of each curve before the grid: device values are bytes.
    func inputTables() -> [Float] {
        (0..<inputs).flatMap { i in
            (0..<256).map { v in
                let x = Float(v) / 255
                return before.isEmpty ? x : before[i](x)
            }
        }
    }

    /// Returns linear sRGB, not clamped, of device values behind the curves before the grid (unused lanes 0).
    func linear(_ device: SIMD4<Float>) -> SIMD4<Float> {
        var v = nodes.isEmpty ? device : interpolate(device)
        if !middle.isEmpty { v = SIMD4(middle[0](v[0]), middle[1](v[1]), middle[2](v[2]), 0) }
        if !matrix.isEmpty {
            matrix.withUnsafeBufferPointer { m in
                let x = m[0] * v[0] + m[1] * v[1] + m[2] * v[2] + m[9]
                let y = m[3] * v[0] + m[4] * v[1] + m[5] * v[2] + m[10]
                let z = m[6] * v[0] + m[7] * v[1] + m[8] * v[2] + m[11]
                v = SIMD4(x, y, z, 0)
            }
        }
        if !exits.isEmpty {
            exits.withUnsafeBufferPointer { exits in
                v = SIMD4(
                    Self.exit(x: v[0], exits: exits, lane: 0), Self.exit(x: v[1], exits: exits, lane: 1),
                    Self.exit(x: v[2], exits: exits, lane: 2), 0)
            }
        }
        let xyz = self.xyz(v)
        return SRGB.columns.x * xyz[0] + SRGB.columns.y * xyz[1] + SRGB.columns.z * xyz[2]
    }

    @inline(__always)
    private static func exit(x: Float, exits: UnsafeBufferPointer<SIMD4<Float>>, lane: Int) -> Float {
        let position = (x > 0 ? min(x, 1) : 0) * Float(exitSteps)
        let i = min(Int(position), exitSteps - 1)
        let low = exits[i][lane]
        return low + (exits[i + 1][lane] - low) * (position - Float(i))
    }

    /// Walks from the corner below the value to the one above it, always along the axis with the longest way left.
    private func interpolate(_ device: SIMD4<Float>) -> SIMD4<Float> {
        var node = 0
        // The way left along one axis, above the nodes of a step along it: such floats sort like whole numbers.
        @inline(__always) func key(_ i: Int) -> UInt64 {
            let position = max(0, min(1, device[i])) * Float(steps[i] &- 1)
            let cell = max(0, min(Int32(position), steps[i] &- 2))
            node &+= Int(cell) &* Int(strides[i])
            return UInt64((position - Float(cell)).bitPattern) &<< 32 | UInt64(UInt32(truncatingIfNeeded: strides[i]))
        }
        @inline(__always) func order(_ a: inout UInt64, _ b: inout UInt64) { (a, b) = (max(a, b), min(a, b)) }
        var a = key(0), b = key(1), c = key(2)
        var d: UInt64 = inputs == 4 ? key(3) : 0
        order(&a, &b)
        order(&c, &d)
        order(&a, &c)
        order(&b, &d)
        order(&b, &c)
        return nodes.withUnsafeBufferPointer { nodes in
            var previous: Float = 1
            var result = SIMD4<Float>(repeating: 0)
            @inline(__always) func walk(_ key: UInt64) {
                let rest = Float(bitPattern: UInt32(truncatingIfNeeded: key &>> 32))
                result += nodes[node] * (previous - rest)
                previous = rest
                node &+= Int(UInt32(truncatingIfNeeded: key))
            }
            walk(a)
            walk(b)
            walk(c)
            walk(d)
            return result + nodes[node] * previous
        }
    }

    /// XYZ relative to D50. Source: ICC.1:2022 §6.3.4 (encodings), CIE 15 §8.2.1 (Lab).
    private func xyz(_ v: SIMD4<Float>) -> SIMD4<Float> {
        let scale: Float
        switch encoding {
        case .xyz: return v * (1 + 32_767 / 32_768)
        case .lab: scale = 1
        case .labLegacy: scale = 65_535 / 65_280
        }
        let y = (v[0] * 100 * scale + 16) / 116
        let x = y + (v[1] * 255 * scale - 128) / 500
        let z = y - (v[2] * 255 * scale - 128) / 200
        return SIMD4(Self.cube(x) * 0.9642, Self.cube(y), Self.cube(z) * 0.8249, 0)
    }

    @inline(__always)
    private static func cube(_ t: Float) -> Float { t > 6 / 29 ? t * t * t : (t - 4 / 29) * (108 / 841) }

    /// Returns the luminance, 0 to 1, of a lightness of 0 to 100 (CIE 15 §8.2.1).
    static func luminance(lightness: Float) -> Float { cube((lightness + 16) / 116) }
}
