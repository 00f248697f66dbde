#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Microseconds of a clock.
func microseconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

/// A memory figure of `/proc/self/status` (proc(5)), in kilobytes.
func memory(_ name: String) -> Int {
    guard let file = fopen("/proc/self/status", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, file) != nil {
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard text.hasPrefix("\(name):") else { continue }
        return Int(text.filter(\.isNumber)) ?? 0
    }
    return 0
}

/// Prints a phase: the median and mean of the wall time and the mean of the processor time of all threads, in
/// microseconds per operation.
func report(_ phase: String, _ times: [Double], cpu: Double, operations: Int, wall: Double) {
    let sorted = times.sorted()
    let values = [sorted[sorted.count / 2], wall / Double(operations), cpu / Double(operations)]
    let texts = values.map { String(Double(Int($0 * 1000)) / 1000) }
    print("phase \(phase) p50 \(texts[0]) mean \(texts[1]) cpu \(texts[2])")
}

/// How many operations make a block: those the cache writes in one transaction.
let blockLength = 64

/// Times each of the operations.
func measure(_ phase: String, _ numbers: some Collection<Int>, _ operation: (Int) throws -> Void) rethrows {
    try measure(phase, numbers, block: 1, operation) {}
}

/// Times blocks of operations, each with what ends it; the median is of blocks, divided by their length.
func measure(
    _ phase: String, _ numbers: some Collection<Int>, block: Int, _ operation: (Int) throws -> Void,
    end: () throws -> Void
) rethrows {
    var times: [Double] = []
    times.reserveCapacity(numbers.count / block + 1)
    let cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID), start = microseconds(CLOCK_MONOTONIC)
    var last = start, count = 0
    for number in numbers {
        try operation(number)
        count += 1
        guard count % block == 0 || count == numbers.count else { continue }
        try end()
        let now = microseconds(CLOCK_MONOTONIC)
        times.append((now - last) / Double((count - 1) % block + 1))
        last = now
    }
    let spent = microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu
    report(phase, times, cpu: spent, operations: numbers.count, wall: last - start)
    // The same as means of blocks, to be compared with a contender that is measured in blocks.
    guard block == 1, times.count >= blockLength else { return }
    let blocks = stride(from: 0, to: times.count - blockLength + 1, by: blockLength).map { start in
        times[start..<start + blockLength].reduce(0, +) / Double(blockLength)
    }
    report("\(phase)-blocks", blocks, cpu: spent, operations: numbers.count, wall: last - start)
}
