#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Entropy-coded bytes on their way from the file to a bit reader: without stuffing, in pieces of 64 KiB.
struct JPEGEntropyFeed: ~Copyable {
    /// More than any MCU can take: 10 blocks of 64 codes with values of 31 bits are 2,480 bytes.
    static let margin = 4096
    private static let capacity = 64 << 10

    private let scratch: UnsafeMutablePointer<UInt8>
    private let capacity: Int
    private var count = 0
    /// Whether the data ends with what has been fed: a marker or the end of the input follows.
    private(set) var isAtEnd = false

    /// - Parameter inputSize: Bytes of the whole input; a small one needs less memory.
    init(inputSize: Int) {
        capacity = max(64, min(JPEGEntropyFeed.capacity, inputSize))
        scratch = .allocate(capacity: capacity + JPEGEntropyFeed.margin + 64)
    }

    deinit { scratch.deallocate() }

    /// Behind the last byte fed.
    var end: UnsafePointer<UInt8> { UnsafePointer(scratch) + count }

    /// A bit reader at the start of the entropy-coded segment that `window` stands at.
    mutating func start(_ window: inout JPEGInputWindow) throws(ImageError) -> JPEGBitReader {
        count = 0
        isAtEnd = false
        var reader = JPEGBitReader(next: UnsafePointer(scratch))
        try feed(&window, &reader)
        return reader
    }

    /// Moves what `reader` has not loaded to the front and fills up behind it.
    mutating func feed(_ window: inout JPEGInputWindow, _ reader: inout JPEGBitReader) throws(ImageError) {
        let offset = reader.next - UnsafePointer(scratch)
        let left = max(0, count - offset)
        if left > 0 { memmove(scratch, scratch + offset, left) }
        reader.next = UnsafePointer(scratch) + max(0, offset - count)
        count = left
        while !isAtEnd && count < capacity {
            if window.available == 0, try !window.fill() {
                isAtEnd = true
                break
            }
            let room = min(window.available, capacity - count)
            let stuffed = memchr(window.bytes, 0xFF, room).map { UnsafeRawPointer($0) - UnsafeRawPointer(window.bytes) }
            let plain = stuffed ?? room
            memcpy(scratch + count, window.bytes, plain)
            count += plain
            window.consume(plain)
            if stuffed != nil { try takeStuffing(&window) }
        }
        // Zeros for a reader that loads ahead, or runs into the end of damaged data.
        memset(scratch + count, 0, 32)
    }

    private mutating func takeStuffing(_ window: inout JPEGInputWindow) throws(ImageError) {
        guard try window.require(2) else {
            window.consume(window.available)
            isAtEnd = true
            return
        }
        switch window.bytes[1] {
        case 0:
            scratch[count] = 0xFF
            count += 1
            window.consume(2)
        case 0xFF: window.consume(1)
        default: isAtEnd = true
        }
    }

    /// Passes over what is left of the segment.
    mutating func finish(_ window: inout JPEGInputWindow) throws(ImageError) {
        while !isAtEnd {
            count = 0
            var reader = JPEGBitReader(next: UnsafePointer(scratch))
            try feed(&window, &reader)
        }
    }

    /// Whether `reader` has taken more bits than there were.
    func isOverrun(_ reader: JPEGBitReader) -> Bool {
        (reader.next - UnsafePointer(scratch)) * 8 - Int(reader.count) > count * 8
    }
}
