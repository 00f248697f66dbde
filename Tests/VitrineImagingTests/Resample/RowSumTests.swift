import CVitrinePixels
import TestSupport
import Testing

/// The resampler's loops in C, against their definition.
@Suite struct RowSumTests {
    @Test(arguments: [32, 64, 160], [1, 7, 16])
    func linesAreWeightedSumsOfRows(samples: Int, most: Int) {
        var numbers = SeededGenerator(UInt64(samples + most))
        let rows = (0..<20).map { _ in (0..<samples).map { _ in Int16.random(in: .min ... .max, using: &numbers) } }
        let picks = (0..<(8 * most)).map { _ in Int.random(in: 0..<20, using: &numbers) }
        let weights = picks.map { _ in Int16.random(in: .min ... .max, using: &numbers) }
        let counts = (0..<8).map { Int32(max(0, most - $0)) }
        let biases = (0..<8).map { Int16($0 * 3) }
        let memory = rows.map { row in
            let copy = UnsafeMutableBufferPointer<Int16>.allocate(capacity: samples)
            _ = copy.initialize(from: row)
            return copy
        }
        defer { memory.forEach { $0.deallocate() } }
        let addresses = picks.map { UnsafePointer(memory[$0].baseAddress) }
        var columns = [Int16](repeating: 0, count: 8 * samples)
        cpixels_sum_rows(addresses, weights, most, counts, biases, samples, &columns)
        for line in 0..<8 {
            for x in 0..<samples {
                var sum = biases[line]
                for k in (line * most)..<(line * most + Int(counts[line])) {
                    sum &+= Int16(truncatingIfNeeded: (Int32(rows[picks[k]][x]) * Int32(weights[k])) >> 16)
                }
                #expect(columns[8 * x + line] == sum)
            }
        }
    }

    @Test(arguments: [1, 7, 8, 9, 24, 31], 1...8)
    func linesAreStoredOneBelowTheOther(samples: Int, lines: Int) {
        var numbers = SeededGenerator(UInt64(samples * lines))
        let columns = (0..<(8 * samples)).map { _ in UInt8.random(in: 0...255, using: &numbers) }
        let pitch = samples + 5
        var target = [UInt8](repeating: 7, count: 8 * pitch)
        cpixels_store_lines(columns, samples, &target, pitch, Int32(lines))
        for line in 0..<8 {
            for x in 0..<pitch {
                #expect(target[line * pitch + x] == (line < lines && x < samples ? columns[8 * x + line] : 7))
            }
        }
    }
}
